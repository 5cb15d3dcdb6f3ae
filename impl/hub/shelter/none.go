package shelter

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/request"
)

// None is for a hub that keeps nothing: all that no relay answers is the cloud's.
type None struct{}

// Admit takes nobody for somebody else.
func (None) Admit(req *http.Request, who access.Caller) (*http.Request, access.Caller, func()) {
	return req, who, func() {}
}

// Take takes nothing.
func (None) Take(_ *answer.Recorder, req *http.Request, _ *request.Request, _ access.Caller) (*http.Request, bool) {
	return req, false
}

// Serve sends a request to the cloud by next.
func (None) Serve(w http.ResponseWriter, req *http.Request, _ *request.Request, _ access.Caller, _ http.RoundTripper, next http.Handler) {
	next.ServeHTTP(w, req)
}

// Observe keeps nothing.
func (None) Observe(*http.Response) error { return nil }

// Rescue has no other answer.
func (None) Rescue(context.Context, http.ResponseWriter, error) bool { return false }

// Keeps tells that nothing is kept.
func (None) Keeps() bool { return false }

// History has no store to tell.
func (None) History(uint64) {}

// Renewing holds nothing.
func (None) Renewing() (done func()) { return func() {} }

// Run has nothing to do.
func (None) Run(context.Context, func()) error { return nil }

// Collectors are none.
func (None) Collectors() []prometheus.Collector { return nil }

// Status is nil: there is no store.
func (None) Status() *Status { return nil }
