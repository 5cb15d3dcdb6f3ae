package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/scope"
	"github.com/weir-edge/weir/impl/source/hop"
	"github.com/weir-edge/weir/impl/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newRelay(t *testing.T) *relay.Relay { t.Helper(); return relayBy(t, nil) }

// relayBy is a relay with the clock of its feeder.
func relayBy(t *testing.T, c clock.WithTickerAndDelayedExecution) *relay.Relay {
	t.Helper()
	res, err := relay.ParseResource("endpointslices.v1.discovery.k8s.io")
	if err != nil {
		t.Fatal(err)
	}
	r, err := relay.New(relay.Config{Resource: res, Clock: c})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func slice(t *testing.T, name string, version uint64) *wire.Object {
	t.Helper()
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, ResourceVersion: wire.FormatVersion(version)},
	}
	return object(t, s)
}

func object(t *testing.T, s *discoveryv1.EndpointSlice) *wire.Object {
	t.Helper()
	raw, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	o, err := wire.ParseObject(wire.Protobuf, raw)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func frame(t *testing.T, typ, name string, version uint64) []byte {
	t.Helper()
	return wire.AppendProtobufFrame(nil, typ, wire.Kind{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		slice(t, name, version).Raw)
}

func put(t *testing.T, r *relay.Relay, name string, version uint64) {
	t.Helper()
	ev := &wire.Event{
		Type: wire.Added, Object: slice(t, name, version), Version: version, Frame: frame(t, wire.Added, name, version),
	}
	if err := r.Apply(ev); err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	testkit.Until(t, time.Minute, what, ok)
}

// comes waits for a value of a channel, or for its end.
func comes[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	return testkit.Value(t, time.Minute, what, from)
}

// serve starts a real HTTP/2 server and returns it as an upstream.
func serve(t *testing.T, name string, h http.Handler) *hop.Upstream {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	u, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	return &hop.Upstream{Name: name, URL: u, Client: srv.Client()}
}

func run(t *testing.T, f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = f(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
}

func feed(t *testing.T, r *relay.Relay) *Feeder {
	t.Helper()
	return feedBy(t, Config{Relay: r})
}

func feedBy(t *testing.T, c Config) *Feeder {
	t.Helper()
	c.WatchTimeout = 3 * time.Second
	f, err := NewFeeder(c)
	if err != nil {
		t.Fatal(err)
	}
	run(t, f.Run)
	return f
}

func TestFeederResumesAtAnotherUpstream(t *testing.T) {
	cloud, pool, mine := newRelay(t), newRelay(t), newRelay(t)
	for _, r := range []*relay.Relay{cloud, pool} {
		if err := r.Replace(10, []*wire.Object{slice(t, "x", 5)}); err != nil {
			t.Fatal(err)
		}
	}
	a, b := serve(t, "cloud", &rest.Handler{Source: cloud}), serve(t, "coordinator", &rest.Handler{Source: pool})
	f := feed(t, mine)
	f.Use(a)
	eventually(t, "the first list", func() bool { return mine.Status().Version == 10 })
	f.Use(b)
	put(t, pool, "y", 11)
	eventually(t, "an event of the pool", func() bool { return mine.Status().Version == 11 })
	f.Use(a) // lags behind: the watch is accepted there and waits
	put(t, cloud, "y", 11)
	put(t, cloud, "z", 12)
	eventually(t, "an event of the cloud", func() bool { return mine.Status().Version == 12 })
	if s := f.Status(); s.Lists.Total() != 1 || s.Switches != 2 || s.Upstream != "cloud" {
		t.Errorf("%+v", s)
	}
	if s := mine.Status(); s.Objects != 3 || s.RingEvents != 2 {
		t.Errorf("%+v", s)
	}
}

// script is an upstream that answers each streaming list and each watch with the next of its lines.
type script struct {
	t       *testing.T
	streams []func(w http.ResponseWriter) // streaming lists
	watches []func(w http.ResponseWriter)

	ns, nw atomic.Int32
}

func (s *script) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	n, lines := &s.nw, s.watches
	if req.URL.Query().Get("sendInitialEvents") != "" {
		n, lines = &s.ns, s.streams
	}
	i := int(n.Add(1)) - 1
	if i < len(lines) {
		lines[i](w)
		return
	}
	<-req.Context().Done()
}

func stream(parts ...[]byte) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf"+";stream=watch")
		for _, p := range parts {
			_, _ = w.Write(p)
		}
	}
}

