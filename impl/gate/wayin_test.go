package gate

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/reverse"
	"github.com/weir-edge/weir/impl/testkit"
)

// TestAdmit: only the own user of a hub gets a connection, for the pool and the node that its name has.
func TestAdmit(t *testing.T) {
	b := newBed(t)
	for name, want := range map[string]int{
		"": http.StatusUnauthorized, "system:node:edge-1": http.StatusForbidden, "system:admin": http.StatusForbidden,
		"weir:hub:": http.StatusForbidden, "weir:hub:harbour": http.StatusForbidden,
		"weir:hub:harbour:": http.StatusForbidden,
		"weir:hub::edge-1":  http.StatusForbidden, "xweir:hub:harbour:edge-1": http.StatusForbidden,
		"weir:hubs:harbour:edge-1": http.StatusForbidden,
	} {
		if code, text, _ := b.asks(name, "POST "+contract.ReversePath); code != want {
			t.Errorf("%q: %s", name, text)
		}
	}
	b.rules.deny("weir:hub:harbour:edge-9 post "+contract.ReversePath, nil)
	if code, text, _ := b.asks("weir:hub:harbour:edge-9", "POST "+contract.ReversePath); code != http.StatusForbidden ||
		!strings.Contains(text, "by the filters") {
		t.Error(text)
	}
	if code, text, _ := b.asks("weir:hub:harbour:edge-1", "GET "+contract.ReversePath); code != http.StatusBadRequest {
		t.Error(text)
	}
	if code, text, _ := b.asks("weir:hub:harbour:edge-1", "POST /livez"); code != http.StatusOK {
		t.Error(text)
	}
	b.lead("edge-1")
	if w := b.way.ways.State().Ways; len(w) != 1 || w[0].Pool != "harbour" || w[0].Node != "edge-1" {
		t.Errorf("%+v", w)
	}
}

// TestConnect: what is of a pool goes through its hub, for each whom the filters let pass. All else wants the right to
// the straight path as well, and is dialed straight, but for what nobody dials.
func TestConnect(t *testing.T) {
	b := newBed(t)
	b.lead("edge-1")
	b.rules.deny("prometheus connect "+contract.StraightPath, nil)
	b.rules.deny("mallory connect "+contract.ConnectPath, nil)
	for _, c := range []struct {
		user, to, want string
		asked          []string // after the filters
	}{
		{"prometheus", "10.0.0.7:10250", "200", nil},
		{"prometheus", "edge-1:10250", "200", nil},
		{"prometheus", "10.0.0.7:22", "only port 10250 is in reach", nil},
		{"prometheus", "10.244.0.1:8080", "spec.reach of the Pool does not name it", nil}, // says the leader
		{"prometheus", "edge-2:10250", "no hub that leads it is connected", nil},
		{"prometheus", "10.0.0.8:10250", "pool mill", nil},
		{"prometheus", "192.0.2.1:443", "needs the verb connect of the nonResourceURL " + contract.StraightPath,
			[]string{"prometheus connect " + contract.StraightPath}},
		{"prometheus", "169.254.169.254:80", "needs the verb", []string{"prometheus connect " + contract.StraightPath}},
		{"prometheus", "webhook.default.svc:443", "needs the verb", []string{"prometheus connect " + contract.StraightPath}},
		{"admin", "169.254.169.254:80", "link-local", []string{"admin connect " + contract.StraightPath}},
		{"admin", "[::ffff:10.0.0.7]:10250", "an IPv4 address in IPv6", []string{"admin connect " + contract.StraightPath}},
		{"admin", "127.0.0.1:8443", "loopback", []string{"admin connect " + contract.StraightPath}},
		{"admin", "localhost:8443", "loopback", []string{"admin connect " + contract.StraightPath}},
		{"mallory", "10.0.0.7:10250", "by the filters", nil},
	} {
		b.rules.last()
		code, text, conn := b.asks(c.user, "CONNECT "+c.to)
		if c.want == "200" != (code == http.StatusOK) || !strings.Contains(text, c.want) {
			t.Errorf("%s to %s: %s", c.user, c.to, text)
		}
		want := append([]string{c.user + " connect " + contract.ConnectPath}, c.asked...)
		if got := b.rules.last(); !slices.Equal(got, want) {
			t.Errorf("%s to %s: asked for %q, want %q", c.user, c.to, got, want)
		}
		if code == http.StatusOK {
			_, _ = io.WriteString(conn, "hello")
			said := make([]byte, 5)
			if _, err := io.ReadFull(conn, said); err != nil || string(said) != "hello" {
				t.Errorf("%q, %v", said, err)
			}
		}
		_ = conn.Close()
	}
	if code, text, _ := b.asks("", "CONNECT 10.0.0.7:10250"); code != http.StatusForbidden ||
		!strings.Contains(text, "who calls is not known") {
		t.Error(text)
	}
	req := b.request("admin")
	b.rules.deny("", errors.New("it is away"))
	if _, err := b.way.authorize(req, reverse.Place{}); err == nil || !strings.Contains(err.Error(), "it is away") {
		t.Errorf("%v", err)
	}
}

