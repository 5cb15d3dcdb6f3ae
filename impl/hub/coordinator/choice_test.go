package coordinator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/member"
)

// fakeReplica answers probes as it is told to.
type fakeReplica struct {
	server *httptest.Server

	mu       sync.Mutex
	standing standing
	hangs    bool
	probes   int
	code     int // of all answers; 0: as it stands
}

func (f *fakeReplica) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	f.mu.Lock()
	stands, hangs, code := f.standing, f.hangs, f.code
	f.probes++
	f.mu.Unlock()
	switch {
	case hangs:
		<-req.Context().Done()
		return
	case code != 0:
		w.WriteHeader(code)
		return
	}
	if stands == down || stands == serving && req.URL.Path == "/readyz" {
		w.WriteHeader(http.StatusInternalServerError)
	}
}

func (f *fakeReplica) set(s standing, hangs bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.standing, f.hangs = s, hangs
}

func (f *fakeReplica) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.probes
}

// replicaBed is a hub's client of three replicas, in the order in which it prefers them.
func replicaBed(t *testing.T) ([]*fakeReplica, *Client) {
	t.Helper()
	byHost := map[string]*fakeReplica{}
	var servers []*url.URL
	for range 3 {
		f := &fakeReplica{standing: ready}
		f.server = httptest.NewUnstartedServer(f)
		f.server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13}
		f.server.EnableHTTP2 = true
		f.server.Config.ErrorLog = log.New(io.Discard, "", 0)
		f.server.StartTLS()
		t.Cleanup(f.server.Close)
		u, err := url.Parse(f.server.URL)
		check(t, err)
		servers, byHost[u.Host] = append(servers, u), f
	}
	roots, p := credentials(t, &byHost[servers[0].Host].server.TLS.Certificates[0])
	c := New(Config{
		Leads: func() bool { return false }, Moved: func() {},
		Net: &net.Dialer{}, Servers: At(servers...), Node: "edge-1", Roots: roots, Cert: p,
		Policy:  member.Probing{Timeout: 2 * time.Second},
		OnBytes: func(int) {}, Clock: clock.RealClock{}, Logger: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(c.Close)
	inOrder := make([]*fakeReplica, 0, len(servers))
	for _, r := range c.Replicas() {
		inOrder = append(inOrder, byHost[r.URL.Host])
	}
	return inOrder, c
}

// credentials are those of a server of package httptest.
func credentials(t *testing.T, c *tls.Certificate) (*uplink.Bundle, *uplink.Pair) {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	check(t, err)
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "crt"), cert, 0o600))
	check(t, os.WriteFile(filepath.Join(dir, "pem"),
		append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), cert...), 0o600))
	roots, err := new(uplink.Reloader).Bundle("", filepath.Join(dir, "crt"))
	check(t, err)
	pair, err := new(uplink.Reloader).Pair("", filepath.Join(dir, "pem"))
	check(t, err)
	return roots, pair
}

// probeOnce asks once, in the time that a probe has.
func (c *Client) probeOnce(t *testing.T) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), c.Policy.Timeout)
	defer cancel()
	return c.Healthz(ctx)
}

// TestReplicaInUse: which of three replicas a hub uses after one probe, when it used the first before.
func TestReplicaInUse(t *testing.T) {
	type stand struct {
		standing
		hangs bool
	}
	for name, c := range map[string]struct {
		stands  [3]stand
		leads   bool
		gone    bool // the first refuses connections
		probes  int  // 0: 1
		want    int
		healthy bool
	}{
		"all well": {
			stands: [3]stand{{ready, false}, {ready, false}, {ready, false}}, want: 0, healthy: true,
		},
		"the first is gone": {
			stands: [3]stand{{ready, false}, {down, false}, {ready, false}}, gone: true, want: 2, healthy: true,
		},
		"the first fails": {
			stands: [3]stand{{down, false}, {serving, false}, {ready, false}}, want: 2, healthy: true,
		},
		"the first hangs": {
			stands: [3]stand{{ready, true}, {ready, false}, {down, false}}, want: 1, healthy: true,
		},
		"another hangs": {
			stands: [3]stand{{down, false}, {ready, true}, {serving, false}}, want: 2, healthy: true,
		},
		"fresh may be a moment away": {
			stands: [3]stand{{serving, false}, {ready, false}, {ready, false}}, want: 0, healthy: true,
		},
		"it is not": {
			stands: [3]stand{{serving, false}, {serving, false}, {ready, false}}, probes: 2, want: 2, healthy: true,
		},
		"nobody is fresh": {
			stands: [3]stand{{serving, false}, {serving, false}, {serving, false}}, probes: 3, want: 0, healthy: true,
		},
		"a leader makes it fresh": {
			stands: [3]stand{{serving, false}, {ready, false}, {ready, false}}, leads: true, probes: 3, want: 0, healthy: true,
		},
		"a leader leaves what is down": {
			stands: [3]stand{{down, false}, {ready, false}, {down, false}}, leads: true, want: 1, healthy: true,
		},
		"no majority": {stands: [3]stand{{down, false}, {down, false}, {down, true}}, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			fakes, x := replicaBed(t)
			x.Leads = func() bool { return c.leads }
			moves := 0
			x.Moved = func() { moves++ }
			for i, s := range c.stands {
				fakes[i].set(s.standing, s.hangs)
			}
			if c.gone {
				fakes[0].server.CloseClientConnections()
				fakes[0].server.Close()
			}
			_, using, cancel := x.With(t.Context())
			defer cancel()
			var err error
			for range max(c.probes, 1) {
				err = x.probeOnce(t)
			}
			if (err == nil) != c.healthy {
				t.Errorf("healthy: %v, want %v", err, c.healthy)
			}
			if got := x.InUse().Replica; got != x.Replicas()[c.want] {
				t.Fatalf("%s is used, want number %d", got.URL, c.want)
			}
			if left := c.want != 0; left {
				<-using.Done()
			} else if using.Err() != nil {
				t.Error("the use of the first ended")
			}
			if (moves == 1) != (c.want != 0) {
				t.Errorf("%d moves", moves)
			}
			if name == "all well" && fakes[1].asked()+fakes[2].asked() > 0 {
				t.Error("others were asked")
			}
		})
	}
}

