package coordinator_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source"
)

const slicesName = "endpointslices.v1.discovery.k8s.io"

// push feeds the coordinator as a leader's hub does. ended is sent how the feed ended.
func (c *caller) push(r *relay.Relay, term contract.Term) (ended <-chan error) {
	ctx, cancel := context.WithCancel(context.Background())
	c.t.Cleanup(cancel)
	done := make(chan error, 1)
	go func() {
		done <- source.Push(ctx, source.PushConfig{
			Relay: r, Term: term, Coordinator: &source.Upstream{Name: "coordinator", URL: c.url, Client: c.http},
		})
	}()
	return done
}

// reached tells the version of the relay of EndpointSlices.
func (c *caller) reached() uint64 { return c.slices().Version }

// slices is what the status tells of the relay of EndpointSlices.
func (c *caller) slices() (s resourceState) {
	c.t.Helper()
	for _, r := range c.state().Resources {
		if r.Resource == slicesName {
			return r
		}
	}
	c.t.Fatalf("the status does not tell of %s", slicesName)
	return s
}

func TestFeed(t *testing.T) {
	s := newPool(t).start()
	a, b, viewer := s.hub("a"), s.hub("b"), s.viewer()
	term := a.elect("a_1")
	leader := leaderRelay(t, 100)
	ended := a.push(leader, term)
	eventually(t, "the list", func() bool { return viewer.reached() == 100 })
	put(t, leader, "two", 101)
	eventually(t, "an event", func() bool { return viewer.reached() == 101 })

	answer := viewer.want(http.StatusOK, http.MethodGet, slicesPath, "")
	for _, want := range []string{`"resourceVersion":"101"`, `"uid":"uid-one"`, `"name":"two"`, `"creationTimestamp":"2001-09-09T01:46:40Z"`} {
		if !strings.Contains(answer, want) {
			t.Errorf("%s has no %s", answer, want)
		}
	}
	state := viewer.state()
	if state.Pool != "p" || state.Term != term.String() || contract.NodeOfIdentity(state.Leader) != "a" || state.Ready {
		t.Errorf("status %+v", state)
	}
	for _, r := range state.Resources {
		if fed := r.Resource == slicesName; r.Synced != fed || r.Ready != fed || (r.Feeder == "a") != fed || (r.ProgressAgeSeconds != nil) != fed {
			t.Errorf("%+v", r)
		}
	}
	ready := viewer.want(http.StatusInternalServerError, http.MethodGet, "/readyz?verbose", "")
	if !strings.Contains(ready, "[+]relay-"+slicesName) && !strings.Contains(ready, "[-]") {
		t.Errorf("readyz: %s", ready)
	}

	// Another takes the Lease: the feed ends before it writes once more.
	s.clear()
	next := b.elect("b_1")
	put(t, leader, "late", 102)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "coordinator ended the feed") {
		t.Errorf("the feed of the old leader ended with %v", err)
	}
	if v := viewer.reached(); v != 101 {
		t.Errorf("the old leader wrote: %d", v)
	}
	follower := leaderRelay(t, 100)
	put(t, follower, "two", 101)
	put(t, follower, "three", 105)
	b.push(follower, next)
	eventually(t, "the new leader's events", func() bool { return viewer.reached() == 105 })
}

func TestFeedIsRefused(t *testing.T) {
	s := newPool(t).start()
	a, b := s.hub("a"), s.hub("b")
	first := a.elect("a_1")
	s.clear()
	b.elect("b_1")
	s.clear()
	term := a.elect("a_2")
	path := contract.FeedPath("discovery.k8s.io", "v1", "endpointslices")
	for name, c := range map[string]struct {
		hub  *caller
		term string
		code int
	}{
		"no term":           {a, "", http.StatusBadRequest},
		"not a term":        {a, "soon", http.StatusBadRequest},
		"of the future":     {a, contract.Term{Incarnation: term.Incarnation, Version: term.Version + 1}.String(), http.StatusConflict},
		"of another life":   {a, contract.Term{Incarnation: "other", Version: term.Version}.String(), http.StatusConflict},
		"not the holder":    {b, term.String(), http.StatusConflict},
		"of another node":   {s.hub("a2"), term.String(), http.StatusConflict},
		"of another's pool": {s.as("system:node:a", contract.HubGroup, contract.PoolGroupPrefix+"q"), term.String(), http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			if answer := c.hub.want(c.code, http.MethodPost, path, "", contract.TermHeader, c.term); !strings.Contains(answer, `"message":"`) {
				t.Errorf("no reason: %s", answer)
			}
		})
	}
	// Once a newer term has fed, an older one is stale even for the node that holds the Lease.
	leader := leaderRelay(t, 100)
	a.push(leader, term)
	eventually(t, "the feed", func() bool { return a.reached() == 100 })
	var refused *source.RefusedError
	if err := <-a.push(leaderRelay(t, 100), first); !errors.As(err, &refused) || refused.Code != http.StatusConflict {
		t.Errorf("a stale term: %v", err)
	}
	put(t, leader, "two", 101)
	eventually(t, "the feed to go on", func() bool { return a.reached() == 101 })
}

func TestFeedIsReplaced(t *testing.T) {
	s := newPool(t).start()
	a := s.hub("a")
	term := a.elect("a_1")
	old := leaderRelay(t, 100)
	ended := a.push(old, term)
	eventually(t, "the first feed", func() bool { return a.reached() == 100 })

	again := leaderRelay(t, 100) // the hub lost its connection and came again, on another one
	put(t, again, "two", 101)
	other := s.hub("a")
	other.push(again, term)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "replaced by a feed") {
		t.Errorf("the replaced feed ended with %v", err)
	}
	eventually(t, "the second feed", func() bool { return a.reached() == 101 })
	put(t, old, "from the dead", 200)
	put(t, again, "three", 102)
	eventually(t, "the second feed to go on", func() bool { return a.reached() >= 102 })
	if v := a.reached(); v != 102 {
		t.Errorf("reached %d", v)
	}
}

// TestWatchOfARelay: a watch is flushed event by event through all handlers, and ends with the server.
func TestWatchOfARelay(t *testing.T) {
	s := newPool(t).start()
	a := s.hub("a")
	leader := leaderRelay(t, 100)
	a.push(leader, a.elect("a_1"))
	eventually(t, "the feed", func() bool { return a.reached() == 100 })
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.url.String()+slicesPath+"?watch=1&resourceVersion=100", nil)
	check(t, err)
	req.Header.Set("Accept", "application/vnd.kubernetes.protobuf;stream=watch")
	resp, err := s.viewer().http.Do(req)
	check(t, err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	events := wire.NewEventReader(resp.Body, wire.Protobuf, leader.Resource().WireKind())
	for v := uint64(101); v < 104; v++ {
		put(t, leader, "n", v)
		ev, err := events.Next()
		check(t, err)
		if ev.Version != v {
			t.Errorf("%s at %d, want %d", ev.Type, ev.Version, v)
		}
	}
	go s.stop()
	if _, err := events.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("the watch ended with %v, want a clean end", err)
	}
}
