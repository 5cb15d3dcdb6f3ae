package membership

import (
	"log/slog"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/weir-edge/weir/impl/hub/relayed"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source"
	"github.com/weir-edge/weir/impl/source/hop"
)

// TestVerify: attack 56. A leader that the coordinator is ahead of asks the cloud. If the cloud has not reached that
// version, the leader goes on in another history with what it holds; nothing is listed for that.
func TestVerify(t *testing.T) {
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
	x, err := relayed.NewFeeder(source.Config{Relay: mine}, func() {})
	check(t, err)
	x.Use(&hop.Upstream{Name: "cloud", URL: at, Client: srv.Client(), Consistent: true})
	p := &Pool{Config: &Config{Logger: slog.Default()}}
	want := func(history, lost uint64, checks int, when string) {
		t.Helper()
		s := mine.Status()
		if s.History != (relay.History{Number: history, Lost: lost}) || s.Version != 1000 || x.Status().Checks != checks {
			t.Fatalf("%s: %+v at %d after %d reads from the cloud, want history %d/%d, 1000 and %d",
				when, s.History, s.Version, x.Status().Checks, history, lost, checks)
		}
	}
	check(t, cloud.Apply(&wire.Event{Type: wire.Bookmark, Version: 1010}))
	p.verify(t.Context(), x, 1005)
	want(0, 0, 1, "the cloud has reached it")
	p.verify(t.Context(), x, 9e18)
	want(1, 9e18, 2, "the cloud has not reached it")
}
