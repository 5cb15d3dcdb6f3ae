package images

import (
	"context"
	"net/http"

	"github.com/weir-edge/weir/impl/exchange"
)

// Pool is the way to the other members. Both methods may be called by many.
type Pool interface {
	// Ask asks the desk of the pool. It takes two seconds at most.
	Ask(ctx context.Context, a exchange.ImagesAsk) (exchange.ImagesAnswer, error)
	// Open reads from a member, from which a header Range asks for a part; "": for all. The caller closes the body.
	Open(ctx context.Context, from exchange.Holder, method string, d exchange.Digest, part string) (*http.Response, error)
}
