package coordinator_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/mvcc"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source"
)

// old is a relay whose state was fresh an hour ago.
func old(t testing.TB, version uint64) *relay.Relay {
	t.Helper()
	from := leaderRelay(t, version)
	r, err := relay.New(relay.Config{Resource: from.Resource()})
	check(t, err)
	x := r.Restoration(version)
	for o := range from.Objects() {
		check(t, x.Add(o))
	}
	check(t, x.Finish(time.Now().Add(-time.Hour)))
	return r
}

func (c *caller) offer(r *relay.Relay) error {
	return source.Offer(c.t.Context(), r, c.reached(), &source.Upstream{Name: "coordinator", URL: c.url, Client: c.http})
}

// refused wants an offer to be refused, for a reason.
func (c *caller) refused(r *relay.Relay, why string) {
	c.t.Helper()
	err := c.offer(r)
	var refusal *source.RefusedError
	if !errors.As(err, &refusal) || !strings.Contains(refusal.Message, why) {
		c.t.Errorf("an offer of %d ended with %v, want %q", r.Status().Version, err, why)
	}
}

// TestOffer: a coordinator that nobody feeds takes what a hub holds, forward only. It serves that with its age, is not ready by it, and
// a leader takes its place.
func TestOffer(t *testing.T) {
	s := newPool(t).start()
	a, b, viewer := s.hub("a"), s.hub("b"), s.viewer()
	if err := viewer.offer(old(t, 90)); err == nil || viewer.reached() != 0 {
		t.Errorf("who only reads offered: %v", err)
	}
	check(t, a.offer(old(t, 100)))
	if age := viewer.age(); age < 3600 || age > 3700 {
		t.Errorf("%d seconds old", age)
	}
	if list := viewer.want(http.StatusOK, http.MethodGet, slicesPath, ""); !strings.Contains(list, `"resourceVersion":"100"`) || !strings.Contains(list, `"name":"one"`) {
		t.Errorf("refilled: %s", list)
	}
	viewer.want(http.StatusInternalServerError, http.MethodGet, "/readyz", "")
	for _, r := range viewer.state().Resources {
		if r.Resource == slicesName && (r.Ready || !r.Restored || r.Feeder != "" || time.Since(r.FreshAt) < time.Hour) {
			t.Errorf("%+v", r)
		}
	}
	b.refused(old(t, 100), "has reached 100")
	b.refused(old(t, 99), "has reached 100")
	check(t, b.offer(old(t, 120)))
	if v := viewer.reached(); v != 120 {
		t.Errorf("a newer offer has left %d", v)
	}
	metrics := viewer.want(http.StatusOK, http.MethodGet, "/metrics", "")
	for _, node := range []string{"a", "b"} {
		if !strings.Contains(metrics, `weir_coordinator_refills_total{node="`+node+`",resource="`+slicesName+`"} 1`) {
			t.Errorf("the metrics do not tell of a refill by node %s", node)
		}
	}

	term := a.elect("a_1")
	a.push(leaderRelay(t, 130), term)
	eventually(t, "the leader's feed to make it fresh", func() bool {
		for _, r := range viewer.state().Resources {
			if r.Resource == slicesName {
				return r.Ready && !r.Restored && r.Version == 130 && r.Feeder == "a"
			}
		}
		return false
	})
	b.refused(old(t, 200), "is fresh")
}

// TestOfferGoesOn: what a hub has more than the coordinator comes as the changes that it was. Clients and hubs that have seen a part of it, before all
// lost their power, go on from there.
func TestOfferGoesOn(t *testing.T) {
	s := newPool(t).start()
	a, viewer := s.hub("a"), s.viewer()
	check(t, a.offer(old(t, 100)))
	newer, err := relay.New(relay.Config{Resource: old(t, 100).Resource()})
	check(t, err)
	x := newer.Restoration(100)
	check(t, x.Add(slice(t, "one", 100)))
	for version := uint64(101); version <= 104; version++ {
		check(t, x.Apply(&mvcc.Event{Version: version, Cur: slice(t, fmt.Sprint("o", version), version)}))
	}
	check(t, x.Apply(&mvcc.Event{Version: 105}))
	check(t, x.Finish(time.Now().Add(-time.Minute)))
	check(t, a.offer(newer))
	if v := viewer.reached(); v != 105 {
		t.Fatalf("the offer has left %d", v)
	}
	for seen, want := range map[int]string{100: "o101", 102: "o103"} {
		events := viewer.want(http.StatusOK, http.MethodGet, fmt.Sprintf("%s?watch=1&timeoutSeconds=1&resourceVersion=%d", slicesPath, seen), "")
		if !strings.Contains(strings.SplitN(events, "\n", 2)[0], `"name":"`+want+`"`) {
			t.Errorf("a watch from %d shows %s", seen, events)
		}
	}
	for _, r := range viewer.state().Resources {
		if r.Resource == slicesName && (r.Ready || !r.Restored || time.Since(r.FreshAt) < time.Minute) {
			t.Errorf("%+v", r)
		}
	}
}

// TestOfferFromBeyond: an offer that goes on from where the coordinator is not, since it lost its disk after it was asked, is refused.
func TestOfferFromBeyond(t *testing.T) {
	s := newPool(t).start()
	a := s.hub("a")
	newer := old(t, 100)
	check(t, newer.Apply(&wire.Event{Type: wire.Added, Version: 110, Object: slice(t, "two", 110)}))
	err := source.Offer(t.Context(), newer, 100, &source.Upstream{Name: "coordinator", URL: a.url, Client: a.http})
	var refusal *source.RefusedError
	if !errors.As(err, &refusal) || !strings.Contains(refusal.Message, "goes on from 100") || a.reached() != 0 {
		t.Errorf("%v; the coordinator is at %d", err, a.reached())
	}
}

// TestLeaderEndsAnOffer: who offers slowly is not waited for when there is a leader.
func TestLeaderEndsAnOffer(t *testing.T) {
	s := newPool(t).start()
	a, b, viewer := s.hub("a"), s.hub("b"), s.viewer()
	body, slow := io.Pipe()
	defer slow.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url.String()+contract.FeedPath("discovery.k8s.io", "v1", "endpointslices"), body)
	check(t, err)
	req.Header.Set(contract.OfferHeader, "200")
	answer := make(chan int, 1)
	go func() {
		resp, err := b.http.Do(req)
		if err != nil {
			answer <- 0
			return
		}
		defer resp.Body.Close()
		answer <- resp.StatusCode
	}()
	o := slice(t, "never", 200)
	_, err = slow.Write(append([]byte{'L'}, wire.AppendProtobufFrame(nil, wire.Added, wire.Kind{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}, o.Raw)...))
	check(t, err)
	eventually(t, "the offer to begin", func() bool {
		for _, r := range viewer.state().Resources {
			if r.Resource == slicesName {
				return r.Feeder == "b"
			}
		}
		return false
	})
	a.refused(old(t, 300), "node b feeds")
	a.push(leaderRelay(t, 100), a.elect("a_1"))
	eventually(t, "the leader's list", func() bool { return viewer.reached() == 100 })
	if code := <-answer; code != http.StatusConflict {
		t.Errorf("the offer was answered with %d", code)
	}
	if list := viewer.want(http.StatusOK, http.MethodGet, slicesPath, ""); strings.Contains(list, "never") {
		t.Errorf("half of an offer shows: %s", list)
	}
}
