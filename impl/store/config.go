package store

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/store/queue"
)

// Config says where a store is kept and how much it takes.
type Config struct {
	// Dir is a folder on a disk that survives restarts; it is made if need be, readable by its owner alone.
	Dir string
	// MaxBytes bounds the database. Default 256 MiB, at least 1 MiB.
	MaxBytes int64
	// Every is the time between two writes of what came and went, objects and lists, and of what this node's clients
	// wrote. A power cut may cost that, of what can be fetched again. Default 5 s, at least 10 ms.
	Every time.Duration
	// Lazy is the same of objects that merely changed, as the status of pods does all the time: a power cut may leave an
	// older version. Default 1 min, at least Every.
	Lazy time.Duration
	// Idle is the time after which it is written that the cloud was still there: what a power cut may add to the age that
	// is told. Default 10 min, at least Every.
	Idle time.Duration
	// Forget is how long nobody must have asked for something before it is dropped. Default 30 days, at least an hour.
	Forget time.Duration
	// Protected tells which collections are never dropped to make room. Default: those of the kubelet, which are the
	// node's pods and what they refer to.
	Protected func(Shape) bool
	// Key encrypts what the cloud has shown of each object, and the queue. Without one they are on the disk in the clear.
	Key *disk.Key
	// Queue bounds the queue of writes; its folder, clock and logger are the store's.
	Queue queue.Config
	// Clock is for tests. Default the real one.
	Clock clock.WithTicker
	// Logger gets what an operator should know. Default slog.Default().
	Logger *slog.Logger
}

// Validate checks a configuration; zero values mean defaults and are fine.
func (c Config) Validate() error {
	switch {
	case c.Dir == "":
		return errors.New("store: no folder")
	case c.MaxBytes != 0 && c.MaxBytes < 1<<20:
		return fmt.Errorf("store: at most %d bytes: at least 1048576", c.MaxBytes)
	case int64(int(c.MaxBytes)) != c.MaxBytes:
		return fmt.Errorf("store: at most %d bytes: more than this machine can address", c.MaxBytes)
	case c.Every != 0 && c.Every < 10*time.Millisecond:
		return fmt.Errorf("store: a write every %v: at least 10ms", c.Every)
	case c.Lazy != 0 && c.Lazy < c.Every:
		return fmt.Errorf("store: changes are written every %v: at least the time between two writes, %v", c.Lazy, c.Every)
	case c.Idle != 0 && c.Idle < c.Every:
		return fmt.Errorf("store: idle after %v: at least the time between two writes, %v", c.Idle, c.Every)
	case c.Forget != 0 && c.Forget < time.Hour:
		return fmt.Errorf("store: forgets after %v: at least 1h", c.Forget)
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.MaxBytes = cmp.Or(c.MaxBytes, 256<<20)
	c.Every = cmp.Or(c.Every, 5*time.Second)
	c.Lazy = cmp.Or(c.Lazy, max(time.Minute, c.Every))
	c.Idle = cmp.Or(c.Idle, max(10*time.Minute, c.Every))
	c.Forget = cmp.Or(c.Forget, 30*24*time.Hour)
	if c.Protected == nil {
		c.Protected = func(s Shape) bool { return s.Component == "kubelet" }
	}
	c.Clock = cmp.Or[clock.WithTicker](c.Clock, clock.RealClock{})
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}
