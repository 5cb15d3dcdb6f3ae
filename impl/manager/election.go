package manager

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/contract"
)

// lock is the Lease by which replicas agree on a leader, with few requests. A replica that waits reads it from a watch;
// it asks before it takes the Lease. The leader leaves out a renewal where it may: after one that is left out, it still
// gives up before anyone may take the Lease.
type lock struct {
	resourcelock.Interface               // of the API
	lasts                  time.Duration // how long others wait for a leader that does not renew
	tries                  time.Duration // how long after a renewal a leader that cannot renew ends, at most

	watched atomic.Pointer[coordinationv1.Lease] // nil: not known

	// client-go uses a lock from one goroutine.
	shown   []byte    // what the last Get has told from the watch; nil: it asked
	leads   bool      // the last write was ours
	renewed time.Time // when
}

// newLock makes the lock of a manager.
func newLock(m *Manager) (*lock, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name of a replica: %w", err)
	}
	s := m.set
	c := rest.CopyConfig(s.rest)
	c.Timeout = max(s.LeaderElectRenewDeadline/2, time.Second) // one request that hangs costs no leadership
	leases, err := coordination.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", c.Host, err)
	}
	id := host + "_" + string(uuid.NewUUID())
	return &lock{
		Interface: &resourcelock.LeaseLock{
			LeaseMeta: electionLease().ObjectMeta, Client: leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: id, EventRecorder: elections{m, id}},
		},
		lasts: s.LeaderElectLeaseDuration, tries: s.LeaderElectRetryPeriod + s.LeaderElectRenewDeadline,
	}, nil
}

// electionLease is the Lease without what it says.
func electionLease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: contract.ManagerNamespace, Name: electionName}}
}

// hear takes what a watch says of the Lease; nil: it is gone.
func (l *lock) hear(is client.Object) {
	lease, _ := is.(*coordinationv1.Lease)
	l.watched.Store(lease)
}

// Get implements resourcelock.Interface.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if is := l.watched.Load(); is != nil && !l.leads {
		r := resourcelock.LeaseSpecToLeaderElectionRecord(&is.Spec)
		text, err := json.Marshal(*r)
		l.shown = text
		return r, text, err
	}
	l.shown = nil
	return l.Interface.Get(ctx)
}

// Create implements resourcelock.Interface.
func (l *lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.wrote(r, l.Interface.Create(ctx, r))
}

// Update implements resourcelock.Interface.
func (l *lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if l.shown != nil {
		_, is, err := l.Interface.Get(ctx)
		if err != nil {
			return err
		}
		if !bytes.Equal(is, l.shown) { // the watch is behind: it is asked until the watch goes on
			l.watched.Store(nil)
			return apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, electionName, nil)
		}
		l.shown = nil
	}
	if l.spares(r) {
		return nil
	}
	return l.wrote(r, l.Interface.Update(ctx, r))
}

// spares reports whether a renewal may be left out: nobody else has written the Lease, and if no later one succeeds,
// the leader ends before others may take it.
func (l *lock) spares(r resourcelock.LeaderElectionRecord) bool {
	is := l.watched.Load()
	return l.leads && r.HolderIdentity == l.Identity() && is != nil && is.Spec.HolderIdentity != nil &&
		*is.Spec.HolderIdentity == l.Identity() && r.RenewTime.Sub(l.renewed)+l.tries < l.lasts
}

func (l *lock) wrote(r resourcelock.LeaderElectionRecord, err error) error {
	if err == nil {
		l.leads, l.renewed = r.HolderIdentity == l.Identity(), r.RenewTime.Time
	}
	return err
}

// elections are the Events of a lock. The manager is there when the first is told.
type elections struct {
	m  *Manager
	id string
}

// Eventf implements resourcelock.EventRecorder.
func (e elections) Eventf(o runtime.Object, kind, reason, format string, args ...any) {
	e.m.ctrl.GetEventRecorderFor(e.id).Eventf(o, kind, reason, format, args...)
}
