package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/seal"
	"github.com/weir-edge/weir/impl/store/queue"
	"github.com/weir-edge/weir/impl/store/table"
)

// Config says where a store is kept and how much it takes.
type Config struct {
	// Dir is a folder on a disk that survives restarts; it is made if need be, readable by its owner alone.
	Dir string
	// MaxBytes bounds the database. Default 256 MiB, at least 1 MiB.
	MaxBytes int64
	// Every is the time between two writes of what came and went, objects and lists, and of what this node's clients wrote. A power cut may cost that, of
	// what can be fetched again. Default 5 s, at least 10 ms.
	Every time.Duration
	// Lazy is the same of objects that merely changed, as the status of pods does all the time: a power cut may leave an
	// older version. Default 1 min, at least Every.
	Lazy time.Duration
	// Idle is the time after which it is written that the cloud was still there: what a power cut may add to the age that is told.
	// Default 10 min, at least Every.
	Idle time.Duration
	// Forget is how long nobody must have asked for something before it is dropped. Default 30 days, at least an hour.
	Forget time.Duration
	// Protected tells which collections are never dropped to make room. Default: those of the kubelet, which are the
	// node's pods and what they refer to.
	Protected func(Shape) bool
	// Key encrypts what the cloud has shown of each object, and the queue. Without one they are on the disk in the clear.
	Key *seal.Key
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

// Store keeps what the clients of a node read. See the package comment.
type Store struct {
	Config

	lock   *disk.Lock
	queue  *queue.Queue
	faults faults
	wake   chan struct{}

	// flushing is held by who writes to the database or replaces it. mu guards all below, and is not held while the disk is waited for.
	flushing sync.Mutex
	mu       sync.RWMutex

	db                *table.Database // nil: it cannot be opened now
	pending, inFlight *table.Overlay
	collections       map[string]*collection
	byResource        map[Resource]map[string]*collection
	dirty             map[*collection]bool
	epoch             uint64
	freshAt           time.Time // when the cloud was last reached
	freshSince        time.Time // and was not away since
	freshWritten      time.Time
	flushedAt         time.Time
	urgent            bool      // something came or went since the last write
	waitingSince      time.Time // of what merely changed
	recordings        map[*recording]bool
	retryAt           time.Time
	retry             time.Duration
	stats             Stats
}

// Open takes the folder and makes what it holds readable. A file that cannot be used is no error: it is set aside, and a new one
// begins. The caller runs the store, or closes it.
func Open(c Config) (*Store, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	lock, err := disk.Take(c.Dir)
	if err != nil {
		return nil, err
	}
	s := &Store{
		Config: c, lock: lock, wake: make(chan struct{}, 1), pending: table.NewOverlay(), collections: map[string]*collection{},
		byResource: map[Resource]map[string]*collection{}, dirty: map[*collection]bool{}, recordings: map[*recording]bool{}, epoch: 1, flushedAt: c.Clock.Now(),
	}
	c.Queue.Disk, c.Queue.Key, c.Queue.Clock, c.Queue.Logger = disk.Folder(c.Dir), c.Key, c.Clock, c.Logger
	if s.queue, err = queue.Open(c.Queue); err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	m, err := s.open()
	if err != nil {
		s.queue.Close()
		return nil, errors.Join(fmt.Errorf("store: %w", err), lock.Release())
	}
	s.load()
	if m.Rows > 0 {
		s.recheck()
	}
	return s, nil
}

// open opens the database, and tells what had to be done for that.
func (s *Store) open() (m table.Mended, err error) {
	c := table.Config{Dir: s.Dir, MaxBytes: s.MaxBytes}
	if s.Key != nil {
		c.Seal = s.sealed
	}
	if s.db, m, err = table.Open(c); err == nil {
		s.tell(m)
	}
	return m, err
}

// tell says what was done with a file.
func (s *Store) tell(m table.Mended) {
	switch {
	case m.Removed:
		s.stats.SetAside++
		s.Logger.Error("what was kept cannot be used: it is removed and a new store begins; clients refill it while the cloud can be reached", "why", m.Why)
	case m.Rows > 0:
		s.stats.DamagedRows += m.Rows
		s.Logger.Error("parts of the store were damaged and are dropped; they are fetched again when clients ask and the cloud can be reached",
			"rows", m.Rows, "why", m.Why)
	case m.Back:
		s.Logger.Warn("the disk did not keep the last write of the store: what was before it counts", "why", m.Why)
	case m.Why != nil:
		s.Logger.Info("the store was written anew", "why", m.Why)
	}
}

// load reads what must be known of all collections. Objects are read when somebody asks.
func (s *Store) load() {
	s.scan(table.Shapes, "", func(key string, b []byte) {
		c, err := parseCollection(key, b)
		if err != nil {
			s.damaged(table.Shapes, key, err.Error())
			return
		}
		s.index(c)
	})
	if b, ok := s.get(table.About, table.EpochRow); ok {
		if v, err := strconv.ParseUint(string(b), 10, 64); err == nil {
			s.epoch = v
		}
	}
	if b, ok := s.get(table.About, table.FreshRow); ok {
		if v, err := strconv.ParseInt(string(b), 10, 64); err == nil {
			s.freshAt = time.Unix(v, 0)
			s.freshWritten = s.freshAt
		}
	}
	for _, c := range s.collections {
		if c.watched && s.freshAt.After(c.asOf) {
			c.asOf = s.freshAt
		}
		s.epoch = max(s.epoch, c.epoch) // if its row is damaged
	}
	s.Logger.Info("store opened", "collections", len(s.collections), "freshAt", s.freshAt.UTC().Format(time.RFC3339))
}

// Queue is the queue of writes.
func (s *Store) Queue() *queue.Queue { return s.queue }

// Run writes what changes, and tidies up, until ctx ends. Then it writes what is left, and closes.
func (s *Store) Run(ctx context.Context) error {
	defer s.close()
	s.scrub(ctx)
	tick := s.Clock.NewTicker(s.Every)
	defer tick.Stop()
	sweep := s.Clock.Now().Add(sweepEvery)
	for {
		select {
		case <-tick.C():
			s.step(false)
			if now := s.Clock.Now(); !now.Before(sweep) {
				s.sweep(now)
				sweep = now.Add(sweepEvery)
			}
		case <-s.wake:
			s.step(true)
		case <-ctx.Done():
			s.step(true)
			return nil
		}
	}
}

// Close writes what is left, if Run does not run, and gives the folder back.
func (s *Store) Close() {
	s.step(true)
	s.close()
}

func (s *Store) close() {
	s.flushing.Lock()
	defer s.flushing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db != nil {
		if err := s.db.Close(); err != nil {
			s.Logger.Warn("cannot close the store", "err", err)
		}
		s.db = nil
	}
	s.queue.Close()
	_ = s.lock.Release()
}
