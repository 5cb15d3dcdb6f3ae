package pull

import (
	"context"
	"net/http"

	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/source/hop"
)

// Told is what the pool is told about itself. The hub that leads, or the replica that reads it, is asked, and nobody else.
type Told struct{ *directory.Directory }

// Keep asks an upstream until ctx ends.
func (t Told) Keep(ctx context.Context, up *hop.Upstream) {
	directory.Keep(ctx, t.Clock, true, func(ctx context.Context) error {
		err := t.Ask(ctx, admitted{up}, up.URL, true)
		if err != nil && ctx.Err() == nil {
			t.Logger.Debug("the leader does not say what the pool is told about itself", "err", err)
		}
		return err
	})
}

// admitted is the way to an upstream. What comes when it counts no more is dropped.
type admitted struct{ up *hop.Upstream }

// RoundTrip implements http.RoundTripper.
func (a admitted) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := a.up.Client.Transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if err := a.up.Admits(); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return resp, nil
}
