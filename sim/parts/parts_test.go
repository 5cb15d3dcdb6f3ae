package parts

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"sigs.k8s.io/yaml"

	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/proc/loopback"
	"github.com/weir-edge/weir/sim/proc/proctest"
)

// helperEnv turns the test binary into a stand-in for a hub.
const helperEnv = "WEIR_NODE_TEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := standIn(strings.TrimPrefix(os.Args[1], "--config=")); err != nil {
		fmt.Println("stand-in:", err)
		os.Exit(1)
	}
}

// standIn serves what Part asks for at the address in the config file. It is healthy at the second question.
func standIn(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var c HubConfig
	if err := yaml.Unmarshal(data, &c); err != nil {
		return err
	}
	asked := 0
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked < 2 {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, "# HELP x y\nweir_bytes{class=\"pool\",dir=\"down\"} 12\nweir_bytes{class=\"node\"} 3.5\nup 1")
	})
	mux.HandleFunc("/weir/v1/status", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"node":%q,"role":"Pending"}`, c.NodeName)
	})
	return http.ListenAndServe(c.Health, mux)
}

func newSpawner(t *testing.T) *proc.Spawner {
	t.Helper()
	s := proctest.Spawner(t)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	return s
}

func newHub(t *testing.T, s *proc.Spawner, address string) *Part {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(helperEnv, "hub")
	dir := t.TempDir()
	p, err := NewHub(
		Launch{Spawner: s, Name: "hub of edge-1", Path: self, Dir: dir, LogFile: filepath.Join(dir, "log")},
		HubConfig{NodeName: "edge-1", Health: net.JoinHostPort(address, "10267")},
	)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// address reserves a loopback address.
func address(t *testing.T) string {
	t.Helper()
	b, err := loopback.Reserve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Release)
	a, err := b.Addr(1)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestLifeOfAPart(t *testing.T) {
	s := newSpawner(t)
	p := newHub(t, s, address(t))
	if err := p.Kill(); err == nil || err.Error() != "kill hub of edge-1: it is not running" {
		t.Errorf("kill before start: %v", err)
	}
	for range 2 { // a part can be started again
		if err := p.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := p.Start(t.Context()); err == nil {
			t.Error("started twice")
		}
		var status struct{ Node, Role string }
		if err := p.Status(t.Context(), &status); err != nil || status.Node != "edge-1" || status.Role != "Pending" {
			t.Errorf("status %+v, %v", status, err)
		}
		m, err := p.Metrics(t.Context())
		if err != nil || m.Sum("weir_bytes") != 15.5 || m.Sum("weir_bytes", `class="pool"`, `dir="down"`) != 12 ||
			m.Sum("up") != 1 {
			t.Errorf("metrics %v, %v", m, err)
		}
		if u, err := p.Usage(); err != nil || u.RSSAnon == 0 {
			t.Errorf("usage %+v, %v", u, err)
		}
		if err := errors.Join(p.Freeze(), p.Thaw(), p.Stop(t.Context())); err != nil {
			t.Error(err)
		}
		if p.Running() {
			t.Error("still running")
		}
		<-p.Done()
	}
}

func TestAPartThatCannotStartSaysWhy(t *testing.T) {
	s := newSpawner(t)
	address := address(t)
	l, err := net.Listen("tcp", net.JoinHostPort(address, "10267"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	err = newHub(t, s, address).Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "hub of edge-1 ended before it was healthy") ||
		!strings.Contains(err.Error(), "address already in use") {
		t.Errorf("got %v", err)
	}
}

func TestConfigFile(t *testing.T) {
	data, err := encode(CoordinatorConfig{
		NodePool: "a", BindAddress: "127.0.0.1", SecurePort: 10270, PoolScopeResources: []string{"endpoints.v1."},
	},
		Flags{"ring-bytes": 64 << 20, "fresh-within": 30 * time.Second, "bind-address": "127.0.0.2"})
	if err != nil {
		t.Fatal(err)
	}
	want := `bind-address: 127.0.0.2
certificates-dir: ""
data-dir: ""
fresh-within: 30s
nodepool-name: a
pool-scope-resources:
- endpoints.v1.
ring-bytes: "67108864"
secure-port: 10270
`
	if string(data) != want {
		t.Errorf("got\n%s", data)
	}
}

// TestFormerConfig: a hub of before gets the flags that it has for those of today.
func TestFormerConfig(t *testing.T) {
	dir := t.TempDir()
	c := HubConfig{
		NodeName: "a", CloudServers: []string{"https://c:1", "pool=https://c:2"}, CloudClientCert: "/pem",
		Health: "127.0.0.2:10267", PoolDoor: "127.0.0.2:10269",
	}
	for _, name := range []string{CloudCAFile, ServingFile} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Write(dir); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, formerFile))
	if err != nil {
		t.Fatal(err)
	}
	want := `class-server:
- pool=https://c:2
cloud-ca-file: DIR/cloud-ca.crt
cloud-client-cert-file: /pem
cloud-client-key-file: /pem
cloud-server:
- https://c:1
enable-coordinator: false
health-bind-address: 127.0.0.2
health-port: 10267
node-authority-file: DIR/node-authority.crt
node-name: a
pool-bind-address: 127.0.0.2
pool-port: 10269
proxy-port: 0
store-generated-key-file: DIR/store.key
tls-cert-file: DIR/serving.pem
tls-private-key-file: DIR/serving.pem
`
	if text := strings.ReplaceAll(string(got), dir, "DIR"); text != want {
		t.Errorf("got\n%s", text)
	}
}

func TestGivenBinariesAreLookedAt(t *testing.T) {
	s := newSpawner(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Find(t.Context(), s, Binaries{HubCommand: self}, nil, HubCommand)
	if err != nil || got[HubCommand] != self {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := Find(t.Context(), s, Binaries{HubCommand: "/nonexistent"}, nil, HubCommand); !errors.Is(
		err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := Find(t.Context(), s, Binaries{HubCommand: self, CoordinatorCommand: t.TempDir()}, nil, HubCommand,
		CoordinatorCommand); err == nil {
		t.Error("a folder was taken for a program")
	}
	t.Setenv(BuiltEnv, filepath.Dir(self))
	if _, err := Find(t.Context(), s, nil, nil, HubCommand); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v: nothing of that name was built", err)
	}
	t.Setenv(BuiltEnv, t.TempDir())
	built := filepath.Join(os.Getenv(BuiltEnv), HubCommand)
	if err := os.WriteFile(built, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := Find(t.Context(), s, nil, nil, HubCommand); err != nil || got[HubCommand] != built {
		t.Errorf("%v, %v", got, err)
	}
}
