package images

import (
	"context"
	"net/http"

	"github.com/weir-edge/weir/impl/images/desk"
)

// Pool is the way to the other members. Both methods may be called by many.
type Pool interface {
	// Ask asks the desk of the pool. It takes two seconds at most.
	Ask(ctx context.Context, a desk.Ask) (desk.Answer, error)
	// Open reads from a member, from which a header Range asks for a part; "": for all. The caller closes the body.
	Open(ctx context.Context, from desk.Holder, method string, d desk.Digest, part string) (*http.Response, error)
}
