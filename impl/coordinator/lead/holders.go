package lead

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

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/limit"
)

// maxUID bounds the UID of a Node, which has 36 bytes.
const maxUID = 64

// LeaseCaller is who wants to write a Lease, as its certificate says. What a hub says of itself, of the time and of
// others is ignored.
type LeaseCaller struct {
	Node     string   // whose hub it is; "": of none
	Groups   []string // organizations
	Operates bool     // it is an operator, and so no hub
	Near     bool     // it asks over the loopback interface: an address there is of the same machine for both
}

// Check tells why a caller may not write a Lease so, from its certificate and this coordinator's clock. old is the
// stored one, which the write is on condition of; nil: there is none.
func (e *Election) Check(ctx context.Context, who LeaseCaller, lease, old *coordinationv1.Lease) error {
	node, holder := who.Node, HolderOf(lease)
	mine, pools := contract.NodeOfIdentity(holder) == node, lease.Namespace == contract.LeaseNamespace
	switch what := foreign(lease, who); {
	case len(holder) > limit.MaxHolder:
		return refuse(lease, fmt.Sprintf("spec.holderIdentity has %d bytes: want %d at most", len(holder), limit.MaxHolder))
	case who.Operates && holder != "":
		return refuse(lease, "an operator only clears it: spec.holderIdentity has to be empty")
	case who.Operates:
		return nil
	case what != "":
		return refuse(lease, what)
	case !pools:
		return nil
	case lease.Name == contract.InformerSync && !mine, holder != "" && !mine:
		return refuse(lease, fmt.Sprintf("spec.holderIdentity %q is not of the node of the certificate: want %s_<any>",
			holder, node))
	case lease.Name == contract.InformerSync:
		return e.checkSync(ctx, lease, node)
	case holder != "" && e.Only != "" && !slices.Contains(who.Groups, e.Only):
		return refuse(lease,
			fmt.Sprintf("only some nodes may lead (--leaders-only): the certificate of %s lacks the organization %s, which a "+
				"Node with the label %s=true gets",
				node, e.Only, contract.LeaderLabel))
	case holder != "" && e.Bars.Hold(node, e.Clock.Now()):
		return apierrors.NewConflict(coordinationv1.Resource("leases"), lease.Name,
			errors.New("the coordinator could not read from this hub when it led: another one may lead for a while"))
	case holder != "" && e.LeftOut != nil && e.LeftOut() && (old == nil || contract.NodeOfIdentity(HolderOf(old)) != node):
		return apierrors.NewConflict(coordinationv1.Resource("leases"), lease.Name,
			errors.New("the pool has another coordinator now, see "+contract.LeaderHubReplicas+
				": nobody is elected at this one any more"))
	case old == nil:
		return nil
	}
	return e.checkElection(lease, old, node)
}

// checkSync lets only the leader say that the pool's cache is fresh.
func (e *Election) checkSync(ctx context.Context, lease *coordinationv1.Lease, node string) error {
	if err := e.look(ctx); err != nil {
		return err
	}
	if leader := e.Fence.Leader().Node; leader != node {
		return refuse(lease, fmt.Sprintf("only the holder of the election Lease writes it, which is %q", leader))
	}
	return nil
}

// checkElection lets a hub take the election Lease if it is free, its own or expired; one that lied as leader, only if
// nobody else wants it.
func (e *Election) checkElection(lease, old *coordinationv1.Lease, node string) error {
	s, err := sight(old, false)
	if err != nil {
		return err
	}
	holder, age := HolderOf(old), e.tenure.Age(s.Version, e.Clock.Now())
	mine := contract.NodeOfIdentity(holder) == node
	if e.Refuses != nil && HolderOf(lease) != "" {
		if why := e.Refuses(node, mine, age); why != "" {
			return apierrors.NewConflict(coordinationv1.Resource("leases"), lease.Name, errors.New(why))
		}
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
			fmt.Errorf("%s holds it, and renewed it %v ago; it expires after %v by the coordinator's clock", holder,
				age.Round(time.Millisecond), lasts))
	}
	return nil
}

// foreign names what a hub may not put on a Lease: what would outlive the hub, make others act on it, or lead this
// coordinator to where only its machine gets.
func foreign(l *coordinationv1.Lease, who LeaseCaller) string {
	node, own := who.Node, l.Namespace == contract.NodeLeaseNamespace
	holder := HolderOf(l)
	switch {
	case own && holder != "" && contract.NodeOfIdentity(holder) != node:
		return fmt.Sprintf("spec.holderIdentity %q is not of the node of the certificate: want %s, or nothing", holder, node)
	case len(l.Finalizers) > 0:
		return "a hub sets no metadata.finalizers"
	case len(l.OwnerReferences) > 0 && (!own || !ownedByNode(l.OwnerReferences, node)):
		return "a hub sets no metadata.ownerReferences, but that of its node to its node's Lease"
	}
	for what, pairs := range map[string]map[string]string{
		"metadata.annotations": l.Annotations, "metadata.labels": l.Labels,
	} {
		for key, value := range pairs {
			switch {
			case own && key == contract.DelegateHeartbeat && value == contract.Delegated:
			case (own || l.Name == contract.ElectionLease) && what == "metadata.annotations" && key == contract.PoolAddress:
			default:
				return "a hub sets no " + what + ", but " + contract.PoolAddress + " to what it holds, and " +
					contract.DelegateHeartbeat + "=" + contract.Delegated + " to its node's Lease: " + strconv.Quote(key)
			}
		}
	}
	if address, told := l.Annotations[contract.PoolAddress]; told {
		switch at, _, err := contract.ParsePoolAddress(address); {
		case err != nil:
			return "annotation " + contract.PoolAddress + ": " + err.Error()
		case at.Addr().IsLoopback() && !who.Near:
			return fmt.Sprintf("annotation %s: %s is an address of each machine: want one of the node, or %s",
				contract.PoolAddress, at, contract.PoolAddressReverse)
		}
	}
	return ""
}

func ownedByNode(refs []metav1.OwnerReference, node string) bool {
	return len(refs) == 1 && len(refs[0].UID) <= maxUID && refs[0].APIVersion == "v1" && refs[0].Kind == "Node" &&
		refs[0].Name == node
}

func refuse(l *coordinationv1.Lease, why string) error {
	return apierrors.NewForbidden(coordinationv1.Resource("leases"), l.Namespace+"/"+l.Name, fmt.Errorf("%s", why))
}
