package door

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/hub/beat"
	"github.com/weir-edge/weir/impl/hub/relayed"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// there is a cloud that can be reached.
type there struct{}

func (there) IsAway() (bool, context.Context) { return false, context.Background() }
func (there) AwayBy(error) bool               { return false }
func (there) Unknown() bool                   { return false }

// cloud notes which requests come to it, and answers all.
type cloud struct{ got []*http.Request }

func (c *cloud) RoundTrip(req *http.Request) (*http.Response, error) {
	c.got = append(c.got, req)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Header: http.Header{}, Request: req}, nil
}

// relayedAt makes a door at which some resources are relayed.
func relayedAt(t *testing.T, resources ...string) (*Door, map[string]*relay.Relay) {
	t.Helper()
	clk, logger := clocktesting.NewFakeClock(time.Now()), slog.New(slog.DiscardHandler)
	all, relays := &relayed.Sources{}, map[string]*relay.Relay{}
	for _, name := range resources {
		res, err := relay.ParseResource(name)
		check(t, err)
		r, err := relay.New(relay.Config{Resource: res, Clock: clk})
		check(t, err)
		check(t, r.Replace(100, []*wire.Object{}))
		f, err := relayed.NewFeeder(source.Config{Relay: r, Clock: clk}, func() {})
		check(t, err)
		all.Add(f)
		relays[res.Resource] = r
	}
	return New(Config{
		Node: "edge-1", Sources: all, Beats: beat.NewBeats(beat.BeatsConfig{Node: "edge-1", Clock: clk}),
		Gate: access.NewGate(access.GateConfig{
			Rate: 1, Burst: 1, Cloud: there{}, Clock: clk, Count: func(string) {}, Logger: logger,
		}),
	}), relays
}

// TestDecide: who answers a request is decided by what was parsed of it, by the caller, and by what is relayed.
func TestDecide(t *testing.T) {
	const slices, widgets = "/apis/discovery.k8s.io/v1/endpointslices", "/apis/example.org/v1/widgets"
	const lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/edge-1"
	d, relays := relayedAt(t, "endpointslices.v1.discovery.k8s.io", "pods.v1.", "nodes.v1.",
		"widgets.v1.example.org=Widget")
	relays["widgets"].Deny(apierrors.NewForbidden(relays["widgets"].Resource().GroupResource(), "", nil))
	consistent := func(v string) []string { return []string{contract.ConsistentHeader, v} }
	as := []string{"Impersonate-User", "ann"}
	for _, c := range []struct {
		method, uri string
		who         access.Kind
		header      []string
		way         way
		target      string // the relayed resource
		lost        bool
	}{
		{"GET", slices, access.Bearer, nil, byRelay, "endpointslices", false},
		{"GET", slices + "?watch=1", access.ThisNode, nil, byRelay, "endpointslices", false},
		{"GET", slices, access.Anonymous, consistent("false"), byRelay, "endpointslices", false},
		{"GET", slices, access.Bearer, consistent("true"), byCloud, "endpointslices", false},
		{"GET", slices, access.Bearer, consistent("yes"), mistaken, "endpointslices", false},
		{"GET", "/version", access.Bearer, consistent("yes"), mistaken, "", false},
		{"GET", "/" + slices, access.Bearer, nil, byCloud, "", false},
		{"DELETE", slices, access.Bearer, nil, byCloud, "endpointslices", false},
		{"POST", slices, access.ThisNode, nil, byCloud, "endpointslices", false},
		{"GET", widgets, access.Bearer, nil, byCloud, "", true},
		{"GET", "/api/v1/secrets", access.Bearer, nil, byCloud, "", false},
		{"GET", "/version", access.Anonymous, nil, byCloud, "", false},
		// This node's own Node and pods are node-scope for the node, not for others, and not in another's name.
		{"GET", "/api/v1/nodes?fieldSelector=metadata.name%3Dedge-1", access.ThisNode, nil, byCloud, "", false},
		{"GET", "/api/v1/nodes?fieldSelector=metadata.name%3Dedge-1", access.ThisNode, as, byRelay, "nodes", false},
		{"GET", "/api/v1/nodes?fieldSelector=metadata.name%3Dedge-1", access.Bearer, nil, byRelay, "nodes", false},
		{"GET", "/api/v1/nodes?fieldSelector=metadata.name%3Dedge-2", access.ThisNode, nil, byRelay, "nodes", false},
		{"GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dedge-1", access.ThisNode, nil, byCloud, "", false},
		// A heartbeat is the node's alone.
		{"PUT", lease, access.ThisNode, nil, byBeats, "", false},
		{"GET", lease, access.ThisNode, nil, byBeats, "", false},
		{"PUT", lease, access.ThisNode, as, byCloud, "", false},
		{"PUT", lease, access.Bearer, nil, byCloud, "", false},
	} {
		req := httptest.NewRequest(c.method, "http://hub/", nil)
		req.URL.Path, req.URL.RawQuery = cut(c.uri)
		for i := 0; i < len(c.header); i += 2 {
			req.Header.Set(c.header[i], c.header[i+1])
		}
		got, target := d.decide(req, request.Parse(req), access.Caller{Kind: c.who}), ""
		if got.target != nil {
			target = got.target.Resource.Name
		}
		if got.way != c.way || target != c.target || (got.lost != nil) != c.lost ||
			(got.refusal != nil) != (c.way == mistaken) {
			t.Errorf("%s %s of %v %v: way %d of %q, lost %t, %v; want %d of %q, %t", c.method, c.uri, c.who, c.header, got.way,
				target, got.lost != nil, got.refusal, c.way, c.target, c.lost)
		}
	}
}

