package lease

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// Follow implements election.Store.
func (s *Store) Follow(ctx context.Context, namespace, name, version string,
	take func(lease *coordinationv1.Lease, deleted bool) error) error {
	return s.follow(ctx, version, named(namespace, name),
		func(kind watch.EventType, lease *coordinationv1.Lease) error {
			return take(lease, kind == watch.Deleted)
		})
}

// Delegated tells of the Leases of nodes that are cut off: first the names of all of them, then each whenever it
// changes, and nil when it is gone or its node is cut off no more. It returns when ctx ends, or the store is closed.
func (s *Store) Delegated(ctx context.Context, all func(names []string),
	take func(node string, l *coordinationv1.Lease)) {
	for ctx.Err() == nil && s.IsOpen() {
		list, names := s.list(IsDelegated), []string{}
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		all(names)
		for i := range list.Items {
			take(names[i], &list.Items[i])
		}
		_ = s.follow(ctx, list.ResourceVersion, IsDelegated,
			func(kind watch.EventType, l *coordinationv1.Lease) error {
				node := l.Name
				if kind == watch.Deleted {
					l = nil
				}
				take(node, l)
				return nil
			})
	}
}

// follow shows what changes after a version, until ctx ends or take fails. A Lease that is gone, or no longer selected,
// is shown as deleted.
func (s *Store) follow(
	ctx context.Context, version string, match func(*coordinationv1.Lease) bool,
	take func(watch.EventType, *coordinationv1.Lease) error,
) error {
	after, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return apierrors.NewBadRequest("resourceVersion: " + err.Error())
	}
	var tick <-chan time.Time
	if s.Forget > 0 {
		t := s.clock.NewTicker(s.Forget / 4)
		defer t.Stop()
		tick = t.C()
	}
	for {
		changes, more, err := s.since(after)
		if err != nil {
			return err
		}
		after += uint64(len(changes))
		for _, c := range changes {
			if err := c.show(match, take); err != nil {
				return err
			}
		}
		select {
		case <-more:
		case <-tick:
			s.list(match) // what is too old goes
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// since are the changes after a version, and what tells of the next one.
func (s *Store) since(version uint64) ([]change, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	missed := s.version - version
	switch {
	case s.closed:
		return nil, nil, errClosed
	case version > s.version || missed > uint64(len(s.changes)):
		return nil, nil, apierrors.NewResourceExpired(fmt.Sprintf("changes after %d are not remembered", version))
	}
	return slices.Clone(s.changes[uint64(len(s.changes))-missed:]), s.more, nil
}

// show tells of a change as a watch sees it that selects Leases.
func (c change) show(match func(*coordinationv1.Lease) bool,
	take func(watch.EventType, *coordinationv1.Lease) error) error {
	kind, lease := watch.Modified, c.now
	switch was, is := c.old != nil && match(c.old), c.now != nil && match(c.now); {
	case !was && !is:
		return nil
	case !was:
		kind = watch.Added
	case !is:
		if kind = watch.Deleted; lease == nil {
			lease = c.old
		}
	}
	return take(kind, lease.DeepCopy())
}
