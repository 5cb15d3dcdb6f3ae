package store

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"go.etcd.io/bbolt"
)

const (
	sweepEvery = time.Hour
	// connectedWithin is how recently the cloud must have been reached to count as there.
	connectedWithin = time.Minute
	// settledAfter is how long the cloud must have been there before anything is forgotten: clients that were cut off come back first.
	settledAfter = time.Hour
	// maxCollections bounds what is held in memory.
	maxCollections = 20000
	scrubRows      = 200 // checked at once
	scrubPause     = 50 * time.Millisecond
)

// makeRoom drops what is asked for least before the store is full. flushing must be held.
func (s *Store) makeRoom() error {
	if s.db == nil {
		return errors.New("it is not open")
	}
	_, used := s.db.size()
	s.mu.RLock()
	crowded := used+int64(s.pending.bytes) > s.MaxBytes*9/10 || len(s.collections) > maxCollections
	s.mu.RUnlock()
	if crowded {
		s.evict(s.MaxBytes * 3 / 4)
	}
	return nil
}

// evict drops whole components, the one that asked least recently first, until about so many bytes are in use, and then the
// objects that nobody else has. A component with an open watch asks now. What is protected stays. It is a transaction of its own: the
// pages that it frees can be used by the next. flushing must be held.
func (s *Store) evict(target int64) {
	_, used := s.db.size()
	s.mu.Lock()
	before := s.pending
	s.pending, s.inFlight = newOverlay(), before // what is dropped is told apart from what waits
	s.drop(used+int64(before.bytes), target)
	dropped := s.pending
	s.pending, s.inFlight = newOverlay(), nil
	s.pending.under(dropped)
	s.pending.under(before)
	s.mu.Unlock()
	if dropped.empty() {
		return
	}
	done, err := s.db.commit(dropped)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused(done)
	if err != nil {
		s.Logger.Warn("cannot make room in the store", "err", err)
	}
}

// drop removes rows until used bytes are the target. mu must be held for writing.
func (s *Store) drop(used, target int64) {
	asked := s.lastAsked()
	order := slices.SortedFunc(maps.Keys(asked), func(a, b string) int {
		return cmp.Or(asked[a].Compare(asked[b]), cmp.Compare(a, b))
	})
	for _, component := range order {
		if used <= target && len(s.collections) <= maxCollections*3/4 {
			break
		}
		for _, c := range s.collections {
			if c.Component == component && !s.Protected(c.Shape) {
				s.forget(c)
			}
		}
		freed := s.sweepObjects()
		used -= freed
		s.stats.Evicted++
		s.Logger.Warn("the store is full: what a component asked for is dropped", "component", component, "asked", asked[component].UTC().Format(time.RFC3339), "bytes", freed)
	}
	if len(order) == 0 && !s.stats.Crowded {
		s.stats.Crowded = true
		s.Logger.Error("the store is full of what this node needs: give it more room", "maxBytes", s.MaxBytes)
	}
}

// lastAsked tells when components that may be dropped last asked for anything.
func (s *Store) lastAsked() map[string]time.Time {
	asked := map[string]time.Time{}
	for _, c := range s.collections {
		at := c.asked
		if c.watches > 0 {
			at = s.Clock.Now()
		}
		if last, ok := asked[c.Component]; !s.Protected(c.Shape) && (!ok || at.After(last)) {
			asked[c.Component] = at
		}
	}
	return asked
}

// sweep forgets what nobody has asked for in a long time. It does so only while the cloud is there, and has been for a while: as long as
// a node is cut off, nothing goes.
func (s *Store) sweep(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.freshAt) > connectedWithin || now.Sub(s.freshSince) < settledAfter || s.listings > 0 {
		return
	}
	for _, c := range s.collections {
		if c.watches == 0 && now.Sub(c.asked) > s.Forget {
			s.forget(c)
			s.stats.Forgotten++
		}
	}
	s.sweepObjects()
}

// sweepObjects removes the objects that are in no collection: the cloud has said that they are gone, or nobody is left who asked.
// mu must be held for writing.
func (s *Store) sweepObjects() (freed int64) {
	if s.listings > 0 { // items of a list under way are in no collection yet
		return 0
	}
	held := map[Resource]map[string]bool{}
	for r, all := range s.byResource {
		keys := map[string]bool{}
		for _, c := range all {
			s.scan(members, c.id, func(key string, _ []byte) { keys[key[len(c.id):]] = true })
		}
		held[r] = keys
	}
	names := map[string]map[string]bool{}
	for r, keys := range held {
		names[r.String()] = keys
	}
	var free []string
	s.scan(objects, "", func(key string, payload []byte) {
		r, k := splitObjectKey(key)
		if !names[r][k] {
			free = append(free, key)
			freed += int64(len(key) + len(payload))
		}
	})
	for _, key := range free {
		s.remove(objects, key)
	}
	return freed
}

// scrub reads all rows once after a start, so that what is damaged is known, and fetched again, while the cloud can be reached, and not
// found when it is needed.
func (s *Store) scrub(ctx context.Context) {
	rows := 0
	for t := range tables {
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
			s.damaged(shapes, c.key, "members or objects are missing")
		}
	}
	s.mu.RUnlock()
	s.Logger.Debug("store checked", "rows", rows)
}

// scrubSome checks some rows of a table from a key on, and tells where to go on.
func (s *Store) scrubSome(t table, from string, rows *int) (next string, more bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	n, last := 0, ""
	err := s.db.view(t, func(b *bbolt.Bucket) error {
		c := b.Cursor()
		for k, row := c.Seek([]byte(from)); k != nil; k, row = c.Next() {
			if n == scrubRows {
				next, more = string(k), true
				return nil
			}
			if n > 0 && string(k) <= last {
				return errOrder
			}
			last = string(k)
			n++
			if t == about && string(k) == formatRow {
				continue
			}
			if _, whole := decodeRow(t, string(k), row); !whole {
				s.damaged(t, string(k), "its checksum is wrong")
			}
		}
		return nil
	})
	*rows += n
	return next, more && !s.failed(err)
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
