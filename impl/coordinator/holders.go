package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/authz"
	"github.com/weir-edge/weir/impl/coordinator/fence"
	"github.com/weir-edge/weir/impl/coordinator/jury"
	"github.com/weir-edge/weir/impl/coordinator/pull"
)

// holders decides who may hold the Leases of the pool, from the caller's certificate and this coordinator's clock. What a hub says of
// itself, of the time and of others does not count.
type holders struct {
	only   string // organization that who leads has; "": any hub may
	barred *pull.Bars
	jury   *jury.Jury
	tenure fence.Tenure                // of the election Lease
	leads  func(context.Context) error // shows the election Lease to the fence as it is now
	fence  *fence.Fence
	clock  clock.PassiveClock
}

// check tells why a caller may not write a Lease so. old is the stored one, which the write is on condition of; nil: there is none.
func (h *holders) check(ctx context.Context, lease, old *coordinationv1.Lease) error {
	u, _ := genericrequest.UserFrom(ctx)
	node, mine := authz.NodeOf(u), contract.NodeOfIdentity(holderOf(lease)) == authz.NodeOf(u)
	pools := lease.Namespace == contract.LeaseNamespace
	switch what := foreign(lease, node); {
	case authz.Operates(u) && holderOf(lease) != "":
		return refuseLease(lease, "an operator only clears it: spec.holderIdentity has to be empty")
	case authz.Operates(u):
		return nil
	case what != "":
		return refuseLease(lease, what)
	case !pools:
		return nil
	case lease.Name == contract.InformerSync && !mine, holderOf(lease) != "" && !mine:
		return refuseLease(lease, fmt.Sprintf("spec.holderIdentity %q is not of the node of the certificate: want %s_<any>", holderOf(lease), node))
	case lease.Name == contract.InformerSync:
		return h.checkSync(ctx, lease, node)
	case holderOf(lease) != "" && h.only != "" && !slices.Contains(u.GetGroups(), h.only):
		return refuseLease(lease, fmt.Sprintf("only some nodes may lead (--leaders-only): the certificate of %s lacks the organization %s, which a Node with the label %s=true gets",
			node, h.only, contract.LeaderLabel))
	case holderOf(lease) != "" && h.barred.Hold(node, h.clock.Now()):
		return apierrors.NewConflict(coordinationv1.Resource("leases"), lease.Name,
			errors.New("the coordinator could not read from this hub when it led: another one may lead for a while"))
	case old == nil:
		return nil
	}
	return h.checkElection(lease, old, node)
}

// checkSync lets only the leader say that the pool's cache is fresh.
func (h *holders) checkSync(ctx context.Context, lease *coordinationv1.Lease, node string) error {
	if err := h.leads(ctx); err != nil {
		return err
	}
	if leader := h.fence.Leader().Node; leader != node {
		return refuseLease(lease, fmt.Sprintf("only the holder of the election Lease writes it, which is %q", leader))
	}
	return nil
}

// checkElection lets a hub take the election Lease if it is free, its own or expired; one that lied as leader, only if nobody else wants it.
func (h *holders) checkElection(lease, old *coordinationv1.Lease, node string) error {
	s, err := sight(old, false)
	if err != nil {
		return err
	}
	holder, age := holderOf(old), h.tenure.Age(s.Version, h.clock.Now())
	mine := contract.NodeOfIdentity(holder) == node
	if why := h.jury.Refuses(node, mine, age); why != "" && holderOf(lease) != "" {
		return apierrors.NewConflict(coordinationv1.Resource("leases"), lease.Name, errors.New(why))
	}
	if holder == "" || mine {
		return nil
	}
	lasts := contract.MaxLeaseDuration
	if n := old.Spec.LeaseDurationSeconds; n != nil {
		lasts = min(lasts, time.Duration(*n)*time.Second)
	}
	if age < lasts {
		return apierrors.NewConflict(coordinationv1.Resource("leases"), lease.Name,
			fmt.Errorf("%s holds it, and renewed it %v ago; it expires after %v by the coordinator's clock", holder, age.Round(time.Millisecond), lasts))
	}
	return nil
}

// foreign names what a hub may not put on a Lease: what would outlive the hub, or make others act on it.
func foreign(l *coordinationv1.Lease, node string) string {
	own := l.Namespace == contract.NodeLeaseNamespace
	switch {
	case len(l.Finalizers) > 0:
		return "a hub sets no metadata.finalizers"
	case len(l.OwnerReferences) > 0 && (!own || !ownedByNode(l.OwnerReferences, node)):
		return "a hub sets no metadata.ownerReferences, but that of its node to its node's Lease"
	}
	for what, pairs := range map[string]map[string]string{"metadata.annotations": l.Annotations, "metadata.labels": l.Labels} {
		for key := range pairs {
			switch {
			case own && key == contract.DelegateHeartbeat:
			case (own || l.Name == contract.ElectionLease) && what == "metadata.annotations" && key == contract.PoolAddress:
			default:
				return "a hub sets no " + what + ", but " + contract.PoolAddress + " to what it holds, and " + contract.DelegateHeartbeat + " to its node's Lease: " + strconv.Quote(key)
			}
		}
	}
	if address, told := l.Annotations[contract.PoolAddress]; told {
		if _, _, err := contract.ParsePoolAddress(address); err != nil {
			return "annotation " + contract.PoolAddress + ": " + err.Error()
		}
	}
	return ""
}

func ownedByNode(refs []metav1.OwnerReference, node string) bool {
	return len(refs) == 1 && refs[0].APIVersion == "v1" && refs[0].Kind == "Node" && refs[0].Name == node
}

func refuseLease(l *coordinationv1.Lease, why string) error {
	return apierrors.NewForbidden(coordinationv1.Resource("leases"), l.Namespace+"/"+l.Name, fmt.Errorf("%s", why))
}
