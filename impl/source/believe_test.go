package source

import (
	"maps"
	"math"
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

// TestCloudWins: attack 55. Whatever a relay was told by others, it holds the cloud's state again after one list from
// there.
func TestCloudWins(t *testing.T) {
	for name, c := range map[string]struct {
		history relay.History
		version uint64
	}{
		"the last number":           {relay.History{Number: math.MaxUint64}, 9e18},
		"the last that is believed": {relay.History{Number: 1 << 32}, 9e18},
		"a later version":           {relay.History{}, 9e18},
	} {
		t.Run(name, func(t *testing.T) {
			cloud, mine := newCloud(t, 1000, slice(t, "a", 5), slice(t, "b", 950)), newRelay(t)
			if err := mine.ReplaceIn(c.history, c.version, []*wire.Object{slice(t, "forged", 8e18)}); err != nil {
				t.Fatal(err)
			}
			f := feed(t, mine)
			f.Use(cloud.upstream())
			eventually(t, "the cloud's state", func() bool { return maps.Equal(versions(mine), versions(cloud.relay.Load())) })
			put(t, cloud.relay.Load(), "c", 1010)
			eventually(t, "what follows", func() bool { return mine.Status().Version == 1010 })
			if n := f.Status().Lists.Total(); n != 1 {
				t.Errorf("%d lists, want 1", n)
			}
		})
	}
}

// liar is a relay of the pool that shows what it was told to.
func liar(t *testing.T, history relay.History, version uint64) *hop.Upstream {
	t.Helper()
	r := newRelay(t)
	if err := r.ReplaceIn(history, version, []*wire.Object{slice(t, "forged", version)}); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(&rest.Handler{Source: r})
	t.Cleanup(srv.Close)
	u, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	return &hop.Upstream{Name: "coordinator", URL: u, Client: srv.Client(), Progress: true}
}

// TestHearsay: attacks 55, 56 and the third of 62. A history that a relay of the pool names is taken up if it may
// follow, and if the cloud, where it can be asked, does not contradict.
func TestHearsay(t *testing.T) {
	for name, c := range map[string]struct {
		history relay.History
		version uint64
		away    bool   // the cloud
		says    string // why it is not taken up; "": it is
	}{
		"the next, and the cloud is as far":       {relay.History{Number: 1}, 990, false, ""},
		"the next, and the cloud cannot be asked": {relay.History{Number: 1}, 9e18, true, ""},
		"the next, at a version that never was":   {relay.History{Number: 1}, 9e18, false, "the cloud at 1000"},
		"one that cannot follow":                  {relay.History{Number: 17}, 990, true, "cannot follow 0"},
		"the last":                                {relay.History{Number: math.MaxUint64}, 990, true, "at most"},
	} {
		t.Run(name, func(t *testing.T) {
			cloud, mine := newCloud(t, 1000, slice(t, "a", 5)).upstream(), newRelay(t)
			if err := mine.Replace(980, []*wire.Object{slice(t, "a", 5)}); err != nil {
				t.Fatal(err)
			}
			var doubts atomic.Int32
			f := feedBy(t, Config{Relay: mine, Doubt: func(error) { doubts.Add(1) }, Judge: func() *hop.Upstream {
				if c.away {
					return nil
				}
				return cloud
			}})
			f.Use(liar(t, c.history, c.version))
			if c.says == "" {
				eventually(t, "the other history", func() bool { return mine.Status().History.Number == c.history.Number })
				return
			}
			eventually(t, "a refusal", func() bool { return strings.Contains(f.Status().LastError, c.says) })
			if s := mine.Status(); s.History.Number != 0 || s.Version != 980 {
				t.Errorf("it is at %d of history %d", s.Version, s.History.Number)
			}
			if asked := strings.Contains(c.says, "cloud"); asked != (doubts.Load() > 0) {
				t.Errorf("told %d times", doubts.Load())
			}
		})
	}
}
