package store

import (
	"errors"
	"fmt"
	"path/filepath"
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

// giveUp drops what waits for a disk that takes nothing. What is on the disk serves on; collections that changed meanwhile do not
// until they are recorded anew.
func (s *Store) giveUp() {
	for c := range s.dirty {
		c.complete = false
	}
	s.stats.GivenUp++
	s.Logger.Error("the disk takes nothing: what changed is not kept; it is fetched again by clients when there is room", "bytes", s.pending.Bytes)
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

// due tells whether it is time to write.
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

// refused notes what a commit wrote and left out. What a row that was left out was part of is not whole, as everybody
// finds who looks.
func (s *Store) refused(done table.Committed) {
	s.stats.Written += done.Bytes
	for _, p := range done.Refused {
		s.stats.Refused++
		s.Logger.Error("a part of the store cannot be written and is dropped", "table", table.KindNames[p.Kind], "key", fmt.Sprintf("%.100q", p.Key))
	}
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
		s.Logger.Error("cannot write the store: it serves on from memory, but a restart would find an older state; trying again", "err", err)
	}
	s.stats.LastError = err.Error()
	if !errors.Is(err, table.ErrFull) { // what bbolt believes and what is on the disk may differ
		s.reopen(err)
	}
}

// reopen opens the file anew. flushing and mu must be held.
func (s *Store) reopen(why error) {
	if s.db != nil {
		_ = s.db.Close()
		s.db = nil
	}
	m, err := s.open()
	var d *table.DamagedError
	if err == nil && m.Why == nil && errors.As(why, &d) { // it is damaged in a way that mend does not know
		_ = s.db.Close()
		s.db = nil
		if err = table.Remove(filepath.Join(s.Dir, table.FileName)); err == nil {
			s.tell(table.Mended{Why: why, Removed: true})
			m, err = s.open()
			m.Removed = true
		}
	}
	switch {
	case err != nil:
		s.Logger.Error("cannot open the store: it serves from memory; trying again", "err", err)
	case m.Removed || m.Back:
		s.forgetAll()
	case m.Rows > 0:
		s.recheck()
	}
}

// forgetAll takes it that nothing is kept. What was asked for is known as incomplete, so that it is fetched again.
func (s *Store) forgetAll() {
	for _, c := range s.collections {
		c.complete, c.count, c.sum = false, 0, 0
		s.dirty[c] = true
	}
	s.put(table.About, table.EpochRow, fmt.Append(nil, s.epoch))
	clear(s.pending.Rows[table.Members]) // they do not add up without those that are lost
}

// repair sees to damages that readers found. flushing must be held.
func (s *Store) repair() {
	rows, broken := s.faults.take()
	if broken == nil && len(rows) == 0 {
		if s.db != nil {
			return
		}
		broken = errors.New("it is not open")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if broken != nil {
		s.stats.Errors++
		s.reopen(broken)
		return
	}
	for p, why := range rows {
		if _, ok := s.pending.Get(p.Kind, p.Key); ok {
			continue // written anew since
		}
		s.stats.DamagedRows++
		s.Logger.Error("a part of the store was damaged and is dropped; it is fetched again when a client asks and the cloud can be reached",
			"table", table.KindNames[p.Kind], "key", fmt.Sprintf("%q", p.Key), "why", why)
		s.remove(p.Kind, p.Key)
	}
	s.recheck()
}

// recheck finds the collections of which something is missing.
func (s *Store) recheck() {
	for _, c := range s.collections {
		if c.complete && s.incomplete(c) {
			c.complete = false
			s.dirty[c] = true
		}
	}
}

// incomplete tells whether members of a collection are missing, or their objects.
func (s *Store) incomplete(c *collection) bool {
	keys, ok := s.keys(c)
	for _, k := range keys {
		if _, v := s.best(c.Resource, k, c.Form); v == nil {
			return true
		}
	}
	return !ok
}
