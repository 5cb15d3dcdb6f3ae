package directory

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/reverse"
)

// maxAnnotation bounds one annotation.
const maxAnnotation = 16 << 10

// Parse reads what the Endpoints leader-hub-<pool> tell, to sign it under a number. An error names the field that is
// wrong.
func Parse(pool string, o *corev1.Endpoints, number uint64) (Entry, error) {
	failed := func(err error) error {
		//nolint:staticcheck // a kind
		return fmt.Errorf("Endpoints %s/%s%s: %w", contract.ManagerNamespace, contract.LeaderHubPrefix, pool, err)
	}
	if o.Namespace != contract.ManagerNamespace || o.Name != contract.LeaderHubPrefix+pool {
		return Entry{}, failed(fmt.Errorf("it is %.80q", o.Namespace+"/"+o.Name))
	}
	e := Entry{
		Pool: pool, Version: number, Mode: o.Annotations[contract.LeaderHubMode],
		Allowance: o.Annotations[contract.LeaderHubAllowance],
	}
	for _, name := range []string{
		contract.LeaderHubMode, contract.LeaderHubConnectivity, contract.LeaderHubCoordinators, contract.LeaderHubReplicas,
		contract.LeaderHubScope, contract.LeaderHubAllowance, contract.LeaderHubImages, contract.LeaderHubGate,
		contract.LeaderHubGateCA, contract.LeaderHubGateWays, contract.LeaderHubReach,
	} {
		if n := len(o.Annotations[name]); n > maxAnnotation {
			return Entry{}, failed(fmt.Errorf("%s has %d bytes, want %d at most", name, n, maxAnnotation))
		}
	}
	switch v := o.Annotations[contract.LeaderHubConnectivity]; v {
	case "", "false":
	case "true":
		e.Connected = true
	default:
		return Entry{}, failed(fmt.Errorf("%s is %.80q, want true or false", contract.LeaderHubConnectivity, v))
	}
	for c := range parts(o.Annotations[contract.LeaderHubCoordinators]) {
		e.Coordinators = append(e.Coordinators, strings.TrimSuffix(c, "/"))
	}
	for s := range parts(o.Annotations[contract.LeaderHubReplicas]) {
		r, err := parseReplica(s)
		if err != nil {
			return Entry{}, failed(err)
		}
		e.Replicas = append(e.Replicas, r)
	}
	for s := range parts(o.Annotations[contract.LeaderHubScope]) {
		shared, err := parseShared(s)
		if err != nil {
			return Entry{}, failed(err)
		}
		e.Scope = append(e.Scope, shared)
	}
	for s := range parts(o.Annotations[contract.LeaderHubImages]) {
		registry, sharing, _ := strings.Cut(s, "=")
		e.Images = append(e.Images, ImageRule{registry, sharing})
	}
	slices.SortFunc(e.Images, func(a, b ImageRule) int { return strings.Compare(a.Registry, b.Registry) })
	slices.SortFunc(e.Scope, func(a, b Shared) int { return strings.Compare(a.String(), b.String()) })
	var err error
	if e.Gate, err = gateOf(o.Annotations); err != nil {
		return Entry{}, failed(err)
	}
	if e.Reach, err = parseReach(o.Annotations[contract.LeaderHubReach]); err != nil {
		return Entry{}, failed(err)
	}
	if e.Leaders, err = parseLeaders(o.Subsets); err != nil {
		return Entry{}, failed(err)
	}
	if err := e.check(pool); err != nil {
		return Entry{}, failed(err)
	}
	return e, nil
}

// parts are those of a list with commas between, without blanks around them. An empty list has none.
func parts(list string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		if strings.TrimSpace(list) == "" {
			return
		}
		for p := range strings.SplitSeq(list, ",") {
			if !yield(strings.TrimSpace(p)) {
				return
			}
		}
	}
}

// parseShared reads group/version/resource, and "=Kind" behind a custom resource.
func parseShared(s string) (Shared, error) {
	name, kind, _ := strings.Cut(s, "=")
	p := strings.Split(name, "/")
	if len(p) != 3 {
		return Shared{},
			fmt.Errorf("%s has %.200q, want group/version/resource, as in discovery.k8s.io/v1/endpointslices or, for the core "+
				"group, /v1/endpoints",
				contract.LeaderHubScope, s)
	}
	return Shared{p[0], p[1], p[2], kind}, nil
}

// parseReplica reads <placement>/<node>/<IP address>.
func parseReplica(s string) (Replica, error) {
	p := strings.Split(s, "/")
	if len(p) == 3 {
		if ip, err := netip.ParseAddr(p[2]); err == nil {
			return Replica{p[0], p[1], ip}, nil
		}
	}
	return Replica{}, fmt.Errorf("%s has %.200q, want <placement>/<node>/<IP address>", contract.LeaderHubReplicas, s)
}

// parseReach reads contract.LeaderHubReach, in any order.
func parseReach(text string) (all Reach, err error) {
	for p := range parts(text) {
		s, err := reverse.ParseSpan(p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", contract.LeaderHubReach, err)
		}
		all = append(all, s)
	}
	slices.SortFunc(all, reverse.Span.Compare)
	return all, nil
}

// parseLeaders reads the addresses of the leader hubs, those of one node together, in the order of nodes.
func parseLeaders(subsets []corev1.EndpointSubset) (all []Leader, err error) {
	n := 0
	for _, s := range subsets {
		if n += len(s.Addresses); n > MaxLeaders*maxAddresses {
			return nil, fmt.Errorf("more than %d addresses of leader hubs", MaxLeaders*maxAddresses)
		}
		if len(s.Addresses) == 0 {
			continue
		}
		port, err := portOf(s.Ports)
		if err != nil {
			return nil, err
		}
		for _, a := range s.Addresses {
			ip, err := netip.ParseAddr(a.IP)
			if err != nil {
				return nil, fmt.Errorf("address of a leader hub is %.80q, want an IP address", a.IP)
			}
			if a.NodeName == nil {
				return nil, fmt.Errorf("address %s of a leader hub has no nodeName, want that of its Node", ip)
			}
			i := slices.IndexFunc(all, func(l Leader) bool { return l.Node == *a.NodeName })
			if i < 0 {
				i, all = len(all), append(all, Leader{Node: *a.NodeName})
			}
			all[i].Addresses = append(all[i].Addresses, netip.AddrPortFrom(ip.Unmap(), port))
		}
	}
	slices.SortFunc(all, func(a, b Leader) int { return strings.Compare(a.Node, b.Node) })
	return all, nil
}

// portOf is the pool port of the leader hubs of a subset: the only one, or that of the name.
func portOf(ports []corev1.EndpointPort) (uint16, error) {
	for _, p := range ports {
		if (len(ports) == 1 || p.Name == contract.LeaderHubPort) && p.Port > 0 && p.Port < 1<<16 {
			return uint16(p.Port), nil
		}
	}
	return 0, fmt.Errorf("%d ports of leader hubs, want one, or one of the name %s, 1 to 65535", len(ports),
		contract.LeaderHubPort)
}
