package member

import (
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/hub/feeder"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source"
	"github.com/weir-edge/weir/impl/source/hop"
)

// TestVersionsThatNeverWere: attack 56. A coordinator that was fed a version which the cloud has not reached would take nothing from an honest
// leader, and seem to have all. The leader asks the cloud, and goes on in another history with what it holds; nothing is listed for that.
func TestVersionsThatNeverWere(t *testing.T) {
	res, err := relay.ParseResource("endpointslices.v1.discovery.k8s.io")
	check(t, err)
	newRelay := func() *relay.Relay {
		r, err := relay.New(relay.Config{Resource: res})
		check(t, err)
		check(t, r.Replace(1000, []*wire.Object{}))
		return r
	}
	cloud, mine := newRelay(), newRelay()
	srv := httptest.NewServer(&rest.Handler{Source: cloud})
	defer srv.Close()
	at, err := url.Parse(srv.URL)
	check(t, err)
	x, err := feeder.New(source.Config{Relay: mine}, func() {})
	check(t, err)
	x.Use(&hop.Upstream{Name: "cloud", URL: at, Client: srv.Client(), Consistent: true})
	c := testingclock.NewFakeClock(time.Now())
	sources := &feeder.Sources{}
	sources.Add(x)
	f := &ahead{Config: &Config{Sources: sources, Clock: c, Logger: slog.Default()}}
	look := func(version uint64) {
		t.Helper()
		var s coordinator.Status
		raw, err := json.Marshal(map[string]any{"resources": []any{map[string]any{
			"resource": res.String(), "synced": true, "version": version, "history": mine.Status().History.Number,
		}}})
		check(t, err)
		check(t, json.Unmarshal(raw, &s))
		f.look(t.Context(), &s)
	}
	want := func(history, lost uint64, checks int, when string) {
		t.Helper()
		if s := mine.Status(); s.History != (relay.History{Number: history, Lost: lost}) || s.Version != 1000 || x.Status().Checks != checks {
			t.Fatalf("%s: %+v at %d after %d reads from the cloud, want history %d/%d, 1000 and %d", when, s.History, s.Version, x.Status().Checks, history, lost, checks)
		}
	}
	look(1005)
	c.Step(14 * time.Second)
	look(1005)
	want(0, 0, 0, "a new leader is behind for a moment")
	check(t, cloud.Apply(&wire.Event{Type: wire.Bookmark, Version: 1010}))
	c.Step(time.Second)
	look(1005)
	want(0, 0, 1, "the cloud has reached it")
	look(1000) // this relay is as far
	look(9e18)
	c.Step(15 * time.Second)
	look(9e18)
	want(1, 9e18, 2, "the cloud has not reached it")
}
