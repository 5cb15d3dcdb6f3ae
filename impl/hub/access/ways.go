package access

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/limit"
	"github.com/weir-edge/weir/impl/request"
)

// waysOf are the ways for what is asked. A caller has as many for collections as for all else: a controller that lists
// what it knows would lose its Lease else.
func (g *Gate) waysOf(asked *request.Request) *limit.Ways {
	if asked.Verb == "list" || asked.Verb == "deletecollection" {
		return &g.lists
	}
	return &g.others
}

// Waiting is how many requests wait for one of their caller's ways to the cloud.
func (g *Gate) Waiting() int64 { return g.lists.Waiting() + g.others.Waiting() }

// Way waits for one of the caller's ways to the cloud, at most until the context of the request ends. The request that
// is returned is to be used, and give to be called when its answer is over. It may be called again.
//
// A request that lasts does not wait, and has none: it would keep it for as long as its client likes. It is bounded by
// what it counts as.
func (a *Admission) Way(req *http.Request) (_ *http.Request, give func(), err error) {
	if a == nil || a.asked.Lasts() {
		return req, func() {}, nil
	}
	req, whole, err := gathered(req)
	if err != nil {
		return req, nil, err
	}
	if !whole {
		return req, func() {}, nil
	}
	if give, err = a.g.waysOf(a.asked).Take(req.Context(), a.holder()); err != nil {
		return req, nil, fmt.Errorf("%w: %w", uplink.ErrNoTurn, err)
	}
	return req, give, nil
}

// holder is whose ways the request takes: a known caller's, or those of an address.
func (a *Admission) holder() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.slots != nil {
		return "at " + a.key
	}
	return a.key
}

// gathered reads the body of a request, unless it is large; whole reports whether there is nothing left to read.
func gathered(req *http.Request) (_ *http.Request, whole bool, err error) {
	switch {
	case req.Body == nil || req.Body == http.NoBody:
		return req, true, nil
	case req.ContentLength > limit.WaitingBody:
		return req, false, nil
	}
	came, err := io.ReadAll(io.LimitReader(req.Body, limit.WaitingBody+1))
	if err != nil {
		return req, false, fmt.Errorf("read the body of a request: %w", err)
	}
	whole, rest := len(came) <= limit.WaitingBody, req.Body
	req = req.WithContext(req.Context())
	if whole {
		_ = rest.Close()
		req.Body = io.NopCloser(bytes.NewReader(came))
	} else {
		req.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(came), rest), rest}
	}
	return req, whole, nil
}
