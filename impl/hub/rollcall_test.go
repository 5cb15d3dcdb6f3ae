package hub

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/heartbeat"
	"github.com/weir-edge/weir/impl/lease"
)

// judged is weir-manager: it judges what the leader of a pool has reported, renews Leases that it has seen to stand
// since a time, and signs a receipt.
func (p *poolBed) judged(account *heartbeat.Account, began, stood time.Time) (renewed int) {
	p.t.Helper()
	cloud := p.clouds[0].leases
	l, err := cloud.Get(p.t.Context(), contract.KeyNamespace, contract.HeardPrefix+"pool-a")
	check(p.t, err)
	r, err := heartbeat.ParseReport(*l.Spec.HolderIdentity)
	check(p.t, err)
	verdicts := account.Judge(time.Since(began), r, func(node string) (heartbeat.Anchor, bool) {
		a, err := heartbeat.ParseAnchor(cloud.get(node).Annotations[contract.AnchorAnnotation])
		return a, err == nil
	})
	taken := make([]bool, len(verdicts))
	for i, v := range verdicts {
		if taken[i] = v == heartbeat.Renew; taken[i] {
			renewed++
			check(p.t, cloud.Change(p.t.Context(), contract.NodeLeaseNamespace, r.Entries[i].Node,
				func(l *coordinationv1.Lease) error {
					lease.SetRenewTime(l, heartbeat.Onward(lease.RenewTime(l), time.Since(stood)))
					return nil
				}))
		}
	}
	text, err := account.Receipt(time.Since(began), time.Now(), r, taken).Sign(p.local.signs(), "pool-a")
	check(p.t, err)
	check(p.t, cloud.Change(p.t.Context(), contract.KeyNamespace, l.Name, func(l *coordinationv1.Lease) error {
		metav1.SetMetaDataAnnotation(&l.ObjectMeta, contract.ReceiptAnnotation, text)
		return nil
	}))
	return renewed
}

// TestRollCall: what kubelets of two nodes say reaches the cloud in the report of the leader, as its forwarder, with
// links that their own Leases prove.
func TestRollCall(t *testing.T) {
	p := newPoolBed(t, "edge-1", "edge-2")
	cloud, account, began := p.clouds[0].leases, heartbeat.NewAccount(0), time.Now().Add(-time.Hour)
	_, err := cloud.Create(t.Context(), "weir-manager", &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: contract.KeyNamespace, Name: contract.HeardPrefix + "pool-a"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To(heartbeat.Report{}.String())},
	})
	check(t, err)
	p.judged(account, began, time.Now())
	p.start("edge-1")
	eventually(t, "edge-1 to lead", func() bool { return p.hubs["edge-1"].hub.Status().Role == "Leader" })
	p.start("edge-2")
	eventually(t, "edge-2 to follow", func() bool { return p.settled("edge-1", "edge-2") == "edge-1" })
	near, far := p.hubs["edge-1"].kubelet(), p.hubs["edge-2"].kubelet()
	near.beats(http.StatusNotFound, http.StatusCreated)
	far.beats(http.StatusNotFound, http.StatusCreated)
	anchored := func(node string) bool {
		return strings.Contains(cloud.get(node).Annotations[contract.AnchorAnnotation], " ")
	}
	eventually(t, "both hubs to hear of a period, and to anchor their chains", func() bool {
		near.beats(http.StatusOK)
		far.beats(http.StatusOK)
		return anchored("edge-1") && anchored("edge-2")
	})
	near.beats(http.StatusOK)
	far.beats(http.StatusOK)
	stood := time.Now()
	var reported heartbeat.Report
	eventually(t, "both nodes in a report", func() bool {
		l, err := cloud.Get(t.Context(), contract.KeyNamespace, contract.HeardPrefix+"pool-a")
		check(t, err)
		reported, err = heartbeat.ParseReport(*l.Spec.HolderIdentity)
		check(t, err)
		return len(reported.Entries) == 2
	})
	before := lease.RenewTime(cloud.get("edge-2"))
	if n := p.judged(account, began, stood); n != 2 || !lease.RenewTime(cloud.get("edge-2")).After(before) {
		t.Errorf("%d nodes were renewed by %+v", n, reported)
	}
	// Whoever wrote meanwhile, and whatever the clock of the node says: it is no conflict, and it grows.
	before = lease.RenewTime(cloud.get("edge-2"))
	far.now = before.Add(-time.Minute)
	far.beats(http.StatusOK)
	if renew := lease.RenewTime(cloud.get("edge-2")); !renew.After(before) {
		t.Errorf("renewed at %v, which was %v before", renew, before)
	}
	var users []string
	for _, w := range cloud.reported() {
		if !slices.Contains(users, w) {
			users = append(users, w)
		}
	}
	if !slices.Equal(users, []string{"weir-manager", "weir:forwarder:pool-a:edge-1"}) {
		t.Errorf("reported by %q", users)
	}
}
