package relay

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Set is the relays that somebody has now. It may be read and changed by many: who has taken All goes on with what there was then.
type Set struct {
	mu  sync.Mutex
	all atomic.Pointer[[]*Relay]
}

// NewSet is a set that begins with some.
func NewSet(relays ...*Relay) *Set {
	s := &Set{}
	s.all.Store(&relays)
	return s
}

// All are the relays, in the order in which they came. Nobody may change what is returned.
func (s *Set) All() []*Relay {
	if all := s.all.Load(); all != nil {
		return *all
	}
	return nil
}

// Of is the relay of a resource, nil if there is none.
func (s *Set) Of(resource string) *Relay {
	for _, r := range s.All() {
		if r.cfg.Resource.String() == resource {
			return r
		}
	}
	return nil
}

// Add puts a relay behind the others.
func (s *Set) Add(r *Relay) { s.change(func(all []*Relay) []*Relay { return append(all, r) }) }

// Remove takes a relay out.
func (s *Set) Remove(r *Relay) {
	s.change(func(all []*Relay) []*Relay { return slices.DeleteFunc(all, func(o *Relay) bool { return o == r }) })
}

func (s *Set) change(by func([]*Relay) []*Relay) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := by(slices.Clone(s.All()))
	s.all.Store(&all)
}
