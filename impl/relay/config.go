package relay

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/utils/clock"
)

// Config is what a relay is made of.
type Config struct {
	// Resource is what it holds.
	Resource Resource
	// RingBytes bounds the events kept for watchers, in bytes. Default 16 MiB, at least 64 KiB. It should hold the changes
	// of the longest time that a client may be away: grace period, jitter and failover.
	RingBytes int64
	// RingAge bounds the same in time. Default 5 min, at least 1 s.
	RingAge time.Duration
	// MaxBytes bounds what is taken from another relay: what this one holds then, and a list or batch that comes, with 1
	// KiB beside each object. Default 128 MiB, at least 1 MiB. What comes from the cloud is not bounded.
	MaxBytes int64
	// WriteTimeout closes a watch or list whose client takes nothing for that long. Default 60 s.
	WriteTimeout time.Duration
	// Gather bounds how long a change may be held back from watchers while changes come in a run, so that each is woken
	// for several at once. A change after a quiet moment goes out at once. Default 20 ms; negative: nothing is held back.
	Gather time.Duration
	// Late says that the relay comes to others that are served already. Until it holds something, nobody waits for it: see
	// Status.Joins.
	Late bool
	// Clock is for tests. Default the real one.
	Clock clock.WithTickerAndDelayedExecution
	// Logger gets what an operator should know. Default slog.Default().
	Logger *slog.Logger
}

// Validate checks a configuration; zero values mean defaults and are fine.
func (c Config) Validate() error {
	switch {
	case c.Resource.Resource == "" || c.Resource.Kind == "":
		return fmt.Errorf("relay: no resource")
	case c.RingBytes != 0 && c.RingBytes < 64<<10:
		return fmt.Errorf("relay: ring of %d bytes: at least %d", c.RingBytes, 64<<10)
	case c.MaxBytes != 0 && c.MaxBytes < 1<<20:
		return fmt.Errorf("relay: %d bytes from another relay: at least %d", c.MaxBytes, 1<<20)
	case c.RingAge != 0 && c.RingAge < time.Second:
		return fmt.Errorf("relay: ring age %v: at least 1s", c.RingAge)
	case c.Gather > time.Second:
		return fmt.Errorf("relay: changes held back for %v: at most 1s", c.Gather)
	case c.WriteTimeout < 0:
		return fmt.Errorf("relay: write timeout %v is negative", c.WriteTimeout)
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.RingBytes = cmp.Or(c.RingBytes, 16<<20)
	c.MaxBytes = cmp.Or(c.MaxBytes, 128<<20)
	c.RingAge = cmp.Or(c.RingAge, 5*time.Minute)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, time.Minute)
	c.Gather = cmp.Or(c.Gather, defaultGather)
	c.Clock = cmp.Or[clock.WithTickerAndDelayedExecution](c.Clock, clock.RealClock{})
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}
