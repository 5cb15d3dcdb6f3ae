package containerd

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/containerd/containerd/v2/core/remotes/docker/config"
	transfer "github.com/containerd/containerd/v2/core/transfer/registry"

	"github.com/weir-edge/weir/impl/install/host"
)

// mirrorAsked is a mirror that has nothing, and how often it was asked.
func mirrorAsked(t *testing.T) (address string, asked *atomic.Int32) {
	t.Helper()
	asked = &atomic.Int32{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return strings.TrimPrefix(s.URL, "http://"), asked
}

// machineOf has a containerd with a config_path, and gives the address of the mirror by the hosts.toml that weir node
// join would write; "": it would write none.
func machineOf(t *testing.T, runtime, dirs, mirror string) (hosts string) {
	t.Helper()
	root := t.TempDir()
	write := func(path string, text []byte) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(root, host.ContainerdConfig),
		[]byte("version = 3\n[plugins.'io.containerd.cri.v1.images'.registry]\nconfig_path = '"+dirs+"'\n"))
	p := host.PullsOf(host.Runtime{Machine: root, Runtime: runtime, Address: mirror})
	if p.Hosts != "" {
		write(p.Hosts, host.HostsText(mirror))
	}
	return p.Hosts
}

// TestHostsRead: containerd's own code finds the hosts.toml that weir node join writes, for each pull again. The
// transfer service takes a list of directories for one, and asks no mirror: so join writes none.
func TestHostsRead(t *testing.T) {
	r := newRegistry(t, 0)
	r.image("v1", 1, 1000)
	resolve := func(dirs string) error {
		reg, err := transfer.NewOCIRegistry(t.Context(), r.ref("v1"), transfer.WithHostDir(dirs),
			transfer.WithDefaultScheme("http"))
		if err == nil {
			_, _, err = reg.Resolve(t.Context())
		}
		return err
	}
	mirror, asked := mirrorAsked(t)
	one, two := filepath.Join(t.TempDir(), "certs.d"), filepath.Join(t.TempDir(), "certs.d")
	if err := resolve(one); err != nil || asked.Load() > 0 {
		t.Fatalf("without a file: %v, the mirror was asked %d times", err, asked.Load())
	}
	hosts := machineOf(t, "containerd://2.4.2", one, mirror)
	if err := resolve(one); err != nil || hosts == "" || asked.Load() == 0 {
		t.Errorf("by %q: %v, the mirror was asked %d times", hosts, err, asked.Load())
	}
	asked.Store(0)
	list := one + string(filepath.ListSeparator) + two
	if err := resolve(list); err != nil || asked.Load() > 0 {
		t.Errorf("the transfer service reads a list now: %v, the mirror was asked %d times; see package host", err,
			asked.Load())
	}
	if hosts := machineOf(t, "containerd://2.4.2", list, mirror); hosts != "" {
		t.Errorf("join would write %s, which is not read", hosts)
	}
	// without the transfer service each directory of the list is looked at.
	hosts = machineOf(t, "containerd://2.0.5", two, mirror)
	found, err := config.ConfigureHosts(t.Context(), config.HostOptions{HostDir: config.HostDirFromRoot(two)})("x.example")
	if err != nil || len(found) != 2 || found[0].Host != mirror || found[1].Host != "x.example" {
		t.Errorf("by %s: %+v, %v", hosts, found, err)
	}
}
