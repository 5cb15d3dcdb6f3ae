package writes

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/store"
)

// Config is what Writes is made of.
type Config struct {
	// Node is the name of this node. Required.
	Node string
	// Store has what the cloud said, and the queue. Required.
	Store *store.Store
	// Cloud sends requests to the cloud as this node; scheme and host of their URLs do not matter. Required.
	Cloud http.RoundTripper
	// Reach reports whether the cloud can be reached. It must not block. After a change the caller calls Changed.
	// Required.
	Reach func() member.Reach
	// MayGet reports whether the sender of these headers may get this Node, by what the cloud decided. Default: nobody.
	MayGet func(http.Header) bool
	// Moved is called after each change of the phase, by any goroutine. It must not block. Default: nobody is told.
	Moved func()
	// Queued is called after each write that was queued, by any goroutine. It must not block. Default: nobody is told.
	Queued func()
	// Spread is the time over which nodes that find the cloud again come back to it; at most as long as it was away.
	// Default 5 s.
	Spread time.Duration
	// Patience is how long, after its turn has come, clients of this node go without the cloud's latest state while what
	// waits is pushed. Default 10 s.
	Patience time.Duration
	// Allowance is how long after its end hubs take a token while the cloud is away, and Now the time by which they
	// judge that. Default: 0, and Clock's.
	Allowance time.Duration
	Now       func() time.Time
	// Seed is of all that is random here. It is told in the log.
	Seed uint64
	// Clock is for tests. Default the real one.
	Clock clock.WithTicker
	// Logger gets what an operator should know. Default slog.Default().
	Logger *slog.Logger
}

// Validate checks a configuration; zero values that have a default are fine.
func (c Config) Validate() error {
	switch {
	case c.Node == "":
		return errors.New("writes: no name of the node")
	case c.Store == nil:
		return errors.New("writes: no store")
	case c.Cloud == nil || c.Reach == nil:
		return errors.New("writes: no way to the cloud")
	case c.Spread < 0:
		return fmt.Errorf("writes: a spread of %v: want a time, or 0 for the default", c.Spread)
	case c.Allowance < 0:
		return fmt.Errorf("writes: an allowance of %v: want a time, or 0 for none", c.Allowance)
	case c.Patience < 0:
		return fmt.Errorf("writes: a patience of %v: want a time, or 0 for the default", c.Patience)
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.Spread, c.Patience = cmp.Or(c.Spread, 5*time.Second), cmp.Or(c.Patience, 10*time.Second)
	if c.MayGet == nil {
		c.MayGet = func(http.Header) bool { return false }
	}
	if c.Moved == nil {
		c.Moved = func() {}
	}
	if c.Queued == nil {
		c.Queued = func() {}
	}
	c.Clock, c.Logger = cmp.Or[clock.WithTicker](c.Clock, clock.RealClock{}), cmp.Or(c.Logger, slog.Default())
	if c.Now == nil {
		c.Now = c.Clock.Now
	}
	return c
}
