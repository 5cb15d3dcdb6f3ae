package inmemory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/election"
	"github.com/weir-edge/weir/impl/hub/nodelease"
)

// Leases keeps Leases of any namespace: with versions, preconditions and watches. It implements election.Store, and is
// one life of a store: a coordinator that has lost its disk has new ones.
type Leases struct {
	// Wrote is told of each write before its writer is answered: whose it is, "" if it was at nobody's request. nil:
	// nobody asks.
	Wrote    func(by string, lease *coordinationv1.Lease)
	life     string
	election *election.Election // nil: everybody may write everything

	mu      sync.Mutex
	version uint64
	stored  map[types.NamespacedName]*coordinationv1.Lease // none is changed, but replaced
	changes []change                                       // the last ones
	more    chan struct{}                                  // closed and replaced at each change
}

// maxChanges is how many changes are remembered.
const maxChanges = 1000

// change is one write of a Lease: each is a version. old is nil if there was none.
type change struct{ now, old *coordinationv1.Lease }

// NewLeases begins a life, after a version. UIDs have its name.
func NewLeases(life string, version uint64) *Leases {
	return &Leases{
		life: life, version: version, stored: map[types.NamespacedName]*coordinationv1.Lease{}, more: make(chan struct{}),
	}
}

// Obey lets an election decide who may write, and shows it each write. Nobody may use the Leases meanwhile.
func (l *Leases) Obey(e *election.Election) { l.election = e }

// Create makes a Lease for a user.
func (l *Leases) Create(ctx context.Context, by string, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return l.replace(by, lease.Namespace, lease.Name, func(old *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		if old != nil {
			return nil, apierrors.NewAlreadyExists(coordinationv1.Resource("leases"), lease.Name)
		}
		return lease, l.check(ctx, by, lease, nil)
	})
}

// Update replaces a Lease for a user if it is still the one that was read.
func (l *Leases) Update(ctx context.Context, by string, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return l.replace(by, lease.Namespace, lease.Name, func(old *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		switch {
		case old == nil:
			return nil, missing(lease.Name)
		case lease.ResourceVersion != old.ResourceVersion, lease.UID != "" && lease.UID != old.UID:
			return nil,
				apierrors.NewConflict(coordinationv1.Resource("leases"), lease.Name, errors.New("it is not the one that was read"))
		}
		return lease, l.check(ctx, by, lease, old)
	})
}

// Change implements election.Store.
func (l *Leases) Change(_ context.Context, namespace, name string, change func(*coordinationv1.Lease) error) error {
	_, err := l.replace("", namespace, name, func(old *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		if old == nil {
			return nil, missing(name)
		}
		lease := old.DeepCopy()
		return lease, change(lease)
	})
	return err
}

// Get reads a Lease.
func (l *Leases) Get(_ context.Context, namespace, name string) (*coordinationv1.Lease, error) {
	if lease := l.find(namespace, name); lease != nil {
		return lease.DeepCopy(), nil
	}
	return nil, missing(name)
}

func (l *Leases) check(ctx context.Context, by string, lease, old *coordinationv1.Lease) error {
	if l.election == nil {
		return nil
	}
	who := election.Caller{Near: true}
	if node, hub := strings.CutPrefix(by, contract.NodeUserPrefix); hub {
		who.Node = node
	}
	return l.election.Check(ctx, who, lease, old)
}

// replace puts what is made of a Lease in its place, nil: there is none. If another write was quicker, that is what it
// is made of.
func (l *Leases) replace(
	by, namespace, name string, what func(old *coordinationv1.Lease) (*coordinationv1.Lease, error),
) (lease *coordinationv1.Lease, err error) {
	for done := false; !done; {
		old := l.find(namespace, name)
		if lease, err = what(old); err != nil {
			return nil, err
		}
		lease = lease.DeepCopy()
		done = l.put(lease, old)
	}
	if l.election != nil {
		l.election.Wrote(lease, false)
	}
	if l.Wrote != nil {
		l.Wrote(by, lease)
	}
	return lease.DeepCopy(), nil
}

// put stores a Lease, unless there is another one than the old one.
func (l *Leases) put(lease, old *coordinationv1.Lease) bool {
	key := types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stored[key] != old {
		return false
	}
	l.version++
	lease.TypeMeta = metav1.TypeMeta{APIVersion: nodelease.Kind.APIVersion, Kind: nodelease.Kind.Kind}
	lease.ResourceVersion = strconv.FormatUint(l.version, 10)
	if lease.UID = types.UID(l.life + "-" + lease.ResourceVersion); old != nil {
		lease.UID = old.UID
	}
	l.stored[key] = lease
	l.changes = append(l.changes[max(0, len(l.changes)-maxChanges+1):], change{lease, old})
	close(l.more)
	l.more = make(chan struct{})
	return true
}

// List implements election.Store.
func (l *Leases) List(_ context.Context, namespace, name string) (*coordinationv1.LeaseList, error) {
	return l.list(named(namespace, name)), nil
}

func (l *Leases) list(match func(*coordinationv1.Lease) bool) *coordinationv1.LeaseList {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := &coordinationv1.LeaseList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(l.version, 10)}}
	for _, lease := range l.stored {
		if match(lease) {
			list.Items = append(list.Items, *lease.DeepCopy())
		}
	}
	slices.SortFunc(list.Items, func(a, b coordinationv1.Lease) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Follow implements election.Store.
func (l *Leases) Follow(ctx context.Context, namespace, name, version string,
	take func(lease *coordinationv1.Lease, deleted bool) error) error {
	return l.follow(ctx, version, named(namespace, name),
		func(_ watch.EventType, lease *coordinationv1.Lease) error { return take(lease, false) })
}

// follow shows what changes after a version, until ctx ends or take fails. A Lease that is no longer selected is shown
// as deleted.
func (l *Leases) follow(
	ctx context.Context, version string, match func(*coordinationv1.Lease) bool,
	take func(watch.EventType, *coordinationv1.Lease) error,
) error {
	after, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return apierrors.NewBadRequest("resourceVersion: " + err.Error())
	}
	for {
		l.mu.Lock()
		missed, more := l.version-after, l.more
		if after > l.version || missed > uint64(len(l.changes)) {
			l.mu.Unlock()
			return apierrors.NewResourceExpired(fmt.Sprintf("changes after %d are not remembered", after))
		}
		changes := slices.Clone(l.changes[uint64(len(l.changes))-missed:])
		l.mu.Unlock()
		after += missed
		for _, c := range changes {
			kind := watch.Modified
			switch was, is := c.old != nil && match(c.old), match(c.now); {
			case !was && !is:
				continue
			case !was:
				kind = watch.Added
			case !is:
				kind = watch.Deleted
			}
			if err := take(kind, c.now.DeepCopy()); err != nil {
				return err
			}
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// named reports whether a Lease is of a namespace, and of a name; "": any.
func named(namespace, name string) func(*coordinationv1.Lease) bool {
	return func(l *coordinationv1.Lease) bool { return l.Namespace == namespace && (name == "" || l.Name == name) }
}

func (l *Leases) find(namespace, name string) *coordinationv1.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stored[types.NamespacedName{Namespace: namespace, Name: name}]
}

func missing(name string) error {
	return apierrors.NewNotFound(coordinationv1.Resource("leases"), name)
}
