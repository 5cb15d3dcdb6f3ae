package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
)

// pulse sends the leader's signs of life over one request until it breaks, another replica is used, or ctx ends.
func (c *coordinator) pulse(ctx context.Context, t contract.Term, clk clock.WithTicker) error {
	r, ctx, stop := c.with(ctx)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	body, beats := io.Pipe()
	defer body.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url.JoinPath(contract.PulsePath).String(), body)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set(contract.TermHeader, t.String())
	resp, err := r.transport.RoundTrip(req) //nolint:bodyclose // closed below; the linter loses it in the goroutine
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("pulse: %s", resp.Status)
	}
	go func() { // the answer ends when the coordinator listens no more
		_, _ = io.Copy(io.Discard, resp.Body)
		cancel(errors.New("pulse: the coordinator ended it"))
	}()
	defer context.AfterFunc(ctx, func() { beats.CloseWithError(io.EOF) })()
	tick := clk.NewTicker(contract.PulsePeriod)
	defer tick.Stop()
	for {
		if _, err := beats.Write([]byte{0}); err != nil {
			return context.Cause(ctx)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C():
		}
	}
}
