package access

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/limit"
	"github.com/weir-edge/weir/impl/request"
)

// Requests of one caller that are at the cloud at once are counted apart: those about one object, or about none, and
// those about collections. Else a controller would lose its Lease while it lists all that it knows.
const (
	ofObjects = iota
	ofCollections
	lanes
)

func laneOf(asked *request.Request) int {
	if asked.Verb == "list" || asked.Verb == "deletecollection" {
		return ofCollections
	}
	return ofObjects
}

// Waiting is how many requests wait for one of their caller's ways to the cloud.
func (g *Gate) Waiting() (n int64) {
	for i := range g.ways {
		n += g.ways[i].Waiting()
	}
	return n
}

// way waits for one of the caller's ways to the cloud. give gives it back; what ends the context of the request does
// so, too.
//
// Two have none, and do not wait. A request that lasts would keep its way for as long as its client likes, and is
// bounded by what it counts as. So is a list in its name, by which the store catches up with a watch: such a list holds
// a place that all callers share. And what is asked in no request's name is bounded where it is asked (Limited).
func (a *Admission) way(req *http.Request) (_ *http.Request, give func(), err error) {
	if a == nil || a.asked.Lasts() {
		return req, func() {}, nil
	}
	req, whole, err := gathered(req)
	if err != nil {
		return nil, nil, err
	}
	if !whole {
		return req, func() {}, nil
	}
	ctx := req.Context()
	back, err := a.g.ways[laneOf(a.asked)].Take(ctx, a.holder())
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", uplink.ErrNoTurn, err)
	}
	stop := context.AfterFunc(ctx, back)
	return req, func() {
		stop()
		back()
	}, nil
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
		uplink.CloseBody(req)
		return nil, false, fmt.Errorf("read the body of a request: %w", err)
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

// giving gives a way back when there is nothing more to read of an answer.
func giving(resp *http.Response, give func()) {
	if resp.Body == http.NoBody || resp.StatusCode == http.StatusSwitchingProtocols {
		give()
		return
	}
	resp.Body = &passing{resp.Body, give}
}

// passing is the body of an answer on its way.
type passing struct {
	io.ReadCloser
	give func()
}

// Read implements io.Reader.
func (p *passing) Read(b []byte) (int, error) {
	n, err := p.ReadCloser.Read(b)
	if err != nil {
		p.give()
	}
	return n, err
}

// Close implements io.Closer.
func (p *passing) Close() error {
	defer p.give()
	return p.ReadCloser.Close()
}
