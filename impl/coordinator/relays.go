package coordinator

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/authz"
	"github.com/weir-edge/weir/impl/limit"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/scope"
)

// relays serves the relayed resources, in front of what the coordinator keeps itself and behind authorization. Each
// write of a caller passes here, and counts.
type relays struct {
	all    *scope.Set
	copies func(authz.GroupResource) bool
	reads  atomic.Pointer[func(string) (*relay.Relay, func())] // scope.Scope's; nil: nothing is served yet
	clock  clock.WithTickerAndDelayedExecution
	logger *slog.Logger
	writes limit.Rate                                  // by the name in the certificate
	later  func()                                      // told of each write that is refused for its number
	proves func(*http.Request)                         // told of each request of somebody of the pool
	lasts  func(*http.Request) (*http.Request, func()) // a request that ends with the certificate of its caller
	fail   func(w http.ResponseWriter, req *http.Request, err error)
	next   http.Handler
}

// shared reports whether a request is about a resource that the pool shares.
func (x *relays) shared(info *genericrequest.RequestInfo) bool {
	return info != nil && info.IsResourceRequest &&
		x.copies(authz.GroupResource{Group: info.APIGroup, Resource: info.Resource})
}

// of returns the relay that a request is for, nil if it is for none. A reader of what the pool shares has it relayed
// until it calls done, and for some time after.
func (x *relays) of(info *genericrequest.RequestInfo, method string) (r *relay.Relay, done func()) {
	if info == nil || !info.IsResourceRequest {
		return nil, func() {}
	}
	if read := x.reads.Load(); read != nil && method == http.MethodGet {
		return (*read)(info.Resource + "." + info.APIVersion + "." + info.APIGroup)
	}
	for _, r := range x.all.All() {
		if res := r.Resource(); res.Group == info.APIGroup && res.Version == info.APIVersion &&
			res.Resource == info.Resource {
			return r, func() {}
		}
	}
	return nil, func() {}
}

// ServeHTTP implements http.Handler.
func (x *relays) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	x.proves(req)
	req, end := x.lasts(req)
	defer end()
	info, _ := genericrequest.RequestInfoFrom(req.Context())
	r, done := x.of(info, req.Method)
	defer done()
	switch wait := x.wait(req); {
	case wait > 0:
		x.later()
		x.fail(w, req,
			apierrors.NewTooManyRequests(fmt.Sprintf("%d writes a second at most of one caller, %d at once", limit.WriteRate,
				limit.WriteBurst), max(1, int(math.Ceil(wait.Seconds())))))
		return
	case r == nil:
		x.next.ServeHTTP(w, near(req))
		return
	case req.Method != http.MethodGet:
		x.fail(w, req, apierrors.NewMethodNotSupported(schema.GroupResource{Group: info.APIGroup, Resource: info.Resource},
			info.Verb))
		return
	}
	if r.Status().Joins {
		_ = r.WaitUntil(req.Context(), func() bool { return !r.Status().Joins || r.Denied() != nil })
	}
	if s := r.Status(); s.Synced {
		age, _ := s.Age(x.clock.Now())
		w.Header().Set(contract.AgeHeader, strconv.FormatInt(int64(age.Seconds()), 10))
	}
	(&rest.Handler{Source: r, Logger: x.logger}).ServeHTTP(w, req)
}

// wait is for how long the caller of a request has to wait until it may write; 0: it does not write, or may.
func (x *relays) wait(req *http.Request) time.Duration {
	if req.Method == http.MethodGet || req.Method == http.MethodHead {
		return 0
	}
	u, _ := genericrequest.UserFrom(req.Context())
	if u == nil {
		return 0 // what is let in without a name is only read
	}
	return x.writes.Take(u.GetName(), x.clock.Now())
}

type isNearKey struct{}

// near notes of a request that it came over the loopback interface, if it did.
func near(req *http.Request) *http.Request {
	if !contract.IsLoopback(req.RemoteAddr) {
		return req
	}
	return req.WithContext(context.WithValue(req.Context(), isNearKey{}, true))
}

// isNear reports whether near noted that.
func isNear(ctx context.Context) bool { return ctx.Value(isNearKey{}) != nil }
