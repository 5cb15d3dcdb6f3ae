package scope

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weir-edge/weir/impl/relay"
)

// Set is the relays that somebody has now. It may be read and changed by many: who has taken All goes on with what
// there was then.
type Set struct {
	mu  sync.Mutex
	all atomic.Pointer[[]*relay.Relay]
}

// NewSet is a set that begins with some.
func NewSet(relays ...*relay.Relay) *Set {
	s := &Set{}
	s.all.Store(&relays)
	return s
}

// All are the relays, in the order in which they came. Nobody may change what is returned.
func (s *Set) All() []*relay.Relay {
	if all := s.all.Load(); all != nil {
		return *all
	}
	return nil
}

// Add puts a relay behind the others.
func (s *Set) Add(r *relay.Relay) {
	s.change(func(all []*relay.Relay) []*relay.Relay { return append(all, r) })
}

// Remove takes a relay out.
func (s *Set) Remove(r *relay.Relay) {
	s.change(func(all []*relay.Relay) []*relay.Relay {
		return slices.DeleteFunc(all, func(o *relay.Relay) bool { return o == r })
	})
}

func (s *Set) change(by func([]*relay.Relay) []*relay.Relay) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := by(slices.Clone(s.All()))
	s.all.Store(&all)
}
