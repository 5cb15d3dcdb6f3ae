package coordinator

import (
	"log/slog"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/scope"
)

// relays serves the relayed resources, in front of what the coordinator keeps itself and behind authorization.
type relays struct {
	all    *scope.Set
	clock  clock.WithTickerAndDelayedExecution
	logger *slog.Logger
	proves func(*http.Request)                         // told of each request of somebody of the pool
	lasts  func(*http.Request) (*http.Request, func()) // a request that ends with the certificate of its caller
	fail   func(w http.ResponseWriter, req *http.Request, err error)
	next   http.Handler
}

// of returns the relay that a request is for, nil if it is for none.
func (x *relays) of(info *genericrequest.RequestInfo) *relay.Relay {
	if info == nil || !info.IsResourceRequest {
		return nil
	}
	for _, r := range x.all.All() {
		if res := r.Resource(); res.Group == info.APIGroup && res.Version == info.APIVersion && res.Resource == info.Resource {
			return r
		}
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (x *relays) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	x.proves(req)
	req, end := x.lasts(req)
	defer end()
	info, _ := genericrequest.RequestInfoFrom(req.Context())
	r := x.of(info)
	switch {
	case r == nil:
		x.next.ServeHTTP(w, req)
		return
	case req.Method != http.MethodGet:
		x.fail(w, req, apierrors.NewMethodNotSupported(schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}, info.Verb))
		return
	}
	if s := r.Status(); s.Synced {
		age, _ := s.Age(x.clock.Now())
		w.Header().Set(contract.AgeHeader, strconv.FormatInt(int64(age.Seconds()), 10))
	}
	(&rest.Handler{Source: r, Logger: x.logger}).ServeHTTP(w, req)
}