// initialEnd is the bookmark that ends the initial events of a streaming list.
func initialEnd(t *testing.T, version uint64) []byte {
	t.Helper()
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: wire.FormatVersion(version), Annotations: map[string]string{
			metav1.InitialEventsAnnotationKey: "true",
		},
	}}
	raw, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return wire.AppendProtobufFrame(nil, wire.Bookmark,
		wire.Kind{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}, raw)
}

func status(t *testing.T, err *apierrors.StatusError) []byte {
	t.Helper()
	raw, merr := err.ErrStatus.Marshal()
	if merr != nil {
		t.Fatal(merr)
	}
	return wire.AppendProtobufFrame(nil, wire.Error, wire.Kind{APIVersion: "v1", Kind: "Status"}, raw)
}

// Whatever an upstream sends, a relay that was full stays full and never goes back.
func TestBadUpstreamIsSurvived(t *testing.T) {
	huge := []byte{0x7f, 0xff, 0xff, 0xff}
	s := &script{t: t}
	s.streams = []func(http.ResponseWriter){
		func(w http.ResponseWriter) { http.Error(w, "not yet", http.StatusServiceUnavailable) },
		func(w http.ResponseWriter) { _, _ = w.Write([]byte("k8s\x00nonsense")) },
		stream(frame(t, wire.Added, "x", 9)),                                    // ends before the initial events do
		stream(frame(t, wire.Added, "x", 9), frame(t, wire.Added, "y", 10)[:9]), // breaks there
		stream(frame(t, wire.Added, "x", 9), frame(t, wire.Added, "y", 10), initialEnd(t, 10)),
		// after the 410: from a server that lags; refused.
		stream(metaFrame(t, wire.Added, "x", 9), metaEnd(t, 8)),
		stream(metaFrame(t, wire.Added, "x", 9), metaFrame(t, wire.Added, "y", 10), metaEnd(t, 20)), // w is gone
	}
	s.watches = []func(http.ResponseWriter){
		stream(frame(t, wire.Added, "w", 11), frame(t, wire.Added, "v", 12)[:20]), // breaks inside a frame
		stream(huge), // a frame that cannot be
		stream([]byte{0, 0, 0, 3, 0xff, 0xff, 0xff}),                                                 // not protobuf
		stream(status(t, apierrors.NewInternalError(errors.New("boom")))),                            // an ERROR event
		stream(frame(t, wire.Modified, "w", 13), status(t, apierrors.NewResourceExpired("too old"))), // 410 in mid-watch
		stream(status(t, apierrors.NewResourceExpired("too old"))),
	}
	r := newRelay(t)
	f := feed(t, r)
	var low atomic.Int64
	low.Store(1 << 30)
	f.Use(serve(t, "cloud", s))
	eventually(t, "the end of the script", func() bool {
		if st := r.Status(); st.Synced {
			low.Store(min(low.Load(), int64(st.Objects)))
		}
		return r.Status().Version == 20
	})
	if st := r.Status(); st.Objects != 2 || low.Load() < 2 {
		t.Errorf("%d objects, lowest %d", st.Objects, low.Load())
	}
	if st := f.Status(); st.Gone == 0 {
		t.Errorf("%+v", st)
	}
}

// shows is a Server of a relay, as an upstream.
func shows(t *testing.T, r *relay.Relay) *hop.Upstream {
	t.Helper()
	up := serve(t, "hub", hop.NewServer("edge-1", scope.NewSet(r).All, clock.RealClock{}))
	up.Progress = true
	return up
}

// TestServer: what a relay shows is taken, from where the one that takes it stands; and nothing from the moment that it
// is not admitted any more, whatever is on its way.
func TestServer(t *testing.T) {
	leader, pool := newRelay(t), newRelay(t)
	up := shows(t, leader)
	var fenced atomic.Pointer[error]
	up.Admit = func() error {
		if e := fenced.Load(); e != nil {
			return *e
		}
		return nil
	}
	f := feed(t, pool)
	f.Use(up) // before there is anything to show
	if err := leader.Replace(10, []*wire.Object{slice(t, "x", 5), slice(t, "y", 6)}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first fill", func() bool { return pool.Status().Version == 10 && pool.Status().Objects == 2 })
	put(t, leader, "z", 11)
	eventually(t, "an event", func() bool { return pool.Status().Version == 11 })
	f.Use(nil)
	put(t, leader, "z2", 12)
	f.Use(up) // goes on where the relay stands
	eventually(t, "the rest", func() bool { return pool.Status().Version == 12 })
	if s := f.Status(); s.Lists.Total() != 1 || pool.Status().RingEvents != 2 {
		t.Errorf("%+v, %+v", s, pool.Status())
	}
	before := pool.Status().ProgressAt
	if err := leader.Apply(&wire.Event{Type: wire.Bookmark, Version: 13}); err != nil { // progress passes along at once
		t.Fatal(err)
	}
	eventually(t, "progress", func() bool { return pool.Status().ProgressAt.After(before) && pool.Status().Version == 13 })
	why := errors.New("another leads now")
	fenced.Store(&why)
	put(t, leader, "late", 14)
	eventually(t, "the fence to be felt", func() bool { return strings.Contains(f.Status().LastError, why.Error()) })
	if pool.Status().Version != 13 {
		t.Error("a fenced upstream wrote")
	}
	leader.Deny(apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, "x"))
	f.Kick()
	eventually(t, "a denial to come", func() bool { return strings.Contains(f.Status().LastError, "404") })
	if pool.Denied() != nil {
		t.Error("a fenced upstream denied")
	}
}

