package membership

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/relayed"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source"
	"github.com/weir-edge/weir/impl/source/hop"
	"github.com/weir-edge/weir/impl/testkit"
)

// doubted is a relay fed from a pool, beside a cloud.
type doubted struct {
	t              *testing.T
	cloud, pool    *relay.Relay
	upstream       *hop.Upstream                  // of the cloud
	asked          atomic.Int32                   // the cloud
	asks           atomic.Pointer[contract.Doubt] // the coordinator does
	told           atomic.Pointer[contract.Doubt] // to it, last
	contradictions atomic.Int32
	doubt          *doubt
	clock          *testingclock.FakeClock
	leader         atomic.Pointer[string]
	hubs           atomic.Int32 // that the coordinator counts
}

func sliceOf(t *testing.T, name string, version uint64) *wire.Object {
	t.Helper()
	s := discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(name), ResourceVersion: fmt.Sprint(version),
		},
	}
	raw, err := s.Marshal()
	check(t, err)
	o, err := wire.ParseObject(wire.Protobuf, raw)
	check(t, err)
	return o
}

func newDoubted(t *testing.T) *doubted {
	t.Helper()
	res, err := relay.ParseResource("endpointslices.v1.discovery.k8s.io")
	check(t, err)
	d := &doubted{t: t, clock: testingclock.NewFakeClock(time.Now())}
	relayOf := func() *relay.Relay {
		r, err := relay.New(relay.Config{Resource: res})
		check(t, err)
		check(t, r.Replace(1000, []*wire.Object{sliceOf(t, "kube-dns", 900), sliceOf(t, "other", 950)}))
		return r
	}
	d.cloud, d.pool = relayOf(), relayOf()
	upstream := func(name string, r *relay.Relay, asked func()) *hop.Upstream {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			asked()
			(&rest.Handler{Source: r}).ServeHTTP(w, req)
		}))
		t.Cleanup(srv.Close)
		u, err := url.Parse(srv.URL)
		check(t, err)
		return &hop.Upstream{Name: name, URL: u, Client: srv.Client(), Consistent: name == "cloud", Progress: name != "cloud"}
	}
	cloud := upstream("cloud", d.cloud, func() { d.asked.Add(1) })
	d.upstream = cloud
	mine, err := relay.New(relay.Config{Resource: res})
	check(t, err)
	f, err := relayed.NewFeeder(source.Config{Relay: mine}, func() {})
	check(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- f.Run(ctx) }()
	f.Use(upstream("coordinator", d.pool, func() {}))
	d.leads("liar")
	sources := &relayed.Sources{Cloud: cloud, Made: relayed.Made{There: func() bool { return true }}}
	sources.Add(f)
	d.doubt = &doubt{
		Config: &Config{
			Sources: sources, Contradicted: func(string) { d.contradictions.Add(1) }, Clock: d.clock, Logger: slog.Default(),
		},
		leader: func() string { return *d.leader.Load() }, changed: func() {}, asked: d.asks.Load,
		hubs: func() int { return int(d.hubs.Load()) },
		tell: func(_ context.Context, what contract.Doubt) (bool, error) { d.told.Store(&what); return false, nil },
	}
	testkit.Until(t, time.Minute, "the pool's state", func() bool { return mine.Status().Version == 1000 })
	go func() { done <- d.doubt.run(ctx) }()
	t.Cleanup(func() { cancel(); <-done; <-done })
	return d
}

func (d *doubted) leads(node string) { d.leader.Store(&node) }

// within lets time pass until something holds, at most for so long.
func (d *doubted) within(limit time.Duration, what string, holds func() bool) {
	d.t.Helper()
	began := d.clock.Now()
	testkit.Until(d.t, time.Minute, what, func() bool {
		if !holds() && d.clock.HasWaiters() && d.clock.Since(began) < limit {
			d.clock.Step(time.Second)
		}
		return holds()
	})
}

// unhurried is when a single change is compared at the latest.
const unhurried = sampleQuiet*(sampleEvery+sampleSpread) + 2*sampleTick

