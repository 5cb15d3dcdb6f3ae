package door

import (
	"context"
	"net/http"

	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/request"
)

// Shelter serves this node while the cloud is away. See package shelter.
type Shelter interface {
	Admit(req *http.Request, who access.Caller) (_ *http.Request, _ access.Caller, done func())
	Take(w *answer.Recorder, req *http.Request, asked *request.Request, who access.Caller) (_ *http.Request, taken bool)
	Serve(w http.ResponseWriter, req *http.Request, asked *request.Request, who access.Caller, via http.RoundTripper,
		next http.Handler)
	Observe(resp *http.Response) error
	Rescue(ctx context.Context, w http.ResponseWriter, err error) bool
}
