package coordinator_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/mvcc"
	"github.com/weir-edge/weir/impl/relay/wire"
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

// tells lets a node's hub tell in its node's Lease where it shows relays.
func (c *caller) tells(relays ...*relay.Relay) *edge {
	c.t.Helper()
	x := c.show(relays...)
	c.want(http.StatusCreated, http.MethodPost, "/apis/coordination.k8s.io/v1/namespaces/"+contract.NodeLeaseNamespace+
		"/leases",
		leaseOf(fmt.Sprintf(`"name":%q,"annotations":{%q:%q}`, c.node, contract.PoolAddress, x.address), c.node, 40))
	return x
}

// TestHearsay: a coordinator that reads from nobody takes the latest that any hub holds, forward only. It serves
// that with its age, is not ready by it, and a leader takes its place.
func TestHearsay(t *testing.T) {
	s := newPool(t).start()
	a, b, viewer := s.hub("a"), s.hub("b"), s.viewer()
	a.tells(old(t, 100))
	b.tells(old(t, 90))
	eventually(t, "the latest", func() bool { return viewer.reached() == 100 })
	if age := viewer.age(); age < 3600 || age > 3700 {
		t.Errorf("%d seconds old", age)
	}
	if list := viewer.want(http.StatusOK, http.MethodGet, slicesPath, ""); !strings.Contains(
		list, `"resourceVersion":"100"`) || !strings.Contains(list, `"name":"one"`) {
		t.Errorf("refilled: %s", list)
	}
	viewer.want(http.StatusInternalServerError, http.MethodGet, "/readyz", "")
	eventually(t, "nobody to feed it", func() bool { return viewer.slices().Feeder == "" })
	if r := viewer.slices(); r.Ready || !r.Restored || time.Since(r.FreshAt) < time.Hour {
		t.Errorf("%+v", r)
	}
	s.hub("c").tells(old(t, 120))
	eventually(t, "a later one", func() bool { return viewer.reached() == 120 })
	for _, node := range []string{"a", "c"} { // what is served is seen a moment before it is counted
		eventually(t, "the metrics to tell of a refill by node "+node, func() bool {
			return strings.Contains(viewer.want(http.StatusOK, http.MethodGet, "/metrics", ""),
				`weir_coordinator_refills_total{node="`+node+`",resource="`+slicesName+`"} 1`)
		})
	}

	a.show(leaderRelay(t, 130))
	a.elect("a_1")
	eventually(t, "the leader to make it fresh", func() bool {
		r := viewer.slices()
		return r.Ready && !r.Restored && r.Version == 130 && r.Feeder == "a"
	})
}

// TestHearsayIsNeverFresh: however fresh a hub says that its relay is, nobody hears from the cloud.
func TestHearsayIsNeverFresh(t *testing.T) {
	s := newPool(t).start()
	viewer := s.viewer()
	s.hub("a").tells(leaderRelay(t, 100))
	eventually(t, "the list", func() bool { return viewer.reached() == 100 })
	if r := viewer.slices(); r.Ready || !r.Restored {
		t.Errorf("%+v", r)
	}
}

// TestHearsayGoesOn: what a hub has more than the coordinator comes as the changes that it was. Clients and hubs
// that have seen a part of it, before all lost their power, go on from there.
func TestHearsayGoesOn(t *testing.T) {
	s := newPool(t).start()
	viewer := s.viewer()
	s.hub("a").tells(old(t, 100))
	eventually(t, "the first", func() bool { return viewer.reached() == 100 })
	newer, err := relay.New(relay.Config{Resource: old(t, 100).Resource()})
	check(t, err)
	x := newer.Restoration(100)
	check(t, x.Add(slice(t, "one", 100)))
	for version := uint64(101); version <= 104; version++ {
		check(t, x.Apply(&mvcc.Event{Version: version, Cur: slice(t, fmt.Sprint("o", version), version)}))
	}
	check(t, x.Apply(&mvcc.Event{Version: 105}))
	check(t, x.Finish(time.Now().Add(-time.Minute)))
	s.hub("b").tells(newer)
	eventually(t, "the rest", func() bool { return viewer.reached() == 105 })
	for seen, want := range map[int]string{100: "o101", 102: "o103"} {
		events := viewer.want(http.StatusOK, http.MethodGet,
			fmt.Sprintf("%s?watch=1&timeoutSeconds=1&resourceVersion=%d", slicesPath, seen), "")
		if !strings.Contains(strings.SplitN(events, "\n", 2)[0], `"name":"`+want+`"`) {
			t.Errorf("a watch from %d shows %s", seen, events)
		}
	}
	if r := viewer.slices(); r.Ready || !r.Restored || time.Since(r.FreshAt) < time.Minute {
		t.Errorf("%+v", r)
	}
}

// TestLeaderEndsHearsay: who tells slowly what it holds is not waited for when there is a leader, and half of what
// it tells shows nowhere.
func TestLeaderEndsHearsay(t *testing.T) {
	s := newPool(t).start()
	a, viewer := s.hub("a"), s.viewer()
	slow := s.hub("b").tells(old(t, 200))
	slow.http.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != slicesPath {
			slow.ServeHTTP(w, req)
			return
		}
		o := slice(t, "never", 200)
		_, _ = w.Write(wire.AppendProtobufFrame(nil, wire.Added,
			wire.Kind{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}, o.Raw))
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
	})
	eventually(t, "it to begin", func() bool { return viewer.slices().Feeder == "b" })
	a.show(leaderRelay(t, 100))
	a.elect("a_1")
	eventually(t, "the leader's list", func() bool { return viewer.reached() == 100 })
	if list := viewer.want(http.StatusOK, http.MethodGet, slicesPath, ""); strings.Contains(list, "never") {
		t.Errorf("half of it shows: %s", list)
	}
}
