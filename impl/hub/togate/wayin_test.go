package togate

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/hub/hubtest"
	"github.com/weir-edge/weir/impl/reverse"
)

var atEdge1 = reverse.Place{Pool: hubtest.PoolName, Node: "edge-1", Addr: netip.MustParseAddr("10.0.0.7")}

// told is what a pool with a coordinator is told of a gate.
func told(g directory.Gate) directory.Entry {
	return directory.Entry{Mode: contract.ModeCoordinator, Gate: g}
}

// dial opens a connection through a gate, or says why not.
func dial(t testing.TB, g *gate, in reverse.Place, address string) (net.Conn, error) {
	t.Helper()
	c, err := g.ways.Dial(context.Background(), in, address)
	if err == nil {
		t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

// TestWanted: a hub that leads wants connections to a gate that has ways. Of leader hubs the first two do.
func TestWanted(t *testing.T) {
	pool := hubtest.NewPool(t)
	leads := true
	x := &WayIn{WayInConfig: WayInConfig{Node: "edge-1", Directory: pool.Directory, Leads: func() bool { return leads }}}
	g := directory.Gate{Server: "https://gate:8443", Authorities: string(pool.Authority.CertPEM()), Ways: 2}
	none := g
	none.Ways = 0
	named := func(names ...string) (all []directory.Leader) {
		for i, n := range names {
			all = append(all, directory.Leader{
				Node: n, Addresses: []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 1)},
			})
		}
		return all
	}
	if x.wanted() != (directory.Gate{}) {
		t.Error("of which nobody told")
	}
	for about, c := range map[string]struct {
		mode    string
		g       directory.Gate
		leads   bool
		leaders []directory.Leader
		want    bool
	}{
		"leads":                  {contract.ModeCoordinator, g, true, nil, true},
		"follows":                {contract.ModeCoordinator, g, false, nil, false},
		"no ways":                {contract.ModeCoordinator, none, true, nil, false},
		"no gate":                {contract.ModeCoordinator, directory.Gate{}, true, nil, false},
		"the first one":          {contract.ModeLeaderHubs, g, true, named("edge-1", "edge-2", "edge-3"), true},
		"the second one":         {contract.ModeLeaderHubs, g, true, named("edge-2", "edge-1", "edge-3"), true},
		"the third one":          {contract.ModeLeaderHubs, g, true, named("edge-2", "edge-3", "edge-1"), false},
		"the only one":           {contract.ModeLeaderHubs, g, true, named("edge-1"), true},
		"not named":              {contract.ModeLeaderHubs, g, true, named("edge-2"), false},
		"nobody is named":        {contract.ModeLeaderHubs, g, true, nil, false},
		"named, and leads not":   {contract.ModeLeaderHubs, g, false, named("edge-1"), false},
		"third of a coordinator": {contract.ModeCoordinator, g, true, named("edge-2", "edge-3", "edge-1"), true},
	} {
		leads = c.leads
		pool.Tell(t, directory.Entry{Mode: c.mode, Gate: c.g, Leaders: c.leaders})
		if got := x.wanted(); got != (directory.Gate{}) != c.want || c.want && got != c.g {
			t.Errorf("%s: %+v", about, got)
		}
	}
}

// TestLeads: a hub connects while it leads and the directory names ways. When it leads no more it takes no new
// connections, and those that are open go on. When it ends they end.
func TestLeads(t *testing.T) {
	g := newGate(t)
	h := newLeadingHub(t, told(g.entry(0)))
	h.passes(3)
	if n := g.asked(); n != 0 || len(h.way.Status()) != 0 {
		t.Errorf("%d connections, %v without ways", n, h.way.Status())
	}
	h.pool.Tell(t, told(g.entry(1)))
	h.until("the connection", g.has(1))
	c, err := dial(t, g, atEdge1, kubelet)
	check(t, err)
	echoes(t, c)
	if s := h.way.Status(); len(s) != 1 || !s[0].Connected || s[0].Open != 1 {
		t.Errorf("%+v", s)
	}
	h.leads.Store(false)
	h.until("the hub to take no more", func() bool {
		more, err := dial(t, g, atEdge1, kubelet)
		if err == nil {
			_ = more.Close()
		}
		return err != nil
	})
	if len(h.way.Status()) != 0 {
		t.Error("connections are to be kept by a hub that leads no more")
	}
	echoes(t, c)
	h.leads.Store(true)
	h.until("another connection", func() bool {
		more, err := dial(t, g, atEdge1, kubelet)
		if err == nil {
			_ = more.Close()
		}
		return err == nil
	})
	echoes(t, c)
	h.end()
	h.until("all to end", g.has(0))
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("a connection goes on although the hub has ended")
	}
	var none *WayIn
	if none.Status() != nil {
		t.Error("the status of none")
	}
}

