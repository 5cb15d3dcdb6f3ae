package bench

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// TestTrust: whom to trust is read when a connection is made, so that the client of a hub is there before the hub is.
// It speaks HTTP/2 unless the target says other.
func TestTrust(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.Proto))
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	file := filepath.Join(t.TempDir(), "ca.crt")
	x := target{name: "hub", url: s.URL, trust: rest.TLSClientConfig{CAFile: file}}
	c := x.client()
	defer c.CloseIdleConnections()
	if _, err := x.get(t.Context(), c, "/"); err == nil ||
		!strings.Contains(err.Error(), "who signed the certificate of hub") {
		t.Errorf("without the file: %v", err)
	}
	if err := os.WriteFile(file, trusts(s).CAData, 0o600); err != nil {
		t.Fatal(err)
	}
	old := x
	old.http1 = true
	for want, client := range map[string]*http.Client{"HTTP/2.0": c, "HTTP/1.1": old.client()} {
		defer client.CloseIdleConnections()
		body, err := x.get(t.Context(), client, "/")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(body); string(got) != want {
			t.Errorf("%q, want %s: %v", got, want, err)
		}
		body.Close()
	}
}
