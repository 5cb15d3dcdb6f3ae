package lease

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
)

var resource = coordinationv1.Resource("leases")

// Store keeps Leases of any namespace. It implements election.Store, and is one life of a store: a coordinator that has
// lost its disk has a new one. It is safe for concurrent use; Policy and Wrote are set before.
type Store struct {
	Policy
	// Wrote is told of each write before its writer is answered: whose it is, "" if it was at nobody's request. nil:
	// nobody asks.
	Wrote func(user string, lease *coordinationv1.Lease)
	life  string
	clock clock.WithTicker // nil if nothing is forgotten

	mu      sync.Mutex
	closed  bool
	version uint64
	stored  map[types.NamespacedName]held
	changes []change      // the last ones
	more    chan struct{} // closed and replaced at each change
}

// held is a Lease, which is not changed but replaced, and when it was written.
type held struct {
	*coordinationv1.Lease

	at time.Time
}

// maxChanges is how many changes are remembered.
const maxChanges = 1000

// change is a write of a Lease, or its end: each is a version. old is nil if there was none, now if there is none.
type change struct{ now, old *coordinationv1.Lease }

// New begins a life, after a version. UIDs have its name.
func New(life string, version uint64) *Store {
	return &Store{life: life, version: version, stored: map[types.NamespacedName]held{}, more: make(chan struct{})}
}

// Life is the name of this life.
func (s *Store) Life() string { return s.life }

// Open takes Leases from now on, or no more. One that is closed forgets all.
func (s *Store) Open(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed == yes {
		s.closed = !yes
		clear(s.stored)
		s.version++
		s.changes = nil
		s.wake()
	}
}

// wake is called with the lock held, after a change.
func (s *Store) wake() {
	close(s.more)
	s.more = make(chan struct{})
}

// IsOpen reports whether Leases are taken.
func (s *Store) IsOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed
}

// Opened waits until the store is open, and reports whether that came before ctx ended.
func (s *Store) Opened(ctx context.Context) bool {
	for ctx.Err() == nil {
		s.mu.Lock()
		closed, more := s.closed, s.more
		s.mu.Unlock()
		if !closed {
			return true
		}
		select {
		case <-more:
		case <-ctx.Done():
		}
	}
	return false
}

// Create makes a Lease for a user.
func (s *Store) Create(ctx context.Context, user string, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return s.replace(user, lease.Namespace, lease.Name, func(old *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		if old != nil {
			return nil, apierrors.NewAlreadyExists(resource, lease.Name)
		}
		return lease, s.check(ctx, user, lease, nil)
	})
}

// Update replaces a Lease for a user if it is still the one that was read.
func (s *Store) Update(ctx context.Context, user string, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return s.replace(user, lease.Namespace, lease.Name, func(old *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		switch {
		case old == nil:
			return nil, missing(lease.Name)
		case lease.ResourceVersion != old.ResourceVersion, lease.UID != "" && lease.UID != old.UID:
			return nil, apierrors.NewConflict(resource, lease.Name, errors.New("it is not the one that was read"))
		}
		return lease, s.check(ctx, user, lease, old)
	})
}

func (s *Store) check(ctx context.Context, user string, lease, old *coordinationv1.Lease) error {
	if s.Write == nil {
		return nil
	}
	return s.Write(ctx, user, lease, old)
}

// Change implements election.Store.
func (s *Store) Change(_ context.Context, namespace, name string, change func(*coordinationv1.Lease) error) error {
	_, err := s.replace("", namespace, name, func(old *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		if old == nil {
			return nil, missing(name)
		}
		lease := old.DeepCopy()
		return lease, change(lease)
	})
	return err
}

// Get reads a Lease.
func (s *Store) Get(_ context.Context, namespace, name string) (*coordinationv1.Lease, error) {
	lease, err := s.find(namespace, name)
	if err == nil && lease == nil {
		err = missing(name)
	}
	return lease.DeepCopy(), err
}

