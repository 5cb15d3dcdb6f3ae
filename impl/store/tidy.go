package store

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/weir-edge/weir/impl/store/table"
)

const (
	sweepEvery = time.Hour
	// settledAfter is how long the cloud must have been there before anything is forgotten: clients that were cut off come
	// back first.
	settledAfter = time.Hour
	// maxCollections bounds what is held in memory, and maxOwned what is of one caller other than the node.
	maxCollections = 20000
	maxOwned       = 2000
)

// makeRoom drops what is asked for least before the store is full. flushing must be held.
func (s *Store) makeRoom() error {
	if s.db == nil {
		return errors.New("it is not open")
	}
	_, used := s.db.Size()
	s.mu.RLock()
	crowded := used+int64(s.pending.Bytes) > s.MaxBytes*9/10 || len(s.collections) > maxCollections || s.greedy() != ""
	s.mu.RUnlock()
	if crowded {
		s.evict(s.MaxBytes * 3 / 4)
	}
	return nil
}

// greedy is a caller other than the node that has too many collections, "" if there is none.
func (s *Store) greedy() string {
	if len(s.collections) <= maxOwned {
		return ""
	}
	owned := map[string]int{}
	for _, c := range s.collections {
		owner := Owner(c.Component)
		if owned[owner]++; owner != "" && owned[owner] > maxOwned {
			return owner
		}
	}
	return ""
}

// evict drops whole components until about so many bytes are in use, and then the objects that nobody else has. The
// caller that has most gives first, so that nobody can crowd out others; of its components, the one that asked least
// recently. A component with an open watch asks now. What is protected stays. It is a transaction of its own: the pages
// that it frees can be used by the next. flushing must be held.
func (s *Store) evict(target int64) {
	_, used := s.db.Size()
	s.mu.Lock()
	before := s.pending
	s.pending, s.inFlight = table.NewOverlay(), before // what is dropped is told apart from what waits
	s.drop(used+int64(before.Bytes), target)
	dropped := s.pending
	s.pending, s.inFlight = table.NewOverlay(), nil
	s.pending.Under(dropped)
	s.pending.Under(before)
	s.mu.Unlock()
	if dropped.Empty() {
		return
	}
	done, err := s.db.Commit(dropped)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused(done)
	if err != nil {
		s.Logger.Warn("cannot make room in the store", "err", err)
	}
}

// drop removes rows until used bytes are the target. mu must be held for writing.
func (s *Store) drop(used, target int64) {
	for used > target || len(s.collections) > maxCollections*3/4 || s.greedy() != "" {
		if !s.dropSome(used-target, len(s.collections)-maxCollections*3/4) {
			if used > target && !s.stats.Crowded {
				s.stats.Crowded = true
				s.Logger.Error("the store is full of what this node needs: give it more room", "maxBytes", s.MaxBytes)
			}
			return
		}
		used -= s.sweepObjects()
	}
}

// claim is what a component, or all of one caller, has.
type claim struct {
	name       string
	asked      time.Time
	bytes      int64
	all        []*collection
	components []*claim // of a caller
}

// dropSome drops components until so many bytes and collections are gone, or a bit less, since several may hold one
// object. It reports whether there was any.
func (s *Store) dropSome(bytes int64, collections int) bool {
	callers := s.callers()
	dropped := false
	for len(callers) > 0 {
		most := slices.MaxFunc(callers, func(a, b *claim) int {
			if bytes > 0 { // callers that hold the same: who has been gone for longer
				return cmp.Or(cmp.Compare(a.bytes, b.bytes), b.asked.Compare(a.asked))
			}
			return cmp.Compare(len(a.all), len(b.all))
		})
		if bytes <= 0 && collections <= 0 && (most.name == "" || len(most.all) <= maxOwned) {
			break
		}
		c := most.components[0]
		most.components, most.bytes, most.all = most.components[1:], most.bytes-c.bytes, most.all[:len(most.all)-len(c.all)]
		for _, each := range c.all {
			s.forget(each)
		}
		bytes, collections, dropped = bytes-c.bytes, collections-len(c.all), true
		s.stats.Evicted++
		s.Logger.Warn("the store is full: what a component asked for is dropped",
			"component", c.name, "asked", c.asked.UTC().Format(time.RFC3339), "collections", len(c.all))
		if len(most.components) == 0 {
			callers = slices.DeleteFunc(callers, func(o *claim) bool { return o == most })
		}
	}
	return dropped
}

// callers are those that have what may be dropped, each with its components, the one that asked least recently first.
func (s *Store) callers() (all []*claim) {
	sizes := map[string]int64{}
	s.scan(table.Objects, "", func(key string, payload []byte) {
		sizes[key[:max(len(key)-2, 0)]] += int64(len(key) + len(payload))
	})
	callers, components := map[string]*claim{}, map[string]*claim{}
	for _, c := range s.collections {
		if s.Protected(c.Shape) {
			continue
		}
		of, caller := components[c.Component], callers[Owner(c.Component)]
		if of == nil {
			of = &claim{name: c.Component}
			components[c.Component] = of
			if caller == nil {
				caller = &claim{name: Owner(c.Component)}
				callers[caller.name] = caller
				all = append(all, caller)
			}
			caller.components = append(caller.components, of)
		}
		at := c.asked
		if c.watches > 0 {
			at = s.Clock.Now()
		}
		bytes := int64(len(c.key))
		s.scan(table.Members, c.id, func(key string, _ []byte) {
			bytes += int64(len(key)) + sizes[c.Resource.String()+"\x00"+key[len(c.id):]]
		})
		for _, x := range []*claim{of, caller} {
			x.all, x.bytes = append(x.all, c), x.bytes+bytes
			if at.After(x.asked) {
				x.asked = at
			}
		}
	}
	for _, caller := range all {
		slices.SortFunc(caller.components, func(a, b *claim) int {
			return cmp.Or(a.asked.Compare(b.asked), cmp.Compare(a.name, b.name))
		})
	}
	return all
}

// sweep forgets what nobody has asked for in a long time. It does so only while the cloud is there, and has been for a
// while: as long as a node is cut off, nothing goes.
func (s *Store) sweep(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.freshAt) > connectedWithin || now.Sub(s.freshSince) < settledAfter {
		return
	}
	listed := map[Shape]bool{}
	for r := range s.recordings {
		listed[r.shape] = true
	}
	for _, c := range s.collections {
		if c.watches == 0 && now.Sub(c.asked) > s.Forget && !listed[c.Shape] {
			s.forget(c)
			s.stats.Forgotten++
		}
	}
	s.sweepObjects()
}

// sweepObjects removes the objects that are in no collection and in no list under way: the cloud has said that they are
// gone, or nobody is left who asked. mu must be held for writing.
func (s *Store) sweepObjects() (freed int64) {
	held := map[[2]string]bool{} // resource and key
	for r, all := range s.byResource {
		of := r.String()
		for _, c := range all {
			s.scan(table.Members, c.id, func(key string, _ []byte) { held[[2]string{of, key[len(c.id):]}] = true })
		}
	}
	for r := range s.recordings {
		for k := range r.keys {
			held[[2]string{r.shape.Resource.String(), k.encode()}] = true
		}
	}
	var free []string
	s.scan(table.Objects, "", func(key string, payload []byte) {
		if r, k := splitObjectKey(key); !held[[2]string{r, k}] {
			free = append(free, key)
			freed += int64(len(key) + len(payload))
		}
	})
	for _, key := range free {
		s.remove(table.Objects, key)
	}
	return freed
}
