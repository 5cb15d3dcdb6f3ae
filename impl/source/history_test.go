package source

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source/hop"
)

// restorable is a cloud that can be restored from a backup: its server ends all connections then.
type restorable struct {
	t     *testing.T
	relay atomic.Pointer[relay.Relay]
	srv   *httptest.Server
	asked atomic.Int32 // small reads
}

func newCloud(t *testing.T, version uint64, items ...*wire.Object) *restorable {
	t.Helper()
	c := &restorable{t: t}
	c.relay.Store(stateOf(t, version, items...))
	c.srv = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Query().Get("watch") == "" {
			c.asked.Add(1)
		}
		(&rest.Handler{Source: c.relay.Load()}).ServeHTTP(w, req)
	}))
	c.srv.EnableHTTP2 = true
	c.srv.StartTLS()
	t.Cleanup(c.srv.Close)
	return c
}

func stateOf(t *testing.T, version uint64, items ...*wire.Object) *relay.Relay {
	t.Helper()
	r := newRelay(t)
	if err := r.Replace(version, items); err != nil {
		t.Fatal(err)
	}
	return r
}

func (c *restorable) upstream() *hop.Upstream {
	u, err := url.Parse(c.srv.URL)
	if err != nil {
		c.t.Fatal(err)
	}
	return &hop.Upstream{Name: "cloud", URL: u, Client: c.srv.Client(), Consistent: true}
}

// restore goes on with another history.
func (c *restorable) restore(r *relay.Relay) {
	c.relay.Store(r)
	c.srv.CloseClientConnections()
}

