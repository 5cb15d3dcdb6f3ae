package door

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/hub/relayed"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/scope"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seen notes what a request is for the store.
type seen struct {
	Shelter // what is not below is not called
	asked   *request.Request
}

func (s *seen) Observe(*http.Response) error { return nil }

func (s *seen) Serve(w http.ResponseWriter, req *http.Request, asked *request.Request, _ access.Caller,
	_ http.RoundTripper, next http.Handler) {
	s.asked = asked
	next.ServeHTTP(w, req)
}

// nobody is told what was written.
type nobody struct{}

func (nobody) Observe(*relayed.Target, *http.Response) error { return nil }

func (nobody) Lost(*relayed.Target) {}

type cloud func(*http.Request)

func (c cloud) RoundTrip(req *http.Request) (*http.Response, error) {
	c(req)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}, nil
}

// TestOneReading: on its way to the cloud a request is what was parsed, for all who will look at its answer.
func TestOneReading(t *testing.T) {
	slices, err := relay.ParseResource("endpointslices.v1.discovery.k8s.io")
	if err != nil {
		t.Fatal(err)
	}
	r, err := relay.New(relay.Config{Resource: slices})
	if err != nil {
		t.Fatal(err)
	}
	for method, uri := range map[string]string{
		http.MethodGet:    "/api/v1/namespaces/default/endpoints/web/status",
		http.MethodDelete: "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/x",
	} {
		req := httptest.NewRequest(method, uri, nil)
		asked, kept, sent := request.Parse(req), &seen{}, 0
		target := relayed.Router(scope.NewSet(r).All).Route(asked)
		way := cloud(func(req *http.Request) {
			sent++
			if p := passageOf(req); p.asked != asked || p.target != target || target != nil && target.Request != asked ||
				req.URL.Path != asked.Path || req.Method != asked.Method {
				t.Errorf("%s %s: parsed %+v, for the relay %+v", req.Method, req.URL.Path, p.asked, p.target)
			}
		})
		p := NewProxy(ProxyConfig{
			AsNode: way, AsCaller: way, Shelter: kept, Written: nobody{}, Left: func(string) bool { return false },
			Clock: clock.RealClock{}, Logger: slog.New(slog.DiscardHandler),
		})
		p.Serve(httptest.NewRecorder(), req, asked, access.Caller{Kind: access.ThisNode}, target)
		if kept.asked != asked || sent != 1 {
			t.Errorf("%s %s: for the store %+v, sent %d times", method, uri, kept.asked, sent)
		}
	}
}