// TestItself: no address of this machine leads to the gate, and others of its ports are not those of the gate.
func TestItself(t *testing.T) {
	all, err := own(port)
	check(t, err)
	if !slices.Contains(all, netip.MustParseAddrPort("127.0.0.1:8443")) {
		t.Errorf("127.0.0.1 is missing in %v", all)
	}
	i := slices.IndexFunc(all, func(a netip.AddrPort) bool { return a.Addr().Is4() && a.Addr().IsGlobalUnicast() })
	if i < 0 {
		t.Skip("this machine has no address but loopback")
	}
	b := newBed(t)
	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(all[i].Addr().String(), "0"))
	check(t, err)
	defer lis.Close()
	if code, text, _ := b.asks("admin", "CONNECT "+lis.Addr().String()); code != http.StatusOK {
		t.Errorf("another server of this machine: %s", text)
	}
	if code, text, _ := b.asks("admin", "CONNECT "+all[i].String()); code != http.StatusForbidden ||
		!strings.Contains(text, "it is the gate itself") {
		t.Error(text)
	}
}

// TestReview: a hub that may not have its connection any more loses it. No answer changes nothing.
func TestReview(t *testing.T) {
	b := newBed(t)
	b.lead("edge-1")
	b.lead("edge-3")
	passes := func(want ...string) {
		t.Helper()
		testkit.Until(t, patience, "the gate to wait", b.clock.HasWaiters)
		b.rules.last()
		b.clock.Step(reviews)
		var asked []string
		testkit.Until(t, patience, "the review", func() bool {
			asked = append(asked, b.rules.last()...)
			return len(asked) >= len(want)
		})
		slices.Sort(asked)
		if !slices.Equal(asked, want) {
			t.Errorf("asked for %q, want %q", asked, want)
		}
	}
	first := "weir:hub:harbour:edge-1 post " + contract.ReversePath
	third := "weir:hub:harbour:edge-3 post " + contract.ReversePath
	passes(first, third)
	b.rules.deny("", errors.New("kube-apiserver is away"))
	passes(first, third)
	testkit.Until(t, patience, "the gate to wait", b.clock.HasWaiters)
	if n := len(b.leads()); n != 2 {
		t.Errorf("%d hubs are left while nobody says that they may not", n)
	}
	b.rules.deny(first, nil)
	passes(first, third)
	testkit.Until(t, patience, "edge-1 to lose its connection", func() bool {
		return slices.Equal(b.leads(), []string{"edge-3"})
	})
}

// TestLong: requests that are of the way in may take long, and no others.
func TestLong(t *testing.T) {
	for request, want := range map[string]bool{
		"CONNECT /": true, "POST " + contract.ReversePath: true, "GET /livez": false, "POST " + contract.ConnectPath: false,
	} {
		method, path, _ := strings.Cut(request, " ")
		if got := isLong(&http.Request{Method: method, URL: &url.URL{Path: path}}); got != want {
			t.Errorf("%s: %v", request, got)
		}
	}
}

// TestMetrics: each is described, and they count what there was.
func TestMetrics(t *testing.T) {
	b := newBed(t)
	b.lead("edge-1")
	_, _, conn := b.asks("admin", "CONNECT edge-1:10250")
	_ = conn.Close()
	_, _, _ = b.asks("admin", "CONNECT edge-2:10250")
	testkit.Until(t, patience, "the connection to end", func() bool { return b.way.front.State().Open == 0 })
	reg := prometheus.NewPedanticRegistry()
	check(t, reg.Register(b.way))
	all, err := reg.Gather()
	check(t, err)
	got := map[string]float64{}
	for _, f := range all {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	for name, want := range map[string]float64{
		"weir_gate_ways harbour": 1, "weir_gate_ways_total": 1, "weir_gate_connects": 0, "weir_gate_connects_total opened": 1,
		"weir_gate_connects_total no way": 1, "weir_gate_connects_total denied": 0,
	} {
		if n, ok := got[name]; !ok || n != want {
			t.Errorf("%s is %v (%v), want %v: %v", name, n, ok, want, got)
		}
	}
}

// request is one of a user, as the filters pass it on.
func (b *bed) request(name string) (passed *http.Request) {
	req := httptest.NewRequestWithContext(b.t.Context(), http.MethodConnect, "/", http.NoBody)
	b.mu.Lock()
	b.users[req.RemoteAddr] = name
	b.mu.Unlock()
	b.filters(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { passed = r })).ServeHTTP(
		httptest.NewRecorder(), req)
	return passed
}