// stepped is a clock that a test sets forward.
type stepped struct {
	clock.RealClock
	ahead time.Duration
}

func (s *stepped) Now() time.Time { return time.Now().Add(s.ahead) }

// TestReplicaAgain: a hub goes back to the replica it prefers, but not at once, and never as leader.
func TestReplicaAgain(t *testing.T) {
	fakes, x := replicaBed(t)
	leads, now := false, &stepped{}
	x.Leads, x.Clock = func() bool { return leads }, now
	fakes[0].set(down, false)
	check(t, x.probeOnce(t))
	if x.InUse().Replica == x.Replicas()[0] {
		t.Fatal("it stays where nothing serves")
	}
	fakes[0].set(ready, false)
	step := func(by time.Duration, want bool) {
		t.Helper()
		now.ahead += by
		check(t, x.probeOnce(t))
		if got := x.InUse().Replica == x.Replicas()[0]; got != want {
			t.Fatalf("back: %v, want %v", got, want)
		}
	}
	step(0, false)
	step(homeAfter/2, false)
	fakes[0].set(serving, false)
	step(homeAfter, false) // it was not ready all the time
	fakes[0].set(ready, false)
	step(time.Second, false)
	leads = true
	step(2*homeAfter, false)
	leads = false
	step(time.Second, false)
	step(homeAfter+time.Second, true)
}

// TestReplicaSpread: hubs of different nodes prefer different replicas.
func TestReplicaSpread(t *testing.T) {
	servers := []*url.URL{{Host: "a"}, {Host: "b"}, {Host: "c"}}
	count := map[string]int{}
	for i := range 300 {
		c := New(Config{
			Servers: At(servers...), Node: "edge-" + string(rune('0'+i%10)) + string(rune('a'+i/10)), Roots: &uplink.Bundle{},
			Cert: &uplink.Pair{}, OnBytes: func(int) {}, Clock: clock.RealClock{}, Logger: slog.Default(),
		})
		count[c.InUse().URL.Host]++
		c.Close()
	}
	for host, n := range count {
		if n < 60 || n > 140 {
			t.Errorf("%d of 300 hubs prefer %s", n, host)
		}
	}
	if len(count) != 3 {
		t.Errorf("hubs prefer %v", count)
	}
}

// TestPrefer: nodes divide among leader hubs, and when one goes, only those nodes go elsewhere that preferred it.
func TestPrefer(t *testing.T) {
	hubs := func(n int) (all []Server) {
		for i := range n {
			all = append(all, Server{URL: &url.URL{Host: fmt.Sprint("10.0.0.", i, ":10269")}, Node: fmt.Sprint("edge-", i)})
		}
		return all
	}
	for _, n := range []int{2, 3, 5} {
		count := map[string]int{}
		for i := range 1000 {
			node := fmt.Sprint("edge-", 100+i)
			first := Prefer(node, hubs(n))[0].Node
			count[first]++
			without := slices.DeleteFunc(hubs(n), func(s Server) bool { return s.Node == "edge-0" })
			if then := Prefer(node, without)[0].Node; first != "edge-0" && then != first {
				t.Fatalf("%s goes from %s to %s because edge-0 went", node, first, then)
			}
			reversed := hubs(n)
			slices.Reverse(reversed)
			if again := Prefer(node, reversed)[0].Node; again != first {
				t.Fatalf("%s prefers %s or %s, as they are told", node, first, again)
			}
		}
		for hub, c := range count {
			if c < 700/n || c > 1300/n {
				t.Errorf("%d of 1000 nodes prefer %s of %d", c, hub, n)
			}
		}
	}
}
