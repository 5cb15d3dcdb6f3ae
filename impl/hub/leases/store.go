// Package leases keeps the Leases of nodes in the memory of a leader hub, in a pool that has no coordinator.
//
// A hub writes there how its node is, as it would at a coordinator (package beat), and the leader hub forwards for
// those that are cut off. Nothing is on a disk: a leader hub that starts again knows nobody until the next heartbeat,
// some ten seconds later, and a hub that reads another leader hub writes there. What nobody has written for a while is
// forgotten, so a hub that went elsewhere is not spoken for twice.
//
// Each node writes its own Lease and no other: who writes is known by certificate, and is the caller's business. The
// number of Leases is bounded, and so is each of them.
//
// A Store starts no goroutine. Follow blocks until its context ends.
package leases

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/heartbeat"
	"github.com/weir-edge/weir/impl/hub/nodelease"
)

// forgetAfter is how long a Lease is kept that nobody writes: a hub writes each heartbeat, and one that is late once is
// not forgotten.
const forgetAfter = time.Minute

// maxOwners is how many owner references of a Lease are kept: a kubelet writes one.
const maxOwners = 4

// Store has the Leases of nodes. It is safe for concurrent use.
type Store struct {
	clock clock.WithTicker

	mu      sync.Mutex
	open    bool
	version uint64
	held    map[string]*held
	changed chan struct{} // closed by the next change
}

// held is a Lease, and when it was written.
type held struct {
	lease *coordinationv1.Lease
	at    time.Time
}

// New makes one that is closed and holds nothing.
func New(c clock.WithTicker) *Store {
	// Versions of before a restart do not come again: the clock went on.
	return &Store{
		clock: c, version: uint64(max(c.Now().UnixMicro(), 1)), held: map[string]*held{}, changed: make(chan struct{}),
	}
}

// Open takes Leases from now on, or no more. One that is closed forgets all.
func (s *Store) Open(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == yes {
		return
	}
	s.open = yes
	clear(s.held)
	s.change()
}

// IsOpen reports whether Leases are taken.
func (s *Store) IsOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// change is called with the lock held.
func (s *Store) change() {
	s.version++
	close(s.changed)
	s.changed = make(chan struct{})
}

// Get returns the Lease of a node, nil if there is none.
func (s *Store) Get(node string) *coordinationv1.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.live(node); h != nil {
		return h.lease.DeepCopy()
	}
	return nil
}

// live forgets a Lease that is too old. It is called with the lock held.
func (s *Store) live(node string) *held {
	h := s.held[node]
	if h != nil && s.clock.Since(h.at) > forgetAfter {
		delete(s.held, node)
		s.change()
		return nil
	}
	return h
}

// Refusal is why a write was not taken.
type Refusal uint8

// Refusals.
const (
	Taken    Refusal = iota
	Conflict         // there is another one, or one at another version
	Absent           // there is none
	Closed           // this hub is no leader hub
	Full
)

// Put writes the Lease of a node, and returns what is held then. One without a version is created; any other has to be
// at the version that is held.
func (s *Store) Put(node string, l *coordinationv1.Lease) (*coordinationv1.Lease, Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.live(node)
	switch {
	case !s.open:
		return nil, Closed
	case l.ResourceVersion == "" && now != nil:
		return nil, Conflict
	case l.ResourceVersion != "" && now == nil:
		return nil, Absent
	case now != nil && (l.ResourceVersion != now.lease.ResourceVersion || l.UID != now.lease.UID):
		return nil, Conflict
	case now == nil && len(s.held) >= heartbeat.MaxNodes:
		return nil, Full
	}
	out := kept(node, l)
	out.UID = types.UID(rand.Text())
	if now != nil {
		out.UID = now.lease.UID
	}
	out.ResourceVersion = strconv.FormatUint(s.version+1, 10)
	s.held[node] = &held{out, s.clock.Now()}
	s.change()
	return out.DeepCopy(), Taken
}

// kept is what matters of a Lease.
func kept(node string, l *coordinationv1.Lease) *coordinationv1.Lease {
	out := &coordinationv1.Lease{
		TypeMeta: metav1.TypeMeta{APIVersion: nodelease.Kind.APIVersion, Kind: nodelease.Kind.Kind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: contract.NodeLeaseNamespace, Name: node,
			OwnerReferences: slices.Clone(l.OwnerReferences[:min(len(l.OwnerReferences), maxOwners)]),
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: l.Spec.HolderIdentity, LeaseDurationSeconds: l.Spec.LeaseDurationSeconds,
			RenewTime: l.Spec.RenewTime,
		},
	}
	nodelease.SetDelegated(out, nodelease.IsDelegated(l))
	if address, ok := l.Annotations[contract.PoolAddress]; ok {
		if _, _, err := contract.ParsePoolAddress(address); err == nil {
			metav1.SetMetaDataAnnotation(&out.ObjectMeta, contract.PoolAddress, address)
		}
	}
	return out
}

// Follow tells of the Leases of nodes that are cut off: first the names of all of them, then each whenever it changes,
// and nil when it is gone or its node is cut off no more. It returns when ctx ends, or the store is closed.
func (s *Store) Follow(ctx context.Context, all func(names []string), take func(node string, l *coordinationv1.Lease)) {
	known := map[string]string{} // versions
	tick := s.clock.NewTicker(forgetAfter / 4)
	defer tick.Stop()
	for first := true; ctx.Err() == nil; first = false {
		now, open, changed := s.delegated()
		if !open {
			return
		}
		if first {
			all(slices.Sorted(maps.Keys(now)))
		}
		for node, l := range now {
			if known[node] != l.ResourceVersion {
				known[node] = l.ResourceVersion
				take(node, l)
			}
		}
		for node := range known {
			if now[node] == nil {
				delete(known, node)
				take(node, nil)
			}
		}
		select {
		case <-changed:
		case <-tick.C():
		case <-ctx.Done():
		}
	}
}

// delegated are the Leases of nodes that are cut off, and what tells of the next change.
func (s *Store) delegated() (all map[string]*coordinationv1.Lease, open bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all = map[string]*coordinationv1.Lease{}
	for _, node := range slices.Collect(maps.Keys(s.held)) {
		if h := s.live(node); h != nil && nodelease.IsDelegated(h.lease) {
			all[node] = h.lease
		}
	}
	return all, s.open, s.changed
}

// Opened waits until the store is open, and reports whether that came before ctx ended.
func (s *Store) Opened(ctx context.Context) bool {
	for {
		s.mu.Lock()
		open, changed := s.open, s.changed
		s.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return false
		case open:
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}
