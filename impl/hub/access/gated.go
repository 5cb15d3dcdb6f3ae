package access

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/limit"
)

// Through makes a way to the cloud for callers' own requests of one that bounds nothing.
func (g *Gate) Through(next http.RoundTripper) http.RoundTripper { return gated{g, next} }

// gated is a way to the cloud for callers' own requests. It takes each from its caller's share.
type gated struct {
	gate *Gate
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper. Its error is a *busyError if the share is used up.
func (d gated) RoundTrip(req *http.Request) (*http.Response, error) {
	admission := AdmissionOf(req.Context())
	shown := admission.shows(req.Header)
	rate, key := d.gate.share(shown)
	if wait := rate.Take(key, d.gate.Clock.Now()); wait > 0 {
		uplink.CloseBody(req)
		return nil, &busyError{d.gate.spent(wait)}
	}
	if key == "anonymous" && isPublic(req) {
		return d.whole(req)
	}
	resp, err := d.next.RoundTrip(req)
	if err == nil {
		d.gate.learn(shown, resp.StatusCode)
		if resp.StatusCode != http.StatusUnauthorized {
			admission.Proven()
		}
	}
	return resp, err
}

// whole gets a small answer as a whole, also for a caller that leaves: an HTTP/1.1 connection ends with an answer that
// is left.
func (d gated) whole(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), reviewTimeout)
	defer cancel()
	uplink.CloseBody(req)
	out := req.WithContext(ctx)
	out.Body, out.ContentLength = nil, 0
	resp, err := d.next.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit.MaxPublicAnswer))
	if err != nil {
		return nil, err
	}
	resp.Body, resp.ContentLength, resp.Request = io.NopCloser(bytes.NewReader(body)), int64(len(body)), req
	return resp, nil
}

// Limited bounds reviews of others than the node: they outlive the requests that began them.
func (g *Gate) Limited(review ReviewFunc) ReviewFunc {
	return func(ctx context.Context, who Caller, credentials http.Header, a identity.Attributes) (bool, string,
		*apierrors.StatusError, error) {
		if who.Kind == ThisNode {
			return review(ctx, who, credentials, a)
		}
		key := g.keyOf(who.shows(credentials))
		if g.Reviews.Enter(key) != "" {
			return false, "", nil, &busyError{g.busy(refusedRate, "too many access reviews are under way", time.Second)}
		}
		defer g.Reviews.Leave(key)
		select {
		case g.reviewing <- struct{}{}:
		case <-ctx.Done():
			return false, "", nil, &unavailableError{fmt.Errorf("access review: %w", ctx.Err())}
		}
		defer func() { <-g.reviewing }()
		switch refusal := g.doubted(ctx, who, credentials); {
		case refusal == nil:
			return review(ctx, who, credentials, a)
		case refusal.ErrStatus.Code == http.StatusTooManyRequests:
			return false, "", nil, &busyError{refusal}
		default:
			return false, "", refusal, nil
		}
	}
}

// doubted asks about an unknown token that was to be trusted, if the cloud has refused another one since.
func (g *Gate) doubted(ctx context.Context, who Caller, h http.Header) *apierrors.StatusError {
	t := who.shows(h)
	if t == nil || g.knows(t) || !g.prove.suspicious() {
		return nil
	}
	_, refusal := g.prove.prove(ctx, t, h, "")
	return refusal
}
