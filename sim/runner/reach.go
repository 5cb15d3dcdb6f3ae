package runner

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/client-go/rest"
)

// everybody is more than all requests of the testbed that are ever under way at once.
const everybody = 1 << 20

// reach is whether the testbed's own requests reach the cloud. While a fault has its apiserver they wait, and the fault
// waits for those that are under way: none of them fails or is cut in two. Recorders of the truth, clients and liars do
// not pass it. They are what is tested, or live with a cloud that goes away.
type reach struct {
	requests *semaphore.Weighted

	mu    sync.Mutex
	since time.Time     // it is away; zero: it is there
	lost  time.Duration // in which it was away before
}

func newReach() *reach { return &reach{requests: semaphore.NewWeighted(everybody)} }

// gone is how long the apiserver has been away so far. Nobody's patience ends in that time: without the cloud nobody
// leads, and nothing is fresh.
func (a *reach) gone() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since.IsZero() {
		return a.lost
	}
	return a.lost + time.Since(a.since)
}

// away waits until no request is under way, and lets none begin until back is called. A run that fails meanwhile never
// calls it: what waits ends with its context, and does not hide why the run failed.
func (a *reach) away(ctx context.Context) (back func(), err error) {
	if err := a.requests.Acquire(ctx, everybody); err != nil {
		return nil, fmt.Errorf("wait for requests of the testbed: %w", err)
	}
	a.mu.Lock()
	a.since = time.Now()
	a.mu.Unlock()
	return sync.OnceFunc(func() {
		gone := a.gone()
		a.mu.Lock()
		a.lost, a.since = gone, time.Time{}
		a.mu.Unlock()
		a.requests.Release(everybody)
	}), nil
}

// while does what asks the cloud by clients of its own. The apiserver stays until that is over.
func (a *reach) while(ctx context.Context, do func() error) error {
	if err := a.requests.Acquire(ctx, 1); err != nil {
		return err
	}
	defer a.requests.Release(1)
	return do()
}

// through lets all requests of a client wait. It is for requests that end, not for watches.
func (a *reach) through(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.Wrap(func(rt http.RoundTripper) http.RoundTripper { return waiting{a, rt} })
	return c
}

// waiting is the http.RoundTripper of such a client.
type waiting struct {
	*reach

	inner http.RoundTripper
}

// RoundTrip implements http.RoundTripper. A request is under way until its answer has been read.
func (w waiting) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := w.requests.Acquire(req.Context(), 1); err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	over := sync.OnceFunc(func() { w.requests.Release(1) })
	resp, err := w.inner.RoundTrip(req)
	if err != nil {
		over()
		return nil, err
	}
	resp.Body = answer{resp.Body, over}
	return resp, nil
}

// answer is the body of a response that tells when it has been read.
type answer struct {
	io.ReadCloser

	over func()
}

// Close implements io.Closer.
func (a answer) Close() error {
	defer a.over()
	return a.ReadCloser.Close()
}
