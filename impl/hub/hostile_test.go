package hub

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/documents"
	"github.com/weir-edge/weir/impl/heartbeat"
	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/hub/door"
	"github.com/weir-edge/weir/impl/hub/pooldoor"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/lease"
	"github.com/weir-edge/weir/impl/member"
)

// poured is how much a hostile server sends if nobody stops it; taken is how much of it a hub may take, with what is
// under way.
const (
	poured = 96 << 20
	taken  = 24 << 20
)

// hostile is a client of a coordinator that is somebody else's.
func hostile(t *testing.T, handler http.Handler) *coordinator.Client {
	t.Helper()
	ca, dir := newAuthority(t, "pool"), t.TempDir()
	write(t, dir, map[string][]byte{"ca.crt": ca.pem, "pool.pem": ca.pair("system:node:edge-1", "weir:pool:pool-a")})
	roots, err := new(uplink.Reloader).Bundle("", filepath.Join(dir, "ca.crt"))
	check(t, err)
	cert, err := new(uplink.Reloader).Pair("", filepath.Join(dir, "pool.pem"))
	check(t, err)
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{ca.tls("coordinator")}, MinVersion: tls.VersionTLS13}
	server.EnableHTTP2 = true
	server.StartTLS()
	u, err := url.Parse(server.URL)
	check(t, err)
	c := coordinator.New(coordinator.Config{
		Leads: func() bool { return false }, Moved: func() {},
		Net: door.System{}, Servers: coordinator.At(u), Node: "edge-1", Roots: roots, Cert: cert,
		Policy: member.Probing{Interval: time.Second, Timeout: time.Second, Failures: 1, Healthy: 1}, OnBytes: func(int) {},
		Clock: clock.RealClock{}, Logger: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() {
		c.Close()
		server.CloseClientConnections()
		server.Close()
	})
	return c
}

// pour sends bytes until nobody takes them, and counts them.
func pour(w http.ResponseWriter, sent *atomic.Int64) {
	chunk := []byte(strings.Repeat("a", 64<<10))
	for sent.Load() < poured {
		n, err := w.Write(chunk)
		sent.Add(int64(n))
		if err != nil {
			return
		}
	}
}

// TestHostileCoordinator: what a coordinator sends is bounded, and names are names.
func TestHostileCoordinator(t *testing.T) {
	var document, frame atomic.Int64
	names := []string{"edge-2", "..", ".", "a/b", "a%2fb", "UPPER", "", strings.Repeat("n", 300), "edge-3"}
	named := func(name string) coordinationv1.Lease {
		return coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Annotations: map[string]string{contract.DelegateHeartbeat: contract.Delegated},
			},
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc(contract.DocumentsPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Etag", `"1"`)
		pour(w, &document)
	})
	mux.HandleFunc(coordinator.LeasesPath, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"type":"ADDED","object":{"metadata":{"name":"`)
		pour(w, &frame)
	})
	mux.HandleFunc(lease.Path, func(w http.ResponseWriter, req *http.Request) {
		var list coordinationv1.LeaseList
		for _, name := range names {
			l := named(name)
			list.Items = append(list.Items, l)
			if req.URL.Query().Has("watch") {
				_ = json.NewEncoder(w).Encode(map[string]any{"type": "ADDED", "object": l})
			}
		}
		if !req.URL.Query().Has("watch") {
			_ = json.NewEncoder(w).Encode(list)
		}
	})
	c := hostile(t, mux)
	d := pooldoor.NewDiscovery(pooldoor.DiscoveryConfig{
		Coordinator: c, Forged: func() {}, Clock: clock.RealClock{}, Logger: slog.New(slog.DiscardHandler),
	})
	for _, k := range []documents.Key{{Path: documents.Keys}, {Path: "/apis", Accept: documents.Accept}} {
		document.Store(0)
		if doc, err := d.Fetch(t.Context(), k); err == nil {
			t.Errorf("a document of %d bytes is taken", len(doc.Body))
		}
		if n := document.Load(); n > taken {
			t.Errorf("%d bytes of a document that does not end were taken", n)
		}
	}
	if err := c.WatchLeases(t.Context(), func(coordinator.LeaseEvent) {}); err == nil {
		t.Error("a watch that is one endless event ends well")
	}
	if n := frame.Load(); n > taken {
		t.Errorf("%d bytes of an event that does not end were taken", n)
	}

	want := []string{"edge-2", "edge-3"}
	var seen []string
	r := c.InUse()
	_ = r.WatchLeases(t.Context(), lease.Path, "",
		func(_ string, l *coordinationv1.Lease) { seen = append(seen, l.Name) })
	if !slices.Equal(seen, want) {
		t.Errorf("a watch tells of %q", seen)
	}
	list, err := r.ListLeases(t.Context(), lease.Path, "")
	check(t, err)
	seen = nil
	for i := range list.Items {
		seen = append(seen, list.Items[i].Name)
	}
	if !slices.Equal(seen, want) {
		t.Errorf("a list tells of %q", seen)
	}
}

// TestPoisonedList: Leases that are too large, or none, keep nobody from reading the others, and are counted; a list
// that does not end is left.
func TestPoisonedList(t *testing.T) {
	const nodes, large, strange = 250, 130, 200
	items := make([]json.RawMessage, nodes)
	for i := range items {
		items[i] = json.RawMessage(fmt.Sprintf(`{"metadata":{"name":"edge-%d"}}`, i))
	}
	items[large] = json.RawMessage(`{"metadata":{"name":"evil"},"spec":{"holderIdentity":"` + strings.Repeat("x", 3<<20) +
		`"}}`)
	items[strange] = json.RawMessage(`{"metadata":{"name":"evil"},"spec":{"renewTime":"yesterday"}}`)
	var endless atomic.Bool
	var asked atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc(lease.Path, func(w http.ResponseWriter, req *http.Request) {
		asked.Add(1)
		from, _ := strconv.Atoi(req.URL.Query().Get("continue"))
		limit, err := strconv.Atoi(req.URL.Query().Get("limit"))
		if err != nil || endless.Load() {
			from, limit = 0, 1
		}
		to, more := min(from+limit, nodes), ""
		if to < nodes {
			more = strconv.Itoa(to)
		}
		_ = json.NewEncoder(w).Encode(struct {
			Kind     string            `json:"kind"`
			Metadata map[string]string `json:"metadata"` // first, as API servers do
			Items    []json.RawMessage `json:"items"`
		}{"LeaseList", map[string]string{"resourceVersion": "7", "continue": more}, items[from:to]})
	})
	r := hostile(t, mux).InUse()
	list, err := r.ListLeases(t.Context(), lease.Path, "labelSelector=a%3Db")
	check(t, err)
	if len(list.Items) != nodes-2 || list.Unread != 2 || list.Version != "7" {
		t.Errorf("%d Leases are read, %d are not, at version %q", len(list.Items), list.Unread, list.Version)
	}
	if n := asked.Load(); n > 50 {
		t.Errorf("%d requests", n)
	}
	endless.Store(true)
	list, err = r.ListLeases(t.Context(), lease.Path, "")
	if len(list.Items) > heartbeat.MaxNodes {
		t.Errorf("of an endless list %d are kept, %v", len(list.Items), err)
	}
}
