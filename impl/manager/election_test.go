package manager

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// replicas share a Lease at an API that counts what it is asked.
type replicas struct {
	t   *testing.T
	api *fake.Clientset
	now time.Time
}

func (r *replicas) lock(id string) *lock {
	return &lock{
		Interface: &resourcelock.LeaseLock{
			LeaseMeta: electionLease().ObjectMeta, Client: r.api.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: id},
		},
		lasts: 15 * time.Second, tries: 12 * time.Second,
	}
}

// asks is how many requests something takes.
func (r *replicas) asks(what string, want int, do func()) {
	r.t.Helper()
	r.api.ClearActions()
	do()
	if got := r.api.Actions(); len(got) != want {
		r.t.Errorf("%s takes %d requests, not %d: %v", what, len(got), want, got)
	}
}

func (r *replicas) record(id string) resourcelock.LeaderElectionRecord {
	return resourcelock.LeaderElectionRecord{
		HolderIdentity: id, LeaseDurationSeconds: 15, RenewTime: metav1.NewTime(r.now), AcquireTime: metav1.NewTime(r.now),
	}
}

func (r *replicas) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// watch shows a lock what is there.
func (r *replicas) watch(l *lock) *coordinationv1.Lease {
	r.t.Helper()
	of := electionLease()
	is, err := r.api.CoordinationV1().Leases(of.Namespace).Get(r.t.Context(), of.Name, metav1.GetOptions{})
	r.must(err)
	l.hear(is)
	return is
}

// TestLock: a replica that waits asks nothing while it sees the Lease. It asks before it takes the Lease, and takes it
// from no leader that has renewed it. The leader leaves out a renewal only where it ends before anyone takes the Lease.
func TestLock(t *testing.T) {
	r := &replicas{t: t, api: fake.NewClientset(), now: time.Now()}
	ctx := t.Context()
	a, b := r.lock("a"), r.lock("b")
	if _, _, err := a.Get(ctx); !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	r.must(a.Create(ctx, r.record("a")))

	renew := func(l *lock, after time.Duration) func() {
		return func() { r.now = r.now.Add(after); r.must(l.Update(ctx, r.record("a"))) }
	}
	r.asks("a renewal that no watch confirms", 1, renew(a, 2*time.Second))
	r.watch(a)
	r.asks("a renewal after 2 s", 0, renew(a, 2*time.Second))
	r.asks("a renewal after 4 s", 1, renew(a, 2*time.Second))
	r.asks("a renewal after 2 s", 0, renew(a, 2*time.Second))
	r.asks("a renewal after 3 s, which could end too late", 1, renew(a, time.Second))
	is := r.watch(a)
	*is.Spec.HolderIdentity = "b"
	r.asks("a renewal where the watch shows another leader", 1, renew(a, 2*time.Second))
	r.watch(a)

	r.watch(b)
	r.asks("to wait", 0, func() {
		if is, _, err := b.Get(ctx); err != nil || is.HolderIdentity != "a" {
			t.Errorf("%v, %v", is, err)
		}
	})
	renew(a, 4*time.Second)() // which the watch of b does not show
	if err := b.Update(ctx, r.record("b")); !apierrors.IsConflict(err) {
		t.Errorf("a Lease that was renewed is taken: %v", err)
	}
	r.asks("to wait, after the watch was behind", 1, func() { _, _, err := b.Get(ctx); r.must(err) })

	r.watch(a)
	r.asks("to give it back", 2, func() {
		_, _, err := a.Get(ctx)
		r.must(err)
		r.must(a.Update(ctx, r.record("")))
	})
	r.watch(b)
	r.asks("to take over", 2, func() {
		_, _, err := b.Get(ctx)
		r.must(err)
		r.must(b.Update(ctx, r.record("b")))
	})
}
