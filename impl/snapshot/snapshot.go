package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/disk"
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
	// Idle is the time after which it is written that nothing changed: what a power cut may add to the age that is told, and
	// nothing else is written while nothing changes. Default 10 min, at least Every.
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

// Snapshots keeps relays on a disk. See the package comment.
type Snapshots struct {
	lock    *disk.Lock
	keepers []*keeper
}

// Open takes the folder and gives each relay what it held before: none of them may have been fed yet. A file that cannot be
// used is no error. The caller runs the snapshots, or closes them.
func Open(c Config) (*Snapshots, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	lock, err := disk.Take(c.Dir)
	if err != nil {
		return nil, err
	}
	s := &Snapshots{lock: lock}
	for _, r := range c.Relays {
		k := newKeeper(c, r, disk.Folder(c.Dir))
		k.restore()
		s.keepers = append(s.keepers, k)
	}
	return s, nil
}

// Run writes what changes until ctx ends. Then it writes what is left, and closes. End the feeders first.
func (s *Snapshots) Run(ctx context.Context) error {
	defer s.Close()
	var running sync.WaitGroup
	for _, k := range s.keepers {
		running.Go(func() { k.run(ctx) })
	}
	running.Wait()
	return nil
}

// Close gives the folder back. What was not written is not.
func (s *Snapshots) Close() {
	for _, k := range s.keepers {
		k.close()
	}
	_ = s.lock.Release()
}

// Status tells what was done for each relay, by resource.
func (s *Snapshots) Status() map[string]Status {
	all := make(map[string]Status, len(s.keepers))
	for _, k := range s.keepers {
		all[k.relay.Resource().String()] = k.snapshot()
	}
	return all
}
