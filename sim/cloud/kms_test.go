package cloud

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/sim/proc/proctest"
)

// TestUnready: an apiserver whose key service is down says that it is not ready, and serves; then it is ready again.
func TestUnready(t *testing.T) {
	spawner := proctest.Spawner(t)
	binaries, err := Find(t.Context(), spawner, func(m string) { t.Log(m) }, KubeAPIServer)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Start(t.Context(), Config{Spawner: spawner, Binaries: binaries, LogDir: t.TempDir(), Keys: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	client, err := rest.HTTPClientFor(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, ready := range []bool{false, true} {
		if err := c.SetReady(t.Context(), ready); err != nil {
			t.Fatal(err)
		}
		resp, err := client.Get(c.URL() + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if (resp.StatusCode == http.StatusOK) != ready {
			t.Errorf("/readyz answers %s, want ready %v", resp.Status, ready)
		}
		if _, err := c.Client().CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("a list: %v", err)
		}
	}
}
