package inmemory

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/contract"
)

// TestNobodySeizesTheElection: the rules of the coordinator hold here, and its clock alone ends a Lease.
func TestNobodySeizesTheElection(t *testing.T) {
	leases, clock := NewLeases("1", 0), clocktesting.NewFakeClock(time.Unix(1e9, 0))
	c, err := New(Config{Pool: "p", Leases: leases, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	// write lets a hub write a Lease that a node holds, in the place of an old one.
	write := func(hub, name, node string, old *coordinationv1.Lease, refused func(error) bool) *coordinationv1.Lease {
		t.Helper()
		l, do := &coordinationv1.Lease{}, leases.Create
		if old != nil {
			l, do = old.DeepCopy(), leases.Update
		}
		l.Namespace, l.Name = contract.LeaseNamespace, name
		l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = ptr.To(node+"_1"), ptr.To[int32](15)
		l, err := do(t.Context(), contract.NodeUserPrefix+hub, l)
		if refused == nil && err != nil || refused != nil && !refused(err) {
			t.Errorf("%s writes %s for %s: %v", hub, name, node, err)
		}
		return l
	}
	const election, sync = contract.ElectionLease, contract.InformerSync
	write("b", election, "a", nil, apierrors.IsForbidden)
	l := write("a", election, "a", nil, nil)
	write("b", election, "b", nil, apierrors.IsAlreadyExists)
	write("b", sync, "b", nil, apierrors.IsForbidden)
	write("a", sync, "a", nil, nil)
	if got := c.Leader(); got.Node != "a" || got.Term.String() != "1/"+l.ResourceVersion {
		t.Errorf("%+v leads", got)
	}
	clock.Step(14 * time.Second)
	write("b", election, "b", l, apierrors.IsConflict)
	renewed := write("a", election, "a", l, nil)
	clock.Step(14 * time.Second)
	write("b", election, "b", renewed, apierrors.IsConflict)
	clock.Step(time.Second)
	write("b", election, "b", l, apierrors.IsConflict) // it was renewed since
	write("b", election, "b", renewed, nil)
	if got := c.Leader().Node; got != "b" {
		t.Errorf("%s leads", got)
	}
}

// TestWatch: a watch of Leases with a label shows how they come and go, from any version that is remembered.
func TestWatch(t *testing.T) {
	leases := NewLeases("1", 0)
	l := &coordinationv1.Lease{}
	l.Namespace, l.Name = "n", "a"
	_, err := leases.Create(t.Context(), "a", l)
	for _, label := range []string{"yes", "still", "", ""} {
		err = errors.Join(err, leases.Change(t.Context(), "n", "a", func(l *coordinationv1.Lease) error {
			l.Labels = map[string]string{"label": label}
			return nil
		}))
	}
	labelled, enough := func(l *coordinationv1.Lease) bool { return l.Labels["label"] != "" }, errors.New("enough")
	var got []string
	take := func(kind watch.EventType, l *coordinationv1.Lease) error {
		if got = append(got, fmt.Sprint(kind, " ", l.ResourceVersion)); kind == watch.Deleted {
			return enough
		}
		return nil
	}
	if end := leases.follow(t.Context(), "1", labelled, take); err != nil || end != enough || strings.Join(got, ", ") != "ADDED 2, MODIFIED 3, DELETED 4" {
		t.Errorf("%v, %v, %v", got, err, end)
	}
	for range maxChanges {
		if err := leases.Change(t.Context(), "n", "a", func(*coordinationv1.Lease) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if err := leases.follow(t.Context(), "3", labelled, take); !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch from a version that is forgotten: %v", err)
	}
}
