package uplink

import (
	"context"
	"errors"
)

// ErrLapsed is why no door to the cloud opens for a request.
var ErrLapsed = errors.New("the client certificate has expired, so nothing is sent to the cloud for it")

// lapsedKey marks requests that came with a certificate that has expired.
type lapsedKey struct{}

// IsLapsed reports whether a request is marked so.
func IsLapsed(ctx context.Context) bool { return ctx.Value(lapsedKey{}) != nil }

// LapsedAs marks a context as another one is.
func LapsedAs(ctx, as context.Context) context.Context {
	if !IsLapsed(as) {
		return ctx
	}
	return Lapse(ctx)
}

// Lapse marks a request as one that came with a certificate that has expired: nothing of it goes to the cloud.
func Lapse(ctx context.Context) context.Context { return context.WithValue(ctx, lapsedKey{}, true) }
