package authz

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/weir-edge/weir/impl/contract"
)

// PublicPaths are the paths that need no certificate.
func PublicPaths() []string { return []string{"/healthz", "/livez", "/readyz", "/version"} }

// GroupResource names a resource without its version.
type GroupResource struct{ Group, Resource string }

// Rules are the rules of one pool's coordinator.
type Rules struct {
	pool    string
	relayed func(GroupResource) bool
}

// New returns the rules of a pool that relays these resources.
func New(pool string, relayed func(GroupResource) bool) *Rules {
	return &Rules{pool: pool, relayed: relayed}
}

// Authorizer returns the rules in the form of k8s.io/apiserver.
func (r *Rules) Authorizer() authorizer.Authorizer {
	return authorizer.AuthorizerFunc(
		func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			if reason := r.refuse(a); reason != "" {
				return authorizer.DecisionDeny, reason, nil
			}
			return authorizer.DecisionAllow, "", nil
		})
}

type role int

const (
	stranger role = iota
	viewer
	operator
	replica
	hub
)

// who tells the role of a caller, or why it has none.
func (r *Rules) who(u user.Info) (role, string) {
	if u == nil {
		return stranger, "a client certificate of the pool is needed"
	}
	groups := u.GetGroups()
	if !slices.Contains(groups, contract.PoolGroupPrefix+r.pool) {
		for _, g := range groups {
			if pool, ok := strings.CutPrefix(g, contract.PoolGroupPrefix); ok {
				return stranger, fmt.Sprintf("the certificate is of pool %q, this is the coordinator of pool %q", pool, r.pool)
			}
		}
		return stranger, fmt.Sprintf("the certificate is not of pool %q: it lacks the organization %s", r.pool,
			contract.PoolGroupPrefix+r.pool)
	}
	if slices.Contains(groups, contract.HubGroup) {
		if node := NodeOf(u); node == "" {
			return stranger, fmt.Sprintf("a certificate of %s must be of a user %s<node>", contract.HubGroup,
				contract.NodeUserPrefix)
		}
		return hub, ""
	}
	if slices.Contains(groups, contract.ReplicaGroup) {
		if ReplicaOf(r.pool, u) == "" {
			return stranger, fmt.Sprintf("a certificate of %s must be of a user %s", contract.ReplicaGroup,
				contract.ReplicaUser(r.pool, "<name>"))
		}
		return replica, ""
	}
	switch {
	case slices.Contains(groups, contract.OperatorGroup):
		return operator, ""
	case slices.Contains(groups, contract.ViewerGroup):
		return viewer, ""
	}
	return stranger, fmt.Sprintf("the certificate has no role here: it lacks the organization %s, %s or %s",
		contract.HubGroup, contract.OperatorGroup, contract.ViewerGroup)
}

// HubOf is the node whose hub of this pool a user is, or why it is none.
func (r *Rules) HubOf(u user.Info) (node, why string) {
	switch role, why := r.who(u); {
	case why != "":
		return "", why
	case role != hub:
		return "", fmt.Sprintf("%s is no hub of pool %q: it lacks the organization %s", u.GetName(), r.pool,
			contract.HubGroup)
	}
	return NodeOf(u), ""
}

// ReplicaOf is the name of the replica of a pool's coordinator that a user is, "" if the user is none.
func ReplicaOf(pool string, u user.Info) string {
	if name, ok := strings.CutPrefix(u.GetName(), contract.ReplicaUser(pool, "")); ok {
		return name
	}
	return ""
}

// Operates reports whether a user that was let in is an operator, and so no hub.
func Operates(u user.Info) bool {
	return NodeOf(u) == "" && u != nil && slices.Contains(u.GetGroups(), contract.OperatorGroup)
}

// NodeOf is the node whose hub a user is, "" if the user is none.
func NodeOf(u user.Info) string {
	if node, ok := strings.CutPrefix(u.GetName(), contract.NodeUserPrefix); ok {
		return node
	}
	return ""
}

// late marks who shows a certificate that has ended. No certificate says so itself: what it says is a name and groups.
const late = "weir.dev/late"

// Reader is a user whose certificate has ended and counts all the same: it reads.
func Reader(u user.Info) user.Info {
	extra := map[string][]string{late: {"true"}}
	for k, v := range u.GetExtra() {
		extra[k] = v
	}
	return &user.DefaultInfo{Name: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: extra}
}

// signed reports whether a path is of what the authority of the pool has signed: its signature counts, and not who
// brings it.
func signed(path string) bool {
	return path == contract.DenylistPath || path == contract.TrustPath || path == contract.DirectoryPath
}

