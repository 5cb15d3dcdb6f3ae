package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/store/queue"
	"github.com/weir-edge/weir/impl/store/table"
)

// Open takes the folder and makes what it holds readable. A file that cannot be used is no error: it is set aside, and
// a new one begins. The caller runs the store, or closes it.
func Open(c Config) (*Store, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	lock, err := disk.Take(c.Dir)
	if err != nil {
		return nil, err
	}
	s := &Store{lock: lock, catalog: newCatalog(c), flushedAt: c.Clock.Now()}
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
	if v, ok := s.number(table.EpochRow); ok {
		s.epoch = uint64(v)
	}
	if v, ok := s.number(table.FreshRow); ok {
		s.freshAt = time.Unix(v, 0)
		s.freshWritten = s.freshAt
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

const (
	scrubRows  = 200 // checked at once
	scrubPause = 50 * time.Millisecond
)

// scrub reads all rows once after a start, so that what is damaged is known, and fetched again, while the cloud can be
// reached, and not found when it is needed.
func (s *Store) scrub(ctx context.Context) {
	rows := 0
	for t := range table.Kinds {
		next, more := "", true
		for more {
			if ctx.Err() != nil {
				return
			}
			next, more = s.scrubSome(t, next, &rows)
			if more && !s.sleep(ctx, scrubPause) {
				return
			}
		}
	}
	s.mu.RLock()
	for _, c := range s.collections {
		if c.complete && s.incomplete(c) {
			s.damaged(table.Shapes, c.key, "members or objects are missing")
		}
	}
	s.mu.RUnlock()
	s.Logger.Debug("store checked", "rows", rows)
}

// scrubSome checks some rows of a table from a key on, and tells where to go on.
func (s *Store) scrubSome(t table.Kind, from string, rows *int) (next string, more bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	n := 0
	err := s.db.Walk(t, "", from, func(key string, row []byte) bool {
		if n == scrubRows {
			next, more = key, true
			return false
		}
		if n++; t != table.About || key != table.FormatRow {
			s.whole(t, key, row)
		}
		return true
	})
	*rows += n
	return next, more && !s.failed(err)
}