// TestReplicas: of several replicas behind one address each has one connection.
func TestReplicas(t *testing.T) {
	a, b := newGate(t), newGate(t)
	h := newLeadingHub(t, told(directory.Gate{}))
	one, other := a.Listener.Addr().String(), b.Listener.Addr().String()
	h.mu.Lock()
	h.turn = []string{one, one, one, other}
	h.mu.Unlock()
	e := a.entry(2)
	e.Authorities += hubtest.Authorities(b.Server)
	h.pool.Tell(t, told(e))
	h.until("a connection to each", func() bool { return a.has(1)() && b.has(1)() })
	before := a.asked() + b.asked()
	h.passes(60)
	if !a.has(1)() || !b.has(1)() || a.asked()+b.asked() != before {
		t.Errorf("%+v, %+v, asked %d times more", a.ways.State().Ways, b.ways.State().Ways, a.asked()+b.asked()-before)
	}
	b.CloseClientConnections()
	b.ways.End(hubtest.PoolName, "hub-1")
	h.until("that one to have one again", func() bool { return b.ways.State().Came == 2 && b.has(1)() && a.has(1)() })
}

// TestWayInAnotherGate: a hub connects to the gate of which it is told last, and leaves the one before.
func TestWayInAnotherGate(t *testing.T) {
	a, b := newGate(t), newGate(t)
	h := newLeadingHub(t, told(a.entry(1)))
	h.until("the connection", a.has(1))
	h.pool.Tell(t, told(b.entry(1)))
	h.until("the connection to the other one only", func() bool { return a.has(0)() && b.has(1)() })
	h.pool.Tell(t, told(directory.Gate{}))
	h.until("none", func() bool { return a.has(0)() && b.has(0)() })
	h.pool.Tell(t, told(directory.Gate{Server: a.URL, Authorities: string(h.pool.Authority.CertPEM()), Ways: 1}))
	before := a.asked()
	h.until("a stranger not to be taken", func() bool {
		s := h.way.Status()
		return len(s) == 1 && strings.Contains(s[0].Err, "certificate")
	})
	if a.asked() != before {
		t.Error("it was asked")
	}
}

// TestWayInCertificate: each connection is opened with the certificate that the hub has then.
func TestWayInCertificate(t *testing.T) {
	g := newGate(t)
	h := newLeadingHub(t, told(g.entry(1)))
	h.until("the connection", g.has(1))
	h.cert.Show(t, "hub-2")
	h.passes(5)
	if n := g.asked(); n != 1 {
		t.Errorf("asked %d times for another certificate", n)
	}
	g.ways.End(hubtest.PoolName, "hub-1")
	h.until("the other certificate to be shown", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return slices.Equal(g.shown, []string{"hub-1", "hub-2"})
	})
}

// TestReach: what the gate names is dialed if kube-apiserver says that it is an address of that node of the pool, or if
// spec.reach names it.
func TestReach(t *testing.T) {
	g := newGate(t)
	e := told(g.entry(1))
	e.Reach = directory.Reach{
		{Prefix: netip.MustParsePrefix("10.244.0.0/16"), First: 8080, Last: 8081},
		reverse.AllPorts(netip.MustParsePrefix("10.245.0.1/32")),
	}
	h := newLeadingHub(t, e)
	h.until("the connection", g.has(1))
	node := func(name string) reverse.Place { return reverse.Place{Pool: hubtest.PoolName, Node: name} }
	for _, c := range []struct{ node, address, want string }{
		{"edge-1", "10.0.0.7:10250", ""},
		{"edge-1", "10.0.0.7:22", "only port 10250"},
		{"edge-1", "10.0.0.8:10250", "it is no node of the pool"},
		{"", "10.0.0.7:10250", "it is no node of the pool"},
		{"edge-2", "10.0.0.7:10250", "it is no node of pool harbour"},
		{"", "10.244.0.1:8080", ""},
		{"edge-1", "10.244.0.1:8080", ""},
		{"", "10.244.0.1:10250", "does not name it"},
		{"", "10.245.0.1:8080", ""},
		{"", "10.245.0.2:8080", "does not name it"},
		{"a,b", "10.0.0.7:10250", "is no name of a node"},
	} {
		_, err := dial(t, g, node(c.node), c.address)
		if err == nil != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q %s: %v, want %q", c.node, c.address, err, c.want)
		}
	}
	e.Reach = nil
	h.pool.Tell(t, e)
	var refused *reverse.Error
	if _, err := dial(t, g, node(""), "10.245.0.1:8080"); !errors.As(err, &refused) || refused.Kind != reverse.Refused {
		t.Errorf("what is named no more: %v", err)
	}
	r, err := h.way.reach(t.Context(), "", "10.0.0.9")
	if err != nil || !slices.Equal(r.Never, []netip.Addr{netip.MustParseAddr("10.0.0.9")}) || r.Nodes != nil {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := h.way.reach(t.Context(), "", "gate.example"); err != nil || r.Never != nil {
		t.Errorf("%+v, %v", r, err)
	}
}
