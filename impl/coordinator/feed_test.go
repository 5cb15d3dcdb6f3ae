package coordinator_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay/wire"
)

const slicesName = "endpointslices.v1.discovery.k8s.io"

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
	leader := leaderRelay(t, 100)
	a.show(leader)
	term := a.elect("a_1")
	eventually(t, "the list", func() bool { return viewer.reached() == 100 })
	put(t, leader, "two", 101)
	eventually(t, "an event", func() bool { return viewer.reached() == 101 })

	answer := viewer.want(http.StatusOK, http.MethodGet, slicesPath, "")
	for _, want := range []string{
		`"resourceVersion":"101"`, `"uid":"uid-one"`, `"name":"two"`, `"creationTimestamp":"2001-09-09T01:46:40Z"`,
	} {
		if !strings.Contains(answer, want) {
			t.Errorf("%s has no %s", answer, want)
		}
	}
	state := viewer.state()
	if state.Pool != "p" || state.Term != term.String() || state.Leader != "a" || state.Ready {
		t.Errorf("status %+v", state)
	}
	for _, r := range state.Resources {
		if fed := r.Resource == slicesName; r.Synced != fed || r.Ready != fed || (r.Feeder == "a") != fed ||
			(r.ProgressAgeSeconds != nil) != fed {
			t.Errorf("%+v", r)
		}
	}
	ready := viewer.want(http.StatusInternalServerError, http.MethodGet, "/readyz?verbose", "")
	if !strings.Contains(ready, "[+]relay-"+slicesName) && !strings.Contains(ready, "[-]") {
		t.Errorf("readyz: %s", ready)
	}

	// Another takes the Lease: what the old leader shows is not read once more.
	follower := leaderRelay(t, 100)
	put(t, follower, "two", 101)
	b.show(follower)
	s.clear()
	b.elect("b_1")
	put(t, leader, "late", 102)
	put(t, follower, "three", 105)
	eventually(t, "the new leader's events", func() bool { return viewer.reached() == 105 })
	if answer := viewer.want(http.StatusOK, http.MethodGet, slicesPath, ""); strings.Contains(answer, "late") {
		t.Errorf("the old leader was read: %s", answer)
	}
}

// TestDeposed: of a leader whose Lease is gone nothing is read any more, however it goes on.
func TestDeposed(t *testing.T) {
	s := newPool(t).start()
	a, viewer := s.hub("a"), s.viewer()
	leader := leaderRelay(t, 100)
	x := a.show(leader)
	a.elect("a_1")
	eventually(t, "the list", func() bool { return viewer.reached() == 100 })
	s.clear()
	eventually(t, "the connection to end", func() bool { return !x.read() })
	put(t, leader, "late", 102)
	if v := viewer.reached(); v != 100 {
		t.Errorf("the old leader wrote: %d", v)
	}
	// that is noted once the connection has ended.
	eventually(t, "nobody to feed", func() bool { return viewer.slices().Feeder == "" })
	a.elect("a_2")
	eventually(t, "it to be read again", func() bool { return viewer.reached() == 102 })
}

// TestAnotherHub: who answers at the address that a leader told has to be its hub, by its certificate. Else the leader
// cannot be read, and loses its Lease; it may not take it back at once, and another one may.
func TestAnotherHub(t *testing.T) {
	s := newPool(t).start()
	stranger := newPool(t)
	a, viewer := s.hub("a"), s.viewer()
	for node, at := range map[string]string{
		"another-node":      s.show("c", leaderRelay(t, 100)).address,
		"another-authority": stranger.show("another-authority", leaderRelay(t, 100)).address, "nobody": "127.0.0.1:1",
	} {
		t.Run(node, func(t *testing.T) {
			x := s.hub(node)
			x.electAt(node+"_1", at)
			eventually(t, "the Lease to be free", func() bool { return viewer.holder() == "" })
			if v := viewer.reached(); v != 0 {
				t.Errorf("at %d", v)
			}
			again := x.want(http.StatusConflict, http.MethodPatch, leasesPath+"/"+contract.ElectionLease,
				`{"spec":{"holderIdentity":"`+node+`_2"}}`, "Content-Type", "application/merge-patch+json")
			if !strings.Contains(again, "could not read from this hub") {
				t.Errorf("refused: %s", again)
			}
		})
	}
	a.show(leaderRelay(t, 100))
	a.elect("a_1")
	eventually(t, "another to be read", func() bool { return viewer.reached() == 100 })
}

// TestAddress: a hub tells its own address and nothing else, where it is wanted.
func TestAddress(t *testing.T) {
	a := newPool(t).start().hub("a")
	note := func(address string) string {
		return fmt.Sprintf(`"annotations":{%q:%q}`, contract.PoolAddress, address)
	}
	for _, c := range []struct {
		name, meta string
		code       int
	}{
		{contract.ElectionLease, note("10.0.0.1:10269"), http.StatusCreated},
		{contract.InformerSync, note("10.0.0.1:10269"), http.StatusForbidden},
		{contract.ElectionLease, note("node:10269"), http.StatusForbidden},
		{contract.ElectionLease, note("10.0.0.1"), http.StatusForbidden},
		{contract.ElectionLease, note(strings.Repeat("1", 3_000)), http.StatusForbidden},
		// too large, whatever it says.
		{contract.ElectionLease, note(strings.Repeat("1", 10_000)), http.StatusUnprocessableEntity},
		{contract.ElectionLease, `"labels":{"` + contract.PoolAddress + `":"x"}`, http.StatusForbidden},
	} {
		body := leaseOf(fmt.Sprintf(`"name":%q,%s`, c.name, c.meta), "a_1", 15)
		if got, answer, err := a.do(http.MethodPost, leasesPath+"?dryRun=All", body); err != nil || got != c.code {
			t.Errorf("%s %s: %d %s, %v; want %d", c.name, c.meta[:min(len(c.meta), 80)], got, answer, err, c.code)
		}
	}
}

// TestWatchOfARelay: a watch is flushed event by event through all handlers, and ends with the server.
func TestWatchOfARelay(t *testing.T) {
	s := newPool(t).start()
	a := s.hub("a")
	leader := leaderRelay(t, 100)
	a.show(leader)
	a.elect("a_1")
	eventually(t, "the feed", func() bool { return a.reached() == 100 })
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		a.url.String()+slicesPath+"?watch=1&resourceVersion=100", nil)
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
