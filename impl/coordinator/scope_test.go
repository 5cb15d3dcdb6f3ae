package coordinator_test

import (
	"bufio"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// relays tells which resources a coordinator has, those that hold something with a star.
func (c *caller) relays() (all []string) {
	for _, r := range c.state().Resources {
		if r.Synced {
			r.Resource += "*"
		}
		all = append(all, r.Resource)
	}
	return all
}

// open begins to read a watch, whose frames come until it ends.
func (c *caller) open(path string) <-chan string {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.url.String()+path, nil)
	check(c.t, err)
	resp, err := c.http.Do(req)
	check(c.t, err)
	frames, done := make(chan string, 10), make(chan struct{})
	go func() {
		defer close(done)
		defer close(frames)
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			frames <- lines.Text()
		}
	}()
	c.t.Cleanup(func() {
		resp.Body.Close()
		<-done
	})
	return frames
}

// TestScopeLive: a coordinator relays what its leader says that the pool shares. A resource that comes makes nothing
// unready while the leader does not have it yet, and is in discovery. One that goes ends its watches in order. The
// watch of a third goes on. A restart without a leader begins with the same.
func TestScopeLive(t *testing.T) {
	const endpoints, widgets = "endpoints.v1.", "widgets.v1.example.com"
	of := func(name string) *relay.Relay {
		res, err := relay.ParseResource(name)
		check(t, err)
		r, err := relay.New(relay.Config{Resource: res})
		check(t, err)
		return r
	}
	p := newPool(t)
	s := p.start()
	hub, viewer := s.hub("a"), s.viewer()
	leader, gone := leaderRelay(t, 100), of(endpoints)
	check(t, gone.Replace(100, nil))
	shown := hub.show(leader, gone)
	tell := func(scope ...directory.Shared) { hub.brings(directory.Entry{Scope: scope}) }
	hub.elect("a_1")
	eventually(t, "what flags name", func() bool {
		return slices.Equal(viewer.relays(), []string{endpoints + "*", slicesName + "*"})
	})
	stays, ends := viewer.open(slicesPath+"?watch=1&resourceVersion=100"),
		viewer.open("/api/v1/endpoints?watch=1&allowWatchBookmarks=true&resourceVersion=100")

	shared := directory.Shared{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}
	added := directory.Shared{Group: "example.com", Version: "v1", Resource: "widgets"}
	tell(shared, added)
	eventually(t, "what nobody knows to be told", func() bool { return len(viewer.state().UnknownResources) == 1 })
	added.Kind = "Widget"
	tell(shared, added)
	eventually(t, "another scope", func() bool {
		return slices.Equal(viewer.relays(), []string{slicesName + "*", widgets})
	})
	if frame, last := <-ends, <-ends; !strings.Contains(frame, `"BOOKMARK"`) || last != "" {
		t.Errorf("the watch of what is relayed no more ends with %q, %q", frame, last)
	}
	if st := viewer.state(); !st.Ready {
		t.Errorf("not ready: %+v", st)
	}
	viewer.want(http.StatusNotFound, http.MethodGet, "/api/v1/endpoints", "")
	if ready := viewer.want(http.StatusOK, http.MethodGet, "/readyz?verbose", ""); !strings.Contains(
		ready, "[+]relays ok") {
		t.Errorf("readyz: %s", ready)
	}

	custom := of(widgets + "=Widget")
	o, err := wire.ParseObject(wire.JSON,
		[]byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"namespace":"default","name":"w","uid":"w",`+
			`"resourceVersion":"50"}}`))
	check(t, err)
	check(t, custom.Replace(101, []*wire.Object{o}))
	shown.relays.Add(custom)
	eventually(t, "what was added", func() bool {
		return slices.Equal(viewer.relays(), []string{slicesName + "*", widgets + "*"})
	})
	const path = "/apis/example.com/v1/widgets"
	if list := viewer.want(http.StatusOK, http.MethodGet, path, ""); strings.Count(list, `"name":"w"`) != 1 {
		t.Error(list)
	}
	for at, want := range map[string]string{
		"/apis": `"name":"example.com"`, "/apis/example.com": `"groupVersion":"example.com/v1"`,
		"/apis/example.com/v1": `"kind":"Widget"`,
	} {
		if found := viewer.want(http.StatusOK, http.MethodGet, at, ""); !strings.Contains(found, want) {
			t.Errorf("%s has no %s: %s", at, want, found)
		}
	}
	hub.want(http.StatusMethodNotAllowed, http.MethodPost, "/apis/example.com/v1/namespaces/default/widgets", "{}")
	put(t, leader, "two", 105)
	if frame := <-stays; !strings.Contains(frame, `"two"`) {
		t.Errorf("the watch of what stays shows %q", frame)
	}

	s.stop()
	again := p.start().viewer()
	if got, want := again.relays(), []string{slicesName + "*", widgets + "*"}; !slices.Equal(got, want) {
		t.Errorf("after a restart it has %v, want %v", got, want)
	}
	again.want(http.StatusOK, http.MethodGet, path, "")
}
