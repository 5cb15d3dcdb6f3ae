package togate

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/hub/hubtest"
)

// TestNodes: only what kube-apiserver says of a Node of this pool, of that name, counts.
func TestNodes(t *testing.T) {
	h := newLeadingHub(t, told(directory.Gate{}))
	code := func(n int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", n) }
	}
	node := func(name string, addresses ...string) string { return nodeText(name, hubtest.PoolName, addresses...) }
	hostname := strings.ReplaceAll(node("edge-1", "10.0.0.7"), "InternalIP", "Hostname")
	for about, c := range map[string]struct {
		answer http.HandlerFunc
		want   string // addresses; or of the error
	}{
		"it is of the pool":      {nodes1("edge-1", hubtest.PoolName, "10.0.0.7", "fd00::7"), "10.0.0.7,fd00::7"},
		"it is nowhere":          {nodes1("edge-1", hubtest.PoolName), ""},
		"an address that is bad": {nodes1("edge-1", hubtest.PoolName, "here", "10.0.0.7"), "10.0.0.7"},
		"another pool's":         {nodes1("edge-1", "mill", "10.0.0.7"), "error: it is no node of pool harbour"},
		"another node":           {nodes1("edge-2", hubtest.PoolName, "10.0.0.7"), "error: it is no node of pool"},
		"no such node":           {says(`{"items":[]}`), "error: it is no node of pool"},
		"two":                    {says(`{"items":[` + node("edge-1") + "," + node("edge-2") + `]}`), "error: it is no node"},
		"a hostname":             {says(`{"items":[` + hostname + `]}`), ""},
		"403":                    {code(http.StatusForbidden), "error: answer 403"},
		"500":                    {code(http.StatusInternalServerError), "error: answer 500"},
		"201":                    {code(http.StatusCreated), "error: answer 201"},
		"nothing":                {says(""), "error: read its answer"},
		"garbage":                {says("<html>"), "error: read its answer"},
		"too much": {says(`{"items":[` + node("edge-1", "10.0.0.7") + `],"x":"` + strings.Repeat("x", maxNode) + `"}`),
			"error: read its answer"},
		"no answer": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "error: "},
	} {
		h.answers(c.answer)
		h.way.nodes.known = nil
		all, err := h.way.nodes.addresses(t.Context(), "edge-1")
		var text []string
		for _, a := range all {
			text = append(text, a.String())
		}
		got := strings.Join(text, ",")
		want, fails := strings.CutPrefix(c.want, "error: ")
		if fails != (err != nil) || fails && !strings.Contains(err.Error(), want) || !fails && got != want {
			t.Errorf("%s: %q, %v", about, got, err)
		}
		if fails && len(h.way.nodes.known) > 0 {
			t.Errorf("%s: it is remembered", about)
		}
		for _, q := range h.queries() {
			if q != "metadata.name=edge-1 "+contract.NodePoolLabel+"=harbour" {
				t.Errorf("%s: asked for %q", about, q)
			}
		}
	}
}

// TestHostileNames: what is no name of a node is not put into a question.
func TestHostileNames(t *testing.T) {
	h := newLeadingHub(t, told(directory.Gate{}))
	h.answers(nodes1("edge-1", hubtest.PoolName, "10.0.0.7"))
	for _, name := range []string{
		"", "a,b", "x=y", "edge-1,spec.unschedulable=true", "edge-1&labelSelector=", "../secrets", "Edge-1", "edge-1\n",
		strings.Repeat("x", 300),
	} {
		_, err := h.way.nodes.addresses(t.Context(), name)
		if err == nil || len(err.Error()) > 200 {
			t.Errorf("%q: %v", name, err)
		}
	}
	if q := h.queries(); len(q) > 0 {
		t.Errorf("asked for %q", q)
	}
}

// TestBelieved: an answer counts for five minutes, and a bounded number of them is kept.
func TestBelieved(t *testing.T) {
	h := newLeadingHub(t, told(directory.Gate{}))
	at := clocktesting.NewFakeClock(time.Now())
	x := &nodes{pool: h.way.nodes.pool, cloud: h.way.nodes.cloud, clock: at}
	is := func(want string, queries int) {
		t.Helper()
		all, err := x.addresses(t.Context(), "edge-1")
		if n := len(h.queries()); err != nil || !slices.Equal(all, []netip.Addr{netip.MustParseAddr(want)}) || n != queries {
			t.Errorf("%v, %v, asked %d times: want %s after %d", all, err, n, want, queries)
		}
	}
	h.answers(nodes1("edge-1", hubtest.PoolName, "10.0.0.7"))
	is("10.0.0.7", 1)
	h.answers(nodes1("edge-1", hubtest.PoolName, "10.0.0.8"))
	is("10.0.0.7", 0)
	at.Step(believed - time.Second)
	is("10.0.0.7", 0)
	at.Step(time.Second)
	is("10.0.0.8", 1)
	h.answers(nodes1("edge-1", "mill", "10.0.0.8"))
	at.Step(believed)
	if all, err := x.addresses(t.Context(), "edge-1"); err == nil {
		t.Errorf("it has left the pool, and is at %v", all)
	}
	for i := range maxNodes {
		x.known[strings.Repeat("x", i+1)] = node{until: at.Now().Add(believed)}
	}
	h.answers(nodes1("edge-1", hubtest.PoolName, "10.0.0.8"))
	is("10.0.0.8", 1)
	if n := len(x.known); n > maxNodes {
		t.Errorf("%d are kept", n)
	}
}