// TestNotAdmitted: nothing counts of what comes from the one that does not, whenever that begins: no list, no list of
// metadata with what it lacks, no denial.
func TestNotAdmitted(t *testing.T) {
	for name, mine := range map[string]func(*relay.Relay) error{
		"list":   func(*relay.Relay) error { return nil },
		"resync": func(r *relay.Relay) error { return r.Replace(5, []*wire.Object{slice(t, "old", 5)}) },
	} {
		t.Run(name, func(t *testing.T) {
			for admitted := int64(0); notAdmitted(t, mine, admitted); admitted++ {
			}
		})
	}
}

// notAdmitted lets a relay ask so many times whether its source counts before it does not any more. False: that was
// enough for all.
func notAdmitted(t *testing.T, mine func(*relay.Relay) error, admitted int64) bool {
	t.Helper()
	leader, pool := newRelay(t), newRelay(t)
	if err := errors.Join(leader.Replace(10, []*wire.Object{slice(t, "x", 10)}), mine(pool)); err != nil {
		t.Fatal(err)
	}
	was := pool.Status()
	var asked atomic.Int64
	var refused atomic.Bool // before anything counted
	up, why := shows(t, leader), errors.New("another leads now")
	up.Admit = func() error {
		if asked.Add(1) <= admitted {
			return nil
		}
		if pool.Status().Version == was.Version {
			refused.Store(true)
		}
		return why
	}
	f := feed(t, pool)
	f.Use(up)
	eventually(t, "the list, or a refusal", func() bool {
		return pool.Status().Version != was.Version || strings.Contains(f.Status().LastError, why.Error())
	})
	if pool.Status().Version != was.Version {
		if refused.Load() {
			t.Errorf("refused after %d times, and it counts: %+v", admitted, pool.Status())
		}
		return false
	}
	if s := pool.Status(); s.Objects != was.Objects {
		t.Errorf("admitted %d times: %+v", admitted, s)
	}
	leader.Deny(apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, "x"))
	eventually(t, "a denial to come", func() bool {
		f.Kick()
		return strings.Contains(f.Status().LastError, "404")
	})
	if pool.Denied() != nil {
		t.Errorf("admitted %d times: a denial counts", admitted)
	}
	return true
}

// TestNoSource: what somebody holds who is no source moves a relay forward, in its own history, and makes nothing
// fresh.
func TestNoSource(t *testing.T) {
	from, mine := newRelay(t), newRelay(t)
	if err := from.Replace(10, []*wire.Object{slice(t, "x", 5)}); err != nil {
		t.Fatal(err)
	}
	up := shows(t, from)
	up.Unconfirmed = true
	f := feed(t, mine)
	f.Use(up)
	aged := func(version uint64) {
		t.Helper()
		eventually(t, fmt.Sprint("version ", version), func() bool { return mine.Status().Version == version })
		if s := mine.Status(); !s.Restored {
			t.Errorf("it is believed: %+v", s)
		}
	}
	aged(10)
	put(t, from, "y", 11)
	aged(11)
	if err := from.ReplaceIn(relay.History{Number: 1, Lost: 11}, 8, []*wire.Object{slice(t, "z", 8)}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another history to be refused", func() bool { return f.Status().LastError != "" })
	aged(11)
	denied := newRelay(t)
	denied.Deny(apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, "x"))
	up = shows(t, denied)
	up.Unconfirmed = true
	f.Use(up)
	eventually(t, "a denial to come", func() bool { return strings.Contains(f.Status().LastError, "404") })
	if mine.Denied() != nil {
		t.Error("a denial is believed")
	}
}