// refuseLate tells what a user may not whose certificate has ended: to write anything but the Lease of its own node,
// which says no more than that the node is there, and a denylist or the authorities of the pool, which others have
// signed.
func refuseLate(a authorizer.Attributes) string {
	node := NodeOf(a.GetUser())
	switch own := isLease(a) && a.GetNamespace() == contract.NodeLeaseNamespace &&
		(a.GetName() == node || a.GetVerb() == "create" && a.GetName() == ""); {
	case a.GetVerb() == "get" || a.GetVerb() == "list" || a.GetVerb() == "watch", node != "" && own, signed(a.GetPath()):
		return ""
	}
	return "the certificate has ended: until it is renewed its holder reads, and renews the Lease of its own node"
}

// refuse tells why a request is refused, "" if it is not.
func (r *Rules) refuse(a authorizer.Attributes) string {
	if !a.IsResourceRequest() && a.GetVerb() == "get" && slices.Contains(PublicPaths(), a.GetPath()) {
		return ""
	}
	role, why := r.who(a.GetUser())
	switch {
	case role == stranger:
		return why
	case len(a.GetUser().GetExtra()[late]) > 0 && refuseLate(a) != "":
		return refuseLate(a)
	case !a.IsResourceRequest():
		return refusePath(role, a)
	case a.GetVerb() == "get" || a.GetVerb() == "list" || a.GetVerb() == "watch":
		return ""
	case r.relayed(GroupResource{a.GetAPIGroup(), a.GetResource()}):
		return "" // 405 follows
	case role == viewer:
		return fmt.Sprintf("%s only read", contract.ViewerGroup)
	case role == replica:
		return "what a replica decides is in etcd: here it only reads"
	case role == operator:
		return refuseOperatorWrite(a)
	}
	return refuseHubWrite(NodeOf(a.GetUser()), a)
}

func refusePath(r role, a authorizer.Attributes) string {
	switch {
	case a.GetVerb() == "get":
		return ""
	case a.GetVerb() == "post" && signed(a.GetPath()) && (r == hub || r == replica):
		return ""
	case a.GetVerb() == "post" && a.GetPath() == contract.RejoinPath && r == replica:
		return "" // the handler goes by the name in its certificate
	case a.GetVerb() == "post" && r == hub && (a.GetPath() == contract.LinePath || a.GetPath() == contract.DoubtPath):
		return "" // likewise
	case a.GetVerb() == "post" && r == hub &&
		slices.Contains([]string{contract.MovedPath, contract.ImagesPath, contract.ReachPath}, a.GetPath()):
		return "" // likewise
	case (a.GetVerb() == "put" || a.GetVerb() == "post") && r == hub && a.GetPath() == contract.RollPath:
		return "" // likewise
	}
	return "this path is only read"
}

// refuseOperatorWrite tells why an operator may not write what it asks for. What it writes is checked later: it clears.
func refuseOperatorWrite(a authorizer.Attributes) string {
	if isLease(a) && slices.Contains([]string{"update", "patch", "delete"}, a.GetVerb()) && ofPool(a) {
		return ""
	}
	return fmt.Sprintf("an operator reads, and clears or deletes the Leases %s/%s and %[1]s/%[3]s",
		contract.LeaseNamespace, contract.ElectionLease, contract.InformerSync)
}

func isLease(a authorizer.Attributes) bool {
	return a.GetAPIGroup() == "coordination.k8s.io" && a.GetResource() == "leases" && a.GetSubresource() == ""
}

// ofPool reports whether a Lease is one of the two that are the pool's.
func ofPool(a authorizer.Attributes) bool {
	return a.GetNamespace() == contract.LeaseNamespace &&
		(a.GetName() == contract.ElectionLease || a.GetName() == contract.InformerSync)
}

// refuseHubWrite tells why a hub may not write what it asks for. The name is not known when a Lease is created by POST;
// then the request is let pass if there is a name that would be, and leases.Create decides.
func refuseHubWrite(node string, a authorizer.Attributes) string {
	if !isLease(a) {
		return "a hub writes Leases only"
	}
	switch a.GetVerb() {
	case "create", "update", "patch":
	case "delete":
		return "a hub deletes nothing: it gives a Lease back with an empty holder"
	default:
		return "a hub writes Leases one at a time, by name"
	}
	unnamed := a.GetVerb() == "create" && a.GetName() == ""
	switch {
	case a.GetNamespace() == contract.LeaseNamespace && unnamed, ofPool(a):
		return ""
	case a.GetNamespace() == contract.NodeLeaseNamespace && (unnamed || a.GetName() == node):
		return ""
	}
	return fmt.Sprintf("a hub writes the Leases %s/%s, %[1]s/%[3]s and its own %s/%s only",
		contract.LeaseNamespace, contract.ElectionLease, contract.InformerSync, contract.NodeLeaseNamespace, node)
}