func TestRestoredCloud(t *testing.T) {
	for name, c := range map[string]struct {
		after   func(t *testing.T) *relay.Relay
		history uint64
		lists   int
	}{
		"it is behind": {func(t *testing.T) *relay.Relay {
			return stateOf(t, 900, slice(t, "a", 5))
		}, 1, 2},
		"it is behind, and the newest object is as it was": {func(t *testing.T) *relay.Relay {
			return stateOf(t, 960, slice(t, "a", 5), slice(t, "b", 950))
		}, 1, 2},
		"it has passed us, and the newest object is gone": {func(t *testing.T) *relay.Relay {
			r := stateOf(t, 900, slice(t, "a", 5))
			put(t, r, "c", 1100)
			return r
		}, 1, 2},
		"it has passed us, and the newest object is as before": {func(t *testing.T) *relay.Relay {
			r := stateOf(t, 900, slice(t, "a", 5), slice(t, "b", 600))
			put(t, r, "c", 1100)
			return r
		}, 1, 2},
		"it has passed us, and the newest object has changed": {func(t *testing.T) *relay.Relay {
			r := stateOf(t, 900, slice(t, "a", 5), slice(t, "b", 600))
			put(t, r, "b", 1100)
			return r
		}, 1, 2},
		"it has passed us, and forgot": { // 410, and the metadata contradict
			func(t *testing.T) *relay.Relay {
				return stateOf(t, 1100, slice(t, "a", 5), slice(t, "b", 1050), slice(t, "c", 990))
			}, 1, 2},
		"it only restarted": {func(t *testing.T) *relay.Relay {
			return stateOf(t, 1000, slice(t, "a", 5), slice(t, "b", 950))
		}, 0, 1},
		"it only went on": {func(t *testing.T) *relay.Relay {
			r := stateOf(t, 1000, slice(t, "a", 5), slice(t, "b", 950))
			put(t, r, "b", 1050)
			return r
		}, 0, 1},
		"it only went on, and forgot": {func(t *testing.T) *relay.Relay {
			return stateOf(t, 1060, slice(t, "a", 5), slice(t, "b", 1050))
		}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			cloud, mine := newCloud(t, 1000, slice(t, "a", 5), slice(t, "b", 950)), newRelay(t)
			f := feed(t, mine)
			f.Use(cloud.upstream())
			eventually(t, "the first list", func() bool { return mine.Status().Version == 1000 })
			cloud.restore(c.after(t))
			eventually(t, "the cloud's state", func() bool {
				s, want := mine.Status(), cloud.relay.Load()
				return f.Status().Checks > 0 && s.Version == want.Status().Version && s.History.Number == c.history &&
					maps.Equal(versions(mine), versions(want))
			})
			put(t, cloud.relay.Load(), "z", 1200)
			eventually(t, "an event", func() bool { return mine.Status().Version == 1200 })
			if s := f.Status(); s.Lists.Total() != c.lists || s.Histories != int(c.history) {
				t.Errorf("%+v", s)
			}
			if s := mine.Status(); c.history == 1 && s.History.Lost != 1000 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// A quiet cloud is asked once for each connection and break, not for each short watch.
func TestTrustedCloudIsNotAsked(t *testing.T) {
	cloud, mine := newCloud(t, 1000, slice(t, "a", 5)), newRelay(t)
	f := feed(t, mine)
	f.Use(cloud.upstream())
	eventually(t, "some watches", func() bool { return f.Status().Watches >= 3 })
	if n := cloud.asked.Load(); n != 0 {
		t.Errorf("asked %d times after a list", n)
	}
	cloud.srv.CloseClientConnections()
	watches := f.Status().Watches
	eventually(t, "some watches after a break", func() bool { return f.Status().Watches >= watches+3 })
	if n := cloud.asked.Load(); n != 1 {
		t.Errorf("asked %d times after one break", n)
	}
}

// A hub that is fed by the coordinator follows its history, once, and does not go back to an earlier one.
func TestHistoryOfThePool(t *testing.T) {
	pool, mine := newRelay(t), newRelay(t)
	if err := pool.Replace(1000, []*wire.Object{slice(t, "a", 5), slice(t, "ghost", 950)}); err != nil {
		t.Fatal(err)
	}
	up := serve(t, "coordinator", &rest.Handler{Source: pool})
	up.Progress = true
	f := feed(t, mine)
	f.Use(up)
	eventually(t, "the first list", func() bool { return mine.Status().Version == 1000 })
	if err := pool.ReplaceIn(relay.History{Number: 1, Lost: 1000}, 900, []*wire.Object{slice(t, "a", 5)}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other history", func() bool {
		s := mine.Status()
		return s.History == relay.History{Number: 1, Lost: 1000} && s.Version == 900 && s.Objects == 1
	})
	put(t, pool, "b", 901)
	eventually(t, "an event", func() bool { return mine.Status().Version == 901 })
	if s := f.Status(); s.Lists.Total() != 2 || s.Histories != 1 {
		t.Errorf("%+v", s)
	}

	f.Use(nil)
	// from the cloud: the pool was never at 903.
	if err := mine.Apply(&wire.Event{Type: wire.Bookmark, Version: 903}); err != nil {
		t.Fatal(err)
	}
	put(t, pool, "c", 904)
	f.Use(up)
	eventually(t, "what came meanwhile", func() bool { return mine.Status().Version == 904 })
	if s := f.Status(); s.Lists.Total() != 2 || s.Resyncs != 0 {
		t.Errorf("the version is of the history that it says, so there is nothing to list: %+v", s)
	}

	behind := newRelay(t) // a coordinator that lost its disk, and was filled by one who was away
	if err := behind.Replace(2000, []*wire.Object{slice(t, "ghost", 950)}); err != nil {
		t.Fatal(err)
	}
	late := serve(t, "coordinator", &rest.Handler{Source: behind})
	late.Progress = true
	f.Use(late)
	eventually(t, "a refusal", func() bool { return f.Status().LastError != "" })
	if s := mine.Status(); s.Version != 904 || s.History.Number != 1 {
		t.Errorf("%+v", s)
	}
	if err := behind.ReplaceIn(relay.History{Number: 1, Lost: 1000}, 905,
		[]*wire.Object{slice(t, "a", 5), slice(t, "b", 901), slice(t, "c", 904)}); err != nil {
		t.Fatal(err)
	}
	put(t, behind, "d", 906)
	eventually(t, "the pool to come along", func() bool { return mine.Status().Version == 906 })
	if s := f.Status(); s.Lists.Total() != 2 {
		t.Errorf("%+v", s)
	}
}

// TestServerOfAnotherHistory: the coordinator follows a leader into another history of the cloud, and no leader back.
func TestServerOfAnotherHistory(t *testing.T) {
	leader, pool := newRelay(t), newRelay(t)
	for _, r := range []*relay.Relay{leader, pool} {
		if err := r.Replace(1000, []*wire.Object{slice(t, "a", 5), slice(t, "ghost", 950)}); err != nil {
			t.Fatal(err)
		}
	}
	f := feed(t, pool)
	f.Use(shows(t, leader))
	eventually(t, "a watch", func() bool { return f.Status().Watches > 0 })
	if err := leader.ReplaceIn(relay.History{Number: 1, Lost: 1000}, 900, []*wire.Object{slice(t, "a", 5)}); err != nil {
		t.Fatal(err)
	}
	put(t, leader, "b", 901)
	eventually(t, "the other history", func() bool {
		s := pool.Status()
		return s.History == relay.History{Number: 1, Lost: 1000} && s.Version == 901 && s.Objects == 2
	})
	f.Use(shows(t, stateOf(t, 3000))) // of a hub that was away
	eventually(t, "it to be refused", func() bool { return strings.Contains(f.Status().LastError, "still in history 0") })
	if s := pool.Status(); s.Version != 901 || s.History.Number != 1 {
		t.Errorf("%+v", s)
	}
}

// A leader of before lists again at the cloud, though that could not prove it wrong.
func TestOverruled(t *testing.T) {
	cloud, mine := newCloud(t, 1000, slice(t, "a", 5)), newRelay(t)
	f := feed(t, mine)
	f.Use(cloud.upstream())
	eventually(t, "the first list", func() bool { return mine.Status().Version == 1000 })
	f.Overrule(2)
	eventually(t, "the other history", func() bool {
		return mine.Status().History == relay.History{Number: 2, Lost: 1000}
	})
	f.Overrule(2)
	put(t, cloud.relay.Load(), "b", 1001)
	eventually(t, "an event", func() bool { return mine.Status().Version == 1001 })
	if s := f.Status(); s.Lists.Total() != 2 {
		t.Errorf("%+v", s)
	}
}
