package relayed

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/role"
	"github.com/weir-edge/weir/impl/scope"
	"github.com/weir-edge/weir/impl/source"
	"github.com/weir-edge/weir/impl/source/hop"
	"github.com/weir-edge/weir/impl/testkit"
)

// TestLackedUntilGiven: a coordinator that said that it does not have a resource, and then gives it, has it, though the
// cloud has said nothing of a quiet resource since.
func TestLackedUntilGiven(t *testing.T) {
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	res, err := relay.ParseResource("endpointslices.v1.discovery.k8s.io")
	check(err)
	theirs, err := relay.New(relay.Config{Resource: res})
	check(err)
	check(theirs.Replace(100, []*wire.Object{}))
	var has atomic.Bool
	shown := hop.NewServer("edge-1", scope.NewSet(theirs).All, clock.RealClock{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !has.Load() {
			http.NotFound(w, req)
			return
		}
		shown.ServeHTTP(w, req)
	}))
	defer server.Close()
	at, err := url.Parse(server.URL)
	check(err)
	mine, err := relay.New(relay.Config{Resource: res, Late: true})
	check(err)
	f, err := NewFeeder(source.Config{Relay: mine, Clock: clock.RealClock{}}, func() {})
	check(err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	defer func() { cancel(); server.CloseClientConnections(); check(<-done) }()
	f.Use(&hop.Upstream{Name: role.Coordinator.String(), URL: at, Client: server.Client(), Progress: true})
	testkit.Until(t, time.Minute, "the refusal", f.Lacked)
	if !f.Unavailable() {
		t.Error("a relay that has only just come is to answer")
	}
	has.Store(true)
	f.Kick()
	testkit.Until(t, time.Minute, "the resource", func() bool { return mine.Status().Synced })
	testkit.Until(t, time.Minute, "it to count as given", func() bool { return !f.Lacked() })
	if at := f.refused.Load(); at == nil || mine.Status().ProgressAt.After(*at) {
		t.Error("a sign of the cloud came since: this shows nothing")
	}
}