func cut(uri string) (path, query string) {
	req := httptest.NewRequest(http.MethodGet, "http://hub"+uri, nil)
	return req.URL.Path, req.URL.RawQuery
}

// TestDecideBySpentShare: a caller that has used up its share of requests to the cloud is refused before anything is
// done, and still reads relays; this node has no share.
func TestDecideBySpentShare(t *testing.T) {
	d, _ := relayedAt(t, "endpointslices.v1.discovery.k8s.io")
	decide := func(uri string, kind access.Kind) decision {
		req := httptest.NewRequest(http.MethodGet, uri, nil)
		req.Header.Set("Authorization", "Bearer x")
		return d.decide(req, request.Parse(req), access.Caller{Kind: kind})
	}
	if got := decide("/api/v1/secrets", access.Bearer); got.way != byCloud {
		t.Fatalf("before: way %d, %v", got.way, got.refusal)
	}
	for range 2 { // after the first one the cloud is known to have taken its token
		req := httptest.NewRequest(http.MethodGet, "/api/v1/secrets", nil)
		req.Header.Set("Authorization", "Bearer x")
		_, err := d.Gate.Through(&cloud{}).RoundTrip(req)
		check(t, err)
	}
	if got := decide("/api/v1/secrets", access.Bearer); got.way != refused || got.refusal == nil ||
		got.refusal.ErrStatus.Code != http.StatusTooManyRequests {
		t.Errorf("a caller without a share: way %d, %v", got.way, got.refusal)
	}
	if got := decide("/apis/discovery.k8s.io/v1/endpointslices", access.Bearer); got.way != byRelay {
		t.Errorf("its read of a relay: way %d, %v", got.way, got.refusal)
	}
	if got := decide("/api/v1/secrets", access.ThisNode); got.way != byCloud {
		t.Errorf("this node: way %d, %v", got.way, got.refusal)
	}
}

// TestPassage: a request goes to the cloud as it was parsed, by the way of its caller.
func TestPassage(t *testing.T) {
	d, _ := relayedAt(t, "endpointslices.v1.discovery.k8s.io")
	for _, kind := range []access.Kind{access.ThisNode, access.Bearer} {
		asNode, asCaller := &cloud{}, &cloud{}
		p := NewProxy(ProxyConfig{
			AsNode: asNode, AsCaller: asCaller, Left: func(string) bool { return false }, Clock: clock.RealClock{},
			Logger: slog.New(slog.DiscardHandler),
		})
		req := httptest.NewRequest(http.MethodGet, "/apis/discovery.k8s.io/v1/endpointslices?limit=1;x&a=%2f", nil)
		asked := request.Parse(req)
		p.Serve(httptest.NewRecorder(), req, Passage{
			Asked: asked, Who: access.Caller{Kind: kind}, Target: d.router.Route(asked),
		})
		got := asCaller.got
		if kind == access.ThisNode {
			got = asNode.got
		}
		if len(got) != 1 || len(asNode.got)+len(asCaller.got) != 1 {
			t.Fatalf("%v: %d requests as the node, %d as the caller", kind, len(asNode.got), len(asCaller.got))
		}
		if got[0].URL.Path != asked.Path || got[0].URL.RawQuery != req.URL.RawQuery || got[0].Method != asked.Method {
			t.Errorf("%v: sent %s %s", kind, got[0].Method, got[0].URL)
		}
	}
}
