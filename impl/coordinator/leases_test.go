package coordinator_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	applycoordination "k8s.io/client-go/applyconfigurations/coordination/v1"

	"github.com/weir-edge/weir/impl/contract"
)

const leasesPath = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"

func next(t *testing.T, w watch.Interface) (watch.EventType, *coordinationv1.Lease) {
	t.Helper()
	for {
		select {
		case ev, ok := <-w.ResultChan():
			if !ok {
				t.Fatal("the watch ended")
			}
			l, ok := ev.Object.(*coordinationv1.Lease)
			if !ok {
				t.Fatalf("%s of a %T: %v", ev.Type, ev.Object, ev.Object)
			}
			if ev.Type != watch.Bookmark {
				return ev.Type, l
			}
		case <-time.After(patience):
			t.Fatal("no event")
		}
	}
}

func TestLeases(t *testing.T) {
	s := newPool(t).start()
	ctx, hub := t.Context(), s.hub("a")
	leases := hub.leases(contract.LeaseNamespace)

	created, err := leases.Create(ctx, newLease(contract.ElectionLease, "a_1"), metav1.CreateOptions{})
	check(t, err)
	if created.UID == "" || created.ResourceVersion == "" || created.CreationTimestamp.IsZero() {
		t.Errorf("created %+v", created.ObjectMeta)
	}
	w, err := leases.Watch(ctx, metav1.ListOptions{ResourceVersion: created.ResourceVersion})
	check(t, err)
	defer w.Stop()

	if _, err := leases.Create(ctx, newLease(contract.ElectionLease, "a_1"),
		metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("created twice: %v", err)
	}
	holder := "a_2"
	created.Spec.HolderIdentity = &holder
	updated, err := leases.Update(ctx, created, metav1.UpdateOptions{})
	check(t, err)
	if _, err := leases.Update(ctx, created, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("updated over another's write: %v", err)
	}
	stale := updated.DeepCopy()
	stale.UID = "of another life"
	if _, err := leases.Update(ctx, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("updated a Lease of another UID: %v", err)
	}
	if kind, l := next(t, w); kind != watch.Modified || *l.Spec.HolderIdentity != "a_2" {
		t.Errorf("%s %v", kind, l)
	}

	for _, c := range []struct {
		kind  types.PatchType
		patch string
		want  string
	}{
		{types.JSONPatchType, `[{"op":"replace","path":"/spec/holderIdentity","value":"a_json"}]`, "a_json"},
		{types.MergePatchType, `{"spec":{"holderIdentity":"a_merge"}}`, "a_merge"},
		{types.StrategicMergePatchType, `{"spec":{"holderIdentity":"a_strategic"}}`, "a_strategic"},
	} {
		l, err := leases.Patch(ctx, contract.ElectionLease, c.kind, []byte(c.patch), metav1.PatchOptions{})
		check(t, err)
		if *l.Spec.HolderIdentity != c.want {
			t.Errorf("%s: %s", c.kind, *l.Spec.HolderIdentity)
		}
		if kind, l := next(t, w); kind != watch.Modified || *l.Spec.HolderIdentity != c.want {
			t.Errorf("%s: %s %v", c.kind, kind, l)
		}
	}
	apply := applycoordination.Lease(contract.ElectionLease, contract.LeaseNamespace).
		WithSpec(applycoordination.LeaseSpec().WithHolderIdentity("a_applied"))
	if _, err := leases.Apply(ctx, apply, metav1.ApplyOptions{FieldManager: "test"}); !apierrors.IsConflict(err) {
		t.Errorf("applied over another's field: %v", err)
	}
	_, err = leases.Apply(ctx, apply, metav1.ApplyOptions{FieldManager: "test", Force: true})
	check(t, err)
	if kind, l := next(t, w); kind != watch.Modified || *l.Spec.HolderIdentity != "a_applied" {
		t.Errorf("%s %v", kind, l)
	}

	list, err := leases.List(ctx, metav1.ListOptions{})
	check(t, err)
	if len(list.Items) != 1 || list.Items[0].Name != contract.ElectionLease {
		t.Errorf("listed %+v", list.Items)
	}
	if err := leases.Delete(ctx, contract.ElectionLease, metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("deleted by a hub: %v", err)
	}
	check(t, s.operator().leases(contract.LeaseNamespace).Delete(ctx, contract.ElectionLease, metav1.DeleteOptions{}))
	if kind, _ := next(t, w); kind != watch.Deleted {
		t.Errorf("%s after the deletion", kind)
	}
	if _, err := leases.Get(ctx, contract.ElectionLease, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got a deleted Lease: %v", err)
	}
}

func TestBadLeasesAreRefused(t *testing.T) {
	hub := newPool(t).start().hub("a")
	for name, c := range map[string]struct {
		body string
		code int
		says string
	}{
		"no duration": {
			`{"metadata":{"name":"yurthub"},"spec":{"leaseDurationSeconds":0}}`, http.StatusUnprocessableEntity,
			"leaseDurationSeconds",
		},
		"back in time": {
			`{"metadata":{"name":"yurthub"},"spec":{"leaseTransitions":-1}}`, http.StatusUnprocessableEntity, "leaseTransitions",
		},
		"other namespace":  {`{"metadata":{"name":"yurthub","namespace":"default"}}`, http.StatusBadRequest, "namespace"},
		"a number as name": {`{"metadata":{"name":7}}`, http.StatusBadRequest, "name"},
		"not JSON":         {`{`, http.StatusBadRequest, ""},
	} {
		t.Run(name, func(t *testing.T) {
			body := strings.Replace(c.body, "{", `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease",`, 1)
			if answer := hub.want(c.code, http.MethodPost, leasesPath, body); !strings.Contains(answer, c.says) {
				t.Errorf("%s does not name %q", answer, c.says)
			}
		})
	}
}

func TestLeaseTable(t *testing.T) {
	s := newPool(t).start()
	hub := s.hub("a")
	hub.elect("a_1")
	var table metav1.Table
	check(t,
		json.Unmarshal(
			[]byte(hub.want(http.StatusOK, http.MethodGet, leasesPath, "", "Accept",
				"application/json;as=Table;v=v1;g=meta.k8s.io")), &table))
	var columns []string
	for _, c := range table.ColumnDefinitions {
		columns = append(columns, c.Name)
	}
	if strings.Join(columns, " ") != "Name Holder Age" || len(table.Rows) != 1 || table.Rows[0].Cells[0] != "yurthub" ||
		table.Rows[0].Cells[1] != "a_1" {
		t.Errorf("%v %+v", columns, table.Rows)
	}
}
