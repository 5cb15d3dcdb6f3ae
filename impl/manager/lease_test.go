package manager

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/manager/verdict"
)

// TestLeaseHandler: what is there at the start is no heartbeat, a change of renewTime is one, and a clock that was set
// back is noticed.
func TestLeaseHandler(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	m := &ear{board: newBoard(clock, verdict.Config{Grace: 50 * time.Second})}
	m.metrics = newMetrics(m.board)
	m.board.tell(func(now time.Time, v *verdict.Machine) {
		v.Lead(now, verdict.Record{})
		v.SetNode(now, "a", verdict.Facts{Pool: "p"})
	})
	h := m.leaseHandler()
	began := clock.Now()
	lease := func(renewed time.Duration, delegated bool) *coordinationv1.Lease {
		at := metav1.NewMicroTime(began.Add(renewed))
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: coordinationv1.LeaseSpec{RenewTime: &at}}
		if delegated {
			l.Annotations = map[string]string{contract.DelegateHeartbeat: contract.Delegated}
		}
		return l
	}
	want := func(what string, state verdict.State, kept bool) {
		t.Helper()
		m.board.decide()
		d, _ := m.board.read()
		if v := d.Nodes["a"]; v.State != state || v.Kept != kept {
			t.Errorf("%s: %v, kept %v; want %v, %v", what, v.State, v.Kept, state, kept)
		}
	}
	last := lease(0, false)
	h.OnAdd(last, true)
	want("found at the start", verdict.Unknown, true)
	change := func(l *coordinationv1.Lease) {
		clock.Step(10 * time.Second)
		h.OnUpdate(last, l)
		last = l
	}
	change(lease(0, true))
	want("another annotation, and the same renewTime", verdict.Unknown, true)
	change(lease(20*time.Second, true))
	want("a forwarded heartbeat", verdict.Delegated, false)
	change(lease(30*time.Second, false))
	want("its own heartbeat", verdict.Normal, false)
	for i := range 4 {
		change(lease(time.Duration(i-100)*time.Second, false))
	}
	want("its clock was set back: stock Kubernetes counts nothing", verdict.Normal, true)
	tells := lease(40*time.Second, false)
	tells.Annotations = map[string]string{contract.DigestAnnotation: digest.Digest{Version: "v1", Served: 5}.Text()}
	slim, err := trimLease(tells)
	if err != nil {
		t.Fatal(err)
	}
	change(slim.(*coordinationv1.Lease))
	change(lease(50*time.Second, false)) // the next heartbeat takes it away
	if e, told := m.metrics.hubs.Of("a"); !told || e.Served != 5 || !e.Told.Equal(clock.Now().Add(-10*time.Second)) {
		t.Errorf("its hub told %+v, %v", e, told)
	}
	h.OnDelete(last)
	if _, told := m.metrics.hubs.Of("a"); told {
		t.Error("it has no Lease, and has told")
	}
	clock.Step(10 * time.Second)
	h.OnAdd(lease(-time.Hour, false), false)
	want("a Lease that is made anew counts", verdict.Normal, false)
}