// TestShown: a Server says what it has.
func TestShown(t *testing.T) {
	r := newRelay(t)
	up := shows(t, r)
	want := func(want hop.Shown) {
		t.Helper()
		got, err := up.Shown(t.Context())
		if err != nil || len(got) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		if want.Resource = r.Resource().String(); got[0].AgeSeconds >= 0 && want.AgeSeconds == 0 {
			got[0].AgeSeconds = 0
		}
		if got[0] != want {
			t.Errorf("%+v, want %+v", got[0], want)
		}
	}
	want(hop.Shown{AgeSeconds: -1})
	if err := r.ReplaceIn(relay.History{Number: 3}, 10, nil); err != nil {
		t.Fatal(err)
	}
	want(hop.Shown{Synced: true, Version: 10, History: 3})
}

// TestServerWithoutAResource: a hub that was not told of a resource does not say that the cloud has none.
func TestServerWithoutAResource(t *testing.T) {
	up := serve(t, "hub", hop.NewServer("edge-1", scope.NewSet().All, clock.RealClock{}))
	up.Progress = true
	mine := newRelay(t)
	f := feed(t, mine)
	f.Use(up)
	eventually(t, "an answer", func() bool { return f.Status().Answer != 0 })
	if s := f.Status(); s.Answer != http.StatusServiceUnavailable || mine.Denied() != nil {
		t.Errorf("%+v, %v", s, mine.Denied())
	}
}

// pipe answers every watch with the same bytes.
type pipe string

func (p pipe) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(p))), Request: req,
	}, nil
}

func FuzzWatchOfARelay(f *testing.F) {
	k := wire.Kind{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "x", ResourceVersion: "5"}}
	raw, err := s.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(wire.AppendProtobufFrame(nil, wire.Added, k, raw))
	res, err := relay.ParseResource("endpointslices.v1.discovery.k8s.io")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := relay.New(relay.Config{Resource: res})
		if err != nil {
			t.Fatal(err)
		}
		x, err := NewFeeder(Config{Relay: r})
		if err != nil {
			t.Fatal(err)
		}
		_ = x.feed(t.Context(), &hop.Upstream{
			Name: "hub", URL: &url.URL{Scheme: "https", Host: "hub"}, Progress: true, Client: &http.Client{Transport: pipe(b)},
		})
		if s := r.Status(); !s.Synced && s.Objects > 0 {
			t.Fatal("objects without a list")
		}
	})
}

// A relay that begins with the past of another one can serve whom that can serve: a coordinator that lost its disk, and
// a hub that did.
func TestThePastPassesAlong(t *testing.T) {
	leader, pool, hub := newRelay(t), newRelay(t), newRelay(t)
	if err := leader.Replace(10, []*wire.Object{slice(t, "x", 5), slice(t, "y", 6)}); err != nil {
		t.Fatal(err)
	}
	put(t, leader, "y", 11)
	if err := leader.Apply(&wire.Event{Type: wire.Deleted, Object: slice(t, "x", 12), Version: 12}); err != nil {
		t.Fatal(err)
	}
	put(t, leader, "z", 13)
	feed(t, pool).Use(shows(t, leader))
	eventually(t, "the leader's state", func() bool {
		return maps.Equal(versions(pool), versions(leader)) && pool.Status().Version == 13
	})
	f := feed(t, hub)
	from := serve(t, "coordinator", &rest.Handler{Source: pool})
	from.Progress = true
	f.Use(from)
	eventually(t, "the pool's state", func() bool {
		return maps.Equal(versions(hub), versions(leader)) && hub.Status().Version == 13
	})
	for name, r := range map[string]*relay.Relay{"coordinator": pool, "hub": hub} {
		if s := r.Status(); s.Oldest != 10 || s.RingEvents != 3 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// A feeder that has failed for long does not wait for the end of its pause once its upstream is known to answer.
func TestKick(t *testing.T) {
	c := testingclock.NewFakeClock(time.Now())
	cloud := newRelay(t)
	var down atomic.Bool
	down.Store(true)
	asked := make(chan struct{}, 100)
	up := serve(t, "cloud", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked <- struct{}{}
		if down.Load() {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
			return
		}
		(&rest.Handler{Source: cloud}).ServeHTTP(w, req)
	}))
	if err := cloud.Replace(10, []*wire.Object{slice(t, "x", 5)}); err != nil {
		t.Fatal(err)
	}
	r := relayBy(t, c)
	f, err := NewFeeder(Config{Relay: r, Clock: c})
	if err != nil {
		t.Fatal(err)
	}
	run(t, f.Run)
	f.Use(up)
	for range 10 { // until the pause is as long as it gets
		<-asked
		eventually(t, "a pause", c.HasWaiters)
		c.Step(member.MaxBackoff)
	}
	<-asked
	eventually(t, "a pause", c.HasWaiters)
	down.Store(false)
	f.Kick()
	eventually(t, "the list", func() bool { return r.Status().Version == 10 })
}
