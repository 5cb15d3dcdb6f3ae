package hub

import (
	"bufio"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-edge/weir/impl/contract"
)

// shares has the cloud tell the pool its leader hubs and what it shares.
func (p *namedBed) shares(scope string, leaders ...string) {
	p.t.Helper()
	var at []corev1.EndpointSubset
	for _, l := range p.told(leaders...).Leaders {
		a := l.Addresses[0]
		at = append(at, corev1.EndpointSubset{
			Addresses: []corev1.EndpointAddress{{IP: a.Addr().String(), NodeName: &l.Node}},
			Ports:     []corev1.EndpointPort{{Name: contract.LeaderHubPort, Port: int32(a.Port())}},
		})
	}
	p.clouds[0].tell("pool-a", map[string]string{contract.LeaderHubConnectivity: "true", contract.LeaderHubScope: scope},
		at...)
}

// relayed are the resources that a hub relays and holds.
func (p *namedBed) relayed(node string) (all []string) {
	for _, r := range p.hubs[node].hub.Status().Resources {
		if r.Synced {
			all = append(all, r.Resource)
		}
	}
	return all
}

// ends reads a watch until its end, which has to come in order, and tells the frames.
func ends(t *testing.T, resp *http.Response) (frames []string) {
	t.Helper()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		frames = append(frames, lines.Text())
	}
	check(t, lines.Err())
	check(t, resp.Body.Close())
	return frames
}

// TestScopeLive: the pool shares something else while it runs. What is removed ends in order and by version, and its
// clients go on at the cloud. What is added, the cloud answers until it is there: a resource that the cloud does not
// know disturbs nothing, and is relayed when the cloud has it, listed there by the leader hub alone. What is shared
// before and after goes on. A hub that restarts without the cloud begins with what it was told.
func TestScopeLive(t *testing.T) {
	const endpoints, endpointSlices, widgets = "endpoints.v1.", "endpointslices.v1.discovery.k8s.io",
		"widgets.v1.example.com"
	nodes := []string{"edge-1", "edge-2"}
	p := newNamedBed(t, nodes...)
	cloud := p.clouds[0]
	cloud.put("default", "first")
	p.start(nodes...)
	p.name("edge-1")
	p.leads("edge-1")
	p.reads([]string{"edge-2"}, "edge-1")
	for _, n := range nodes {
		p.shows(n, "first")
	}
	watches := map[string]<-chan string{}
	for _, n := range nodes {
		watches[n] = p.watches(n)
	}
	follower := p.hubs["edge-2"]
	client := follower.client(nil)
	open := func(path, rest string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			follower.url()+path+"?watch=1&allowWatchBookmarks=true"+rest, nil)
		check(t, err)
		req.Header.Set(alice[0], alice[1])
		resp, err := client.Do(req)
		check(t, err)
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("watch of %s: %s", path, resp.Status)
		}
		return resp
	}
	const slicesPath, widgetsPath = "/apis/discovery.k8s.io/v1/endpointslices", "/apis/example.com/v1/widgets"
	version := follower.hub.sources.Named(endpointSlices).Relay.Status().Version
	old := open(slicesPath, fmt.Sprint("&resourceVersion=", version))
	before := p.lists()

	p.shares("/v1/endpoints,example.com/v1/widgets", "edge-1")
	frames := ends(t, old)
	if len(frames) != 1 || !strings.Contains(frames[0], `"BOOKMARK"`) ||
		!strings.Contains(frames[0], strconv.FormatUint(version, 10)) {
		t.Errorf("the watch of what is shared no more ends with %q", frames)
	}
	for _, n := range nodes {
		eventually(t, n+" to relay the rest only", func() bool { return slices.Equal(p.relayed(n), []string{endpoints}) })
		eventually(t, n+" to tell what it does not know", func() bool {
			return slices.ContainsFunc(p.hubs[n].hub.Status().Unknown,
				func(s string) bool { return strings.HasPrefix(s, widgets+": ") })
		})
		if resp, _ := get(t, p.hubs[n].client(nil),
			"http://"+p.hubs[n].hub.HealthAddr().String()+"/readyz"); resp.StatusCode != http.StatusOK {
			t.Errorf("%s is not ready: %s", n, resp.Status)
		}
	}
	next := open(slicesPath, fmt.Sprint("&timeoutSeconds=1&resourceVersion=", version))
	if frames := ends(t, next); next.Header.Get(contract.AgeHeader) != "" ||
		slices.ContainsFunc(frames, func(f string) bool { return strings.Contains(f, `"ERROR"`) }) {
		t.Errorf("the next watch is answered by a relay, or with %q", frames)
	}
	if resp, _ := get(t, client, follower.url()+widgetsPath, alice...); resp.StatusCode != http.StatusNotFound {
		t.Errorf("the cloud does not have it, and the hub answers %s", resp.Status)
	}
	if got := p.lists(); !slices.Equal(got, before) {
		t.Errorf("these listed at the cloud: %v, want %v as before", got, before)
	}

	cloud.install("w-1", "w-2")
	for _, n := range nodes {
		eventually(t, n+" to relay what was added", func() bool {
			return slices.Equal(p.relayed(n), []string{endpoints, widgets})
		})
	}
	if got, want := p.lists(), []string{"edge-1 3"}; !slices.Equal(got, want) {
		t.Errorf("these listed at the cloud: %v, want %v", got, want)
	}
	resp, body := get(t, client, follower.url()+widgetsPath, alice...)
	if resp.Header.Get(contract.AgeHeader) == "" || strings.Count(body, `"kind":"Widget"`) != 2 {
		t.Errorf("the list of what was added is the cloud's, or it is %q", body)
	}
	early := open(widgetsPath, "&timeoutSeconds=1&resourceVersion=51") // of before the relay
	if frames := ends(t, early); early.Header.Get(contract.AgeHeader) != "" {
		t.Errorf("a watch that began before the relay is answered by it: %q", frames)
	}

	cloud.put("default", "second")
	for _, n := range nodes {
		if got := <-watches[n]; got != "second" {
			t.Errorf("the watch at %s shows %q", n, got)
		}
		for _, r := range p.hubs[n].hub.Status().Resources { // what is not there yet may be asked for more than once
			if r.Resource == endpoints && r.Lists.Total() != 1 {
				t.Errorf("%s listed %s %d times", n, r.Resource, r.Lists.Total())
			}
		}
	}

	p.stops["edge-2"]()
	p.links["edge-2"].set(true)
	follower.config.PoolScopeResources = nil
	p.start("edge-2")
	if got, want := p.relayed("edge-2"), []string{endpoints, widgets}; !slices.Equal(got, want) {
		t.Errorf("without the cloud it begins with %v, want %v", got, want)
	}
}