// TestForgedSlice: attack 58. A leader that feeds an object which the cloud does not have so is found out by the one
// that follows and reaches the cloud. It is doubted while it leads.
func TestForgedSlice(t *testing.T) {
	for name, forge := range map[string]func(d *doubted){
		"a version of its own": func(d *doubted) {
			check(t, d.pool.Apply(&wire.Event{Type: wire.Modified, Version: 1001, Object: sliceOf(t, "kube-dns", 1001)}))
			check(t, d.cloud.Apply(&wire.Event{Type: wire.Bookmark, Version: 1010}))
		},
		"a version that never was": func(d *doubted) {
			check(t, d.pool.Apply(&wire.Event{Type: wire.Bookmark, Version: 9e18}))
		},
		"an object that never was": func(d *doubted) {
			check(t, d.pool.Apply(&wire.Event{Type: wire.Added, Version: 1001, Object: sliceOf(t, "more", 1001)}))
			check(t, d.cloud.Apply(&wire.Event{Type: wire.Bookmark, Version: 1001}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoubted(t)
			d.within(time.Minute, "the honest state to be compared", func() bool { return d.asked.Load() == 2 })
			forge(d)
			mine := d.doubt.Sources.All()[0].Relay
			testkit.Until(t, time.Minute, "the lie", func() bool { return mine.Status().Version >= 1001 })
			d.within(unhurried, "it to be doubted", d.doubt.holds)
			d.within(time.Minute, "the coordinator to be told", func() bool { return d.told.Load() != nil })
			if got := *d.told.Load(); got.Leader != "liar" || !got.Confirmed || got.Resource != mine.Resource().String() ||
				got.Held < 1001 {
				t.Errorf("the coordinator is told %+v", got)
			}
			if n := d.contradictions.Load(); n < 1 {
				t.Error("it is not counted")
			}
			d.leads("honest")
			if d.doubt.holds() {
				t.Error("the next leader is doubted")
			}
		})
	}
}

// TestForgedSliceDoesNotStay: a hub that leaves the pool's cache for the cloud because of a lie serves what the cloud
// has, though the versions fit.
func TestForgedSliceDoesNotStay(t *testing.T) {
	d := newDoubted(t)
	d.within(time.Minute, "the honest state to be compared", func() bool { return d.asked.Load() == 2 })
	check(t, d.pool.Apply(&wire.Event{Type: wire.Added, Version: 1001, Object: sliceOf(t, "forged", 1001)}))
	check(t, d.cloud.Apply(&wire.Event{Type: wire.Modified, Version: 1005, Object: sliceOf(t, "kube-dns", 1005)}))
	mine := d.doubt.Sources.All()[0].Relay
	testkit.Until(t, time.Minute, "the lie", func() bool { return mine.Status().Version == 1001 })
	d.within(unhurried, "it to be doubted", d.doubt.holds)
	// the truth, and newer.
	check(t, d.pool.Apply(&wire.Event{Type: wire.Modified, Version: 1005, Object: sliceOf(t, "kube-dns", 1005)}))
	testkit.Until(t, time.Minute, "the truth beside it", func() bool { return mine.Status().Version == 1005 })
	d.doubt.Sources.All()[0].Use(d.upstream)
	testkit.Until(t, 10*time.Second, "the cloud's state alone", func() bool {
		n := 0
		for o := range mine.Objects() {
			if o.Name == "forged" {
				return false
			}
			n++
		}
		return n == 2
	})
}

// TestForgedSliceInABusyPool: what is forged is found beside all that changes honestly at the same time, whatever is
// picked to be compared; and what is withheld is, too.
func TestForgedSliceInABusyPool(t *testing.T) {
	for name, lie := range map[string]func(d *doubted, version uint64){
		"forged": func(d *doubted, version uint64) {
			check(t, d.pool.Apply(&wire.Event{Type: wire.Added, Version: version, Object: sliceOf(t, "forged", version)}))
		},
		"withheld": func(d *doubted, version uint64) {
			check(t, d.cloud.Apply(&wire.Event{Type: wire.Added, Version: version, Object: sliceOf(t, "withheld", version)}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoubted(t)
			d.within(time.Minute, "the honest state to be compared", func() bool { return d.asked.Load() == 2 })
			version := uint64(1010)
			busy := func() {
				version++
				name := fmt.Sprintf("busy-%d", version%40)
				for _, r := range []*relay.Relay{d.cloud, d.pool} {
					check(t, r.Apply(&wire.Event{Type: wire.Modified, Version: version, Object: sliceOf(t, name, version)}))
				}
			}
			for range 40 {
				busy()
			}
			version++
			lie(d, version)
			began := d.clock.Now()
			testkit.Until(t, time.Minute, "it to be doubted", func() bool {
				if d.clock.HasWaiters() && d.clock.Since(began) < 90*time.Second {
					busy()
					d.clock.Step(time.Second)
				}
				return d.doubt.holds()
			})
		})
	}
}

// TestWitness: what another hub says of the leader is compared by this one, once, if it holds the same; and whatever it
// finds is said.
func TestWitness(t *testing.T) {
	d := newDoubted(t)
	mine := d.doubt.Sources.All()[0].Relay
	d.within(time.Minute, "the honest state to be compared", func() bool { return d.asked.Load() == 2 })
	ask := func(leader, name string, held uint64) {
		d.told.Store(nil)
		d.asks.Store(&contract.Doubt{
			Leader: leader, Resource: mine.Resource().String(), Namespace: "default", Name: name, Held: held,
		})
	}
	silent := func(what string) {
		t.Helper()
		began := d.clock.Now()
		d.within(time.Minute, "time to pass", func() bool { return d.clock.Since(began) >= 20*time.Second })
		if got := d.told.Load(); got != nil {
			t.Errorf("%s: %+v is said", what, got)
		}
	}
	ask("liar", "other", 950)
	d.within(20*time.Second, "the false accusation to be denied", func() bool { return d.told.Load() != nil })
	if got := *d.told.Load(); got.Confirmed || got.Name != "other" {
		t.Errorf("%+v is said of an honest leader", got)
	}
	n := d.asked.Load()
	d.told.Store(nil)
	silent("asked the same again")
	if d.asked.Load() != n {
		t.Error("the cloud is asked again")
	}
	ask("another", "other", 950)
	silent("of one who does not lead")
	ask("liar", "other", 951)
	silent("of what this hub does not hold so")
	check(t, d.pool.Apply(&wire.Event{Type: wire.Added, Version: 1001, Object: sliceOf(t, "forged", 1001)}))
	check(t, d.pool.Apply(&wire.Event{Type: wire.Modified, Version: 1002, Object: sliceOf(t, "other", 1002)}))
	check(t, d.cloud.Apply(&wire.Event{Type: wire.Modified, Version: 1002, Object: sliceOf(t, "other", 1002)}))
	testkit.Until(t, time.Minute, "the lie", func() bool { return mine.Status().Version == 1002 })
	ask("liar", "forged", 1001)
	d.within(20*time.Second, "the lie to be confirmed", func() bool { return d.told.Load() != nil })
	if got := *d.told.Load(); !got.Confirmed || got.Name != "forged" || !d.doubt.holds() {
		t.Errorf("%+v is said of a liar, doubted %t", got, d.doubt.holds())
	}
}

// TestHonestPoolIsNotDoubted: lag is no lie, a restore that the leader learns of a moment later is none, and a quiet
// pool asks nothing of the cloud.
func TestHonestPoolIsNotDoubted(t *testing.T) {
	d := newDoubted(t)
	d.within(time.Minute, "the state to be compared", func() bool { return d.asked.Load() == 2 })
	mine := d.doubt.Sources.All()[0].Relay
	pass := func(some time.Duration) {
		began := d.clock.Now()
		d.within(2*some, "time to pass", func() bool { return d.clock.Since(began) >= some })
	}
	check(t, d.pool.Apply(&wire.Event{Type: wire.Bookmark, Version: 1001}))
	pass(2 * time.Minute)
	if n := d.asked.Load(); n != 2 {
		t.Errorf("the cloud is asked %d times, of which %d were of nothing new", n, n-2)
	}
	// the pool will have it.
	check(t, d.cloud.Apply(&wire.Event{Type: wire.Modified, Version: 1005, Object: sliceOf(t, "kube-dns", 1005)}))
	check(t, d.cloud.Apply(&wire.Event{Type: wire.Modified, Version: 1010, Object: sliceOf(t, "other", 1010)}))
	check(t, d.pool.Apply(&wire.Event{Type: wire.Modified, Version: 1005, Object: sliceOf(t, "kube-dns", 1005)}))
	testkit.Until(t, time.Minute, "it", func() bool { return mine.Status().Version == 1005 })
	pass(2 * time.Minute)
	if d.doubt.holds() {
		t.Error("lag is doubted")
	}
	if got := d.told.Load(); got != nil {
		t.Errorf("the coordinator is told %+v", got)
	}
}

// TestShared: hubs that read one coordinator compare about as often together as one alone does, and each of them soon
// when another node leads.
func TestShared(t *testing.T) {
	const hours = 1
	for _, c := range []struct{ hubs, changes, least, most int }{ // looks of one hub in an hour
		{hubs: 2, changes: sampleMany, least: 70, most: 100}, // one leads; a look each 40 s, or at the next tick
		{hubs: 2, changes: sampleMany - 1, least: 18, most: 25},
		{hubs: 6, changes: sampleMany, least: 8, most: 30},    // a fifth
		{hubs: 9999, changes: sampleMany, least: 1, most: 13}, // as of 17
	} {
		t.Run(fmt.Sprint(c.hubs, c.changes), func(t *testing.T) {
			d := newDoubted(t)
			d.hubs.Store(int32(c.hubs))
			d.within(time.Minute, "the first look", func() bool { return d.asked.Load() == 2 })
			looks, version, before := 0, uint64(1000), d.asked.Load()
			change := func() {
				for i := range c.changes {
					version++
					o := sliceOf(t, fmt.Sprint("other-", i), version)
					for _, r := range []*relay.Relay{d.cloud, d.pool} {
						check(t, r.Apply(&wire.Event{Type: wire.Modified, Version: version, Object: o}))
					}
				}
				mine := d.doubt.Sources.All()[0].Relay
				testkit.Until(t, time.Minute, "the change", func() bool { return mine.Status().Version == version })
			}
			change()
			for began := d.clock.Now(); d.clock.Since(began) < hours*time.Hour; {
				testkit.Until(t, time.Minute, "the hub to rest", d.clock.HasWaiters)
				if now := d.asked.Load(); now != before {
					before = now
					looks++
					change()
				}
				d.clock.Step(sampleTick)
			}
			if looks < hours*c.least || looks > hours*c.most {
				t.Errorf("%d looks in %d hours, want %d to %d in one", looks, hours, c.least, c.most)
			}
			testkit.Until(t, time.Minute, "the hub to rest", d.clock.HasWaiters)
			before = d.asked.Load()
			change()
			d.leads("another")
			d.within(sampleEvery+sampleSpread+2*sampleTick, "a look at what the next leader feeds", func() bool {
				return d.asked.Load() != before
			})
			if d.doubt.holds() {
				t.Error("it is doubted")
			}
		})
	}
}

// TestLeadersThatTakeTurns: what is fed is compared also if another node leads every few seconds.
func TestLeadersThatTakeTurns(t *testing.T) {
	d := newDoubted(t)
	n := 0
	d.within(sampleEvery+sampleSpread+2*sampleTick, "a look", func() bool {
		if n++; n%4 == 0 {
			d.leads(fmt.Sprint("liar-", n))
		}
		return d.asked.Load() > 0
	})
}
