package snapshot

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay"
)

// Config says which relays are kept where.
type Config struct {
	// Dir is a folder on a disk that survives restarts; it is made if need be. One process at a time uses it.
	Dir string
	// Relays are kept, one file each.
	Relays []*relay.Relay
	// Every is the time between two writes of what changed: what a power cut may cost. Default 5 s, at least 10 ms.
	Every time.Duration
	// Idle is the time after which it is written that nothing changed: what a power cut may add to the age that is told,
	// and nothing else is written while nothing changes. Default 10 min, at least Every.
	Idle time.Duration
	// Clock is for tests. Default the real one.
	Clock clock.WithTicker
	// Logger gets what an operator should know. Default slog.Default().
	Logger *slog.Logger
}

// Validate checks a configuration; zero values mean defaults and are fine.
func (c Config) Validate() error {
	switch {
	case c.Dir == "":
		return errors.New("snapshot: no folder")
	case c.Every != 0 && c.Every < 10*time.Millisecond:
		return fmt.Errorf("snapshot: a write every %v: at least 10ms", c.Every)
	case c.Idle != 0 && c.Idle < c.Every:
		return fmt.Errorf("snapshot: idle after %v: at least the time between two writes, %v", c.Idle, c.Every)
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.Every = cmp.Or(c.Every, 5*time.Second)
	c.Idle = cmp.Or(c.Idle, max(10*time.Minute, c.Every))
	c.Clock = cmp.Or[clock.WithTicker](c.Clock, clock.RealClock{})
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}
