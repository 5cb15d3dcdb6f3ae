package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-edge/weir/impl/store/table"
)

const (
	// flushBytes waiting are written at once.
	flushBytes = 1 << 20
	// maxPending bytes waiting are too many: the disk does not take them.
	maxPending = 16 << 20
	firstRetry = 5 * time.Second
	lastRetry  = 5 * time.Minute
)

// bound keeps what waits small. mu must be held for writing.
func (s *Store) bound() {
	switch {
	case s.pending.Bytes > maxPending:
		s.giveUp()
	case s.pending.Bytes > flushBytes && s.inFlight == nil && !s.Clock.Now().Before(s.retryAt):
		s.poke()
	}
}

// crowded reports whether what waits for the disk has no more room for a component. The last half is the node's own:
// nobody else's lists may make the store give up what its kubelet lives from.
func (s *Store) crowded(component string) bool {
	return s.pending.Bytes > maxPending/2 && Owner(component) != ""
}

// giveUp drops what waits for a disk that takes nothing. What is on the disk serves on; collections that changed
// meanwhile do not until they are recorded again.
func (s *Store) giveUp() {
	for c := range s.dirty {
		c.complete = false
	}
	s.stats.GivenUp++
	s.Logger.Error("the disk takes nothing: what changed is not kept; it is fetched again by clients when there is room",
		"bytes", s.pending.Bytes)
	s.pending = table.NewOverlay()
}

// Flush writes what waits, and Tick what is due: for those who do not Run a store, as a benchmark in virtual time.
func (s *Store) Flush() { s.step(true) }

// Tick writes what is due, see Flush.
func (s *Store) Tick() { s.step(false) }

// step writes what is due. now: at once.
func (s *Store) step(now bool) {
	s.flushing.Lock()
	defer s.flushing.Unlock()
	s.repair()
	at := s.Clock.Now()
	if !s.due(at, now) {
		return
	}
	err := s.makeRoom()
	if err == nil {
		err = s.flush()
	}
	// An object takes free pages that are side by side: the less is in use, the more of them are.
	for target := s.MaxBytes / 2; errors.Is(err, table.ErrFull) && target >= s.MaxBytes/8; target /= 2 {
		s.evict(target)
		err = s.flush()
	}
	s.settle(err, at)
}

// sleep waits; false if ctx ended first. What readers find meanwhile is seen to.
func (s *Store) sleep(ctx context.Context, d time.Duration) bool {
	t := s.Clock.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case <-t.C():
			return true
		case <-s.wake:
			s.step(true)
		case <-ctx.Done():
			return false
		}
	}
}

// due reports whether it is time to write.
func (s *Store) due(at time.Time, now bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := len(s.dirty) > 0 || !s.pending.Empty()
	if changed && s.waitingSince.IsZero() {
		s.waitingSince = at
	}
	fresh := s.freshAt.Sub(s.freshWritten)
	switch {
	case now:
		return changed || fresh >= time.Second
	case at.Before(s.retryAt):
		return false
	}
	return s.urgent || changed && at.Sub(s.waitingSince) >= s.Lazy || fresh > 0 && at.Sub(s.flushedAt) >= s.Idle
}

// flush writes all that waits, in one transaction. flushing must be held.
func (s *Store) flush() error {
	s.mu.Lock()
	for c := range s.dirty {
		s.put(table.Shapes, c.key, c.encode())
	}
	fresh := s.freshAt
	if fresh.After(s.freshWritten) {
		s.put(table.About, table.FreshRow, fmt.Append(nil, fresh.Unix()))
	}
	dirty := s.dirty
	s.inFlight, s.pending, s.dirty = s.pending, table.NewOverlay(), map[*collection]bool{}
	s.urgent, s.waitingSince = false, time.Time{}
	o := s.inFlight
	s.mu.Unlock()

	done, err := s.db.Commit(o)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight = nil
	s.refused(done)
	if err != nil {
		s.urgent = true
		s.pending.Under(o)
		for c := range dirty {
			s.dirty[c] = s.collections[c.key] == c
		}
		return err
	}
	s.stats.Flushes++
	s.freshWritten, s.flushedAt = fresh, s.Clock.Now()
	return nil
}

// settle notes how a write ended. flushing must be held.
func (s *Store) settle(err error, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		if s.stats.LastError != "" {
			s.Logger.Info("the store can be written again")
		}
		s.retry, s.retryAt, s.stats.LastError = 0, time.Time{}, ""
		return
	}
	s.retry = min(max(2*s.retry, firstRetry), lastRetry)
	s.retryAt = now.Add(s.retry)
	s.stats.Errors++
	if s.stats.LastError == "" {
		s.Logger.Error("cannot write the store: it serves on from memory, but a restart would find an older state; "+
			"trying again", "err", err)
	}
	s.stats.LastError = err.Error()
	if !errors.Is(err, table.ErrFull) { // what bbolt believes and what is on the disk may differ
		s.reopen(err)
	}
}