// Of returns the Lease of a node, nil if there is none.
func (s *Store) Of(node string) *coordinationv1.Lease {
	lease, _ := s.find(contract.NodeLeaseNamespace, node)
	return lease.DeepCopy()
}

// replace puts what is made of a Lease in its place, nil: there is none. If another write was quicker, that is what it
// is made of.
func (s *Store) replace(
	user, namespace, name string, what func(old *coordinationv1.Lease) (*coordinationv1.Lease, error),
) (lease *coordinationv1.Lease, err error) {
	for done := false; !done; {
		old, err := s.find(namespace, name)
		if err == nil {
			lease, err = what(old)
		}
		if err != nil {
			return nil, err
		}
		if lease = lease.DeepCopy(); s.Keep != nil {
			lease = s.Keep(lease)
		}
		if done, err = s.put(lease, old); err != nil {
			return nil, err
		}
	}
	if s.Applied != nil {
		s.Applied(lease)
	}
	if s.Wrote != nil {
		s.Wrote(user, lease)
	}
	return lease.DeepCopy(), nil
}

// put stores a Lease, unless there is another one than the old one.
func (s *Store) put(lease, old *coordinationv1.Lease) (done bool, err error) {
	key := types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return false, errClosed
	case s.stored[key].Lease != old:
		return false, nil
	case old == nil && s.Max > 0 && len(s.stored) >= s.Max:
		return false, apierrors.NewTooManyRequestsError("no more Leases are kept here")
	}
	lease.TypeMeta = metav1.TypeMeta{APIVersion: Kind.APIVersion, Kind: Kind.Kind}
	lease.ResourceVersion = strconv.FormatUint(s.version+1, 10)
	if lease.UID = types.UID(s.life + "-" + lease.ResourceVersion); old != nil {
		lease.UID = old.UID
	}
	h := held{Lease: lease}
	if s.clock != nil {
		h.at = s.clock.Now()
	}
	s.stored[key] = h
	s.note(change{lease, old})
	return true, nil
}

// note remembers a change. It is called with the lock held.
func (s *Store) note(c change) {
	s.version++
	s.changes = append(s.changes[max(0, len(s.changes)-maxChanges+1):], c)
	s.wake()
}

// live is a Lease that is not too old, nil: there is none. It is called with the lock held.
func (s *Store) live(key types.NamespacedName) *coordinationv1.Lease {
	h := s.stored[key]
	if h.Lease != nil && s.Forget > 0 && s.clock.Since(h.at) > s.Forget {
		delete(s.stored, key)
		s.note(change{nil, h.Lease})
		return nil
	}
	return h.Lease
}

func (s *Store) find(namespace, name string) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	return s.live(types.NamespacedName{Namespace: namespace, Name: name}), nil
}

// List implements election.Store.
func (s *Store) List(_ context.Context, namespace, name string) (*coordinationv1.LeaseList, error) {
	return s.list(named(namespace, name)), nil
}

func (s *Store) list(match func(*coordinationv1.Lease) bool) *coordinationv1.LeaseList {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := &coordinationv1.LeaseList{}
	for key := range s.stored {
		if lease := s.live(key); lease != nil && match(lease) {
			list.Items = append(list.Items, *lease.DeepCopy())
		}
	}
	list.ResourceVersion = strconv.FormatUint(s.version, 10)
	slices.SortFunc(list.Items, func(a, b coordinationv1.Lease) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// named reports whether a Lease is of a namespace, and of a name; "": any.
func named(namespace, name string) func(*coordinationv1.Lease) bool {
	return func(l *coordinationv1.Lease) bool { return l.Namespace == namespace && (name == "" || l.Name == name) }
}

func missing(name string) error { return apierrors.NewNotFound(resource, name) }

var errClosed = apierrors.NewServiceUnavailable("this hub is no leader hub: it keeps no Leases of nodes")
