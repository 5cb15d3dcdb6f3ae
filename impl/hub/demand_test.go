package hub

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/weir-edge/weir/impl/contract"
)

// TestSharedByDemand: what a pool may share crosses no link until a client reads it, is listed once, by the leader hub,
// whoever reads it, and ends everywhere when nobody reads it any more.
func TestSharedByDemand(t *testing.T) {
	const endpoints, list, watch = "endpoints.v1.", "/api/v1/endpoints?resourceVersion=0",
		"/api/v1/endpoints?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	nodes := []string{"edge-1", "edge-2", "edge-3"}
	p := newNamedBed(t, nodes...)
	cloud := p.clouds[0]
	cloud.put("default", "first")
	for _, n := range nodes {
		p.hubs[n].config.Linger = 3 * time.Second
	}
	p.start(nodes...)
	p.name("edge-1")
	p.reads(nodes[1:], "edge-1")
	ask := func(node, path string, as ...string) *http.Response {
		t.Helper()
		resp, _ := get(t, p.hubs[node].client(nil), p.hubs[node].url()+path, as...)
		return resp
	}
	none := func(when string) {
		t.Helper()
		for _, n := range nodes {
			if s := p.hubs[n].hub.Status(); len(s.Resources) > 0 || !slices.Equal(s.Idle, twoResources) {
				t.Errorf("%s: %s relays %+v, idle are %q", when, n, s.Resources, s.Idle)
			}
		}
	}
	lists := func() []string { // of hubs
		return slices.DeleteFunc(p.lists(), func(who string) bool { return !strings.HasPrefix(who, "edge-") })
	}
	none("at the start")
	ask("edge-2", "/api/v1/endpoints", alice...)                                             // what a person asks for once
	ask("edge-2", "/api/v1/namespaces/default/endpoints?watch=1&timeoutSeconds=1", alice...) // a part
	cloud.set(func() {
		cloud.allow = func(user string, _ *authorizationv1.ResourceAttributes) bool { return user != "mallory" }
	})
	ask("edge-2", list, "Authorization", "Bearer mallory")
	none("nobody reads all of it who may")
	if all := lists(); len(all) > 0 {
		t.Errorf("these hubs listed: %q", all)
	}

	ctx, end := context.WithCancel(t.Context())
	defer end()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.hubs["edge-2"].url()+watch, nil)
	check(t, err)
	req.Header.Set(alice[0], alice[1])
	reads, err := p.hubs["edge-2"].client(nil).Do(req)
	check(t, err)
	defer reads.Body.Close()
	first := make([]byte, 1<<10)
	n, err := reads.Body.Read(first)
	check(t, err)
	if shown := string(first[:n]); reads.Header.Get(contract.AgeHeader) == "" || !strings.Contains(shown, `"first"`) {
		t.Errorf("the first watch is answered by the cloud, or with %q", shown)
	}
	for _, n := range nodes[:2] {
		if got := p.relayed(n); !slices.Equal(got, []string{endpoints}) {
			t.Errorf("%s relays %q", n, got)
		}
	}
	if got := p.relayed("edge-3"); len(got) > 0 {
		t.Errorf("nobody reads at edge-3, which relays %q", got)
	}
	if resp := ask("edge-1", list, alice...); resp.Header.Get(contract.AgeHeader) == "" {
		t.Error("a list at the leader hub is the cloud's")
	}
	if got, want := lists(), []string{"edge-1 1"}; !slices.Equal(got, want) {
		t.Errorf("these hubs listed: %q, want %q", got, want)
	}

	end()
	_, _ = io.Copy(io.Discard, reads.Body)
	for _, n := range slices.Backward(nodes[:2]) {
		eventually(t, n+" to relay nothing", func() bool { return len(p.hubs[n].hub.Status().Resources) == 0 })
	}
	none("nobody reads any more")
	if resp := ask("edge-3", list, alice...); resp.Header.Get(contract.AgeHeader) == "" {
		t.Error("a list is the cloud's")
	}
	if got, want := lists(), []string{"edge-1 2"}; !slices.Equal(got, want) {
		t.Errorf("these hubs listed: %q, want %q", got, want)
	}
}

// TestSharedAlone: a hub without a pool relays what is read, and nothing else.
func TestSharedAlone(t *testing.T) {
	b := newBed(t, 1)
	b.config.Linger = 3 * time.Second
	b.clouds[0].put("default", "first")
	b.start()
	if s := b.hub.Status(); len(s.Resources) > 0 || !slices.Equal(s.Idle, twoResources) {
		t.Errorf("at the start it relays %+v, idle are %q", s.Resources, s.Idle)
	}
	resp, body := get(t, b.client(nil), b.url()+"/api/v1/endpoints?resourceVersion=0", alice...)
	if resp.Header.Get(contract.AgeHeader) == "" || !strings.Contains(body, `"first"`) {
		t.Errorf("the first list is the cloud's, or it is %q", body)
	}
	eventually(t, "it to relay nothing again", func() bool { return len(b.hub.Status().Resources) == 0 })
}
