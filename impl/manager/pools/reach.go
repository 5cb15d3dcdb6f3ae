package pools

import (
	"fmt"
	"net/netip"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/directory"
	poolv1 "github.com/weir-edge/weir/impl/pool"
	"github.com/weir-edge/weir/impl/reverse"
)

// reach is what the cloud may reach in a pool through weir-gate.
type reach struct {
	told    []reverse.Span
	refused []string // what hubs are not told, and why
}

// reachOf reads spec.reach of a Pool. What no leader would dial is refused. The rest is told.
//
// Weir's CRD refuses all else at once that is refused here. A Pool of before it may have it.
func reachOf(own *poolv1.Pool) (r reach) {
	if own == nil {
		return r
	}
	no := func(text, why string, args ...any) {
		r.refused = append(r.refused, fmt.Sprintf("%.60q: "+why, append([]any{text}, args...)...))
	}
	var all []reverse.Span
	for _, one := range own.Spec.Reach {
		network, err := netip.ParsePrefix(one.CIDR)
		if err != nil {
			no(one.CIDR, "want a network, as in 10.244.0.0/16 or fd00:1::/64")
			continue
		}
		if err := reverse.AllPorts(network).Validate(); err != nil {
			r.refused = append(r.refused, err.Error())
			continue
		}
		if is := reverse.ForbiddenNetwork(network); is != "" {
			no(one.CIDR, "each address of it is %s, and no leader dials that", is)
			continue
		}
		if len(one.Ports) == 0 {
			all = append(all, reverse.AllPorts(network))
		}
		for _, p := range one.Ports {
			s, ok := ports(network, p)
			if !ok {
				no(one.CIDR, "ports %d to %d: want 1 to 65535, and endPort not before port", p.Port, p.EndPort)
				continue
			}
			all = append(all, s)
		}
	}
	if all = reverse.MergedSpans(all); len(all) > directory.MaxReach { // some of them, whichever, would be a riddle
		r.refused = append(r.refused, fmt.Sprintf("%d networks and ranges of ports, want %d at most: hubs are told none",
			len(all), directory.MaxReach))
		return r
	}
	r.told = all
	return r
}

// ports are those of a network that a Pool names; false: there are none like this.
func ports(network netip.Prefix, p poolv1.ReachPort) (s reverse.Span, ok bool) {
	last := p.EndPort
	if last == 0 {
		last = p.Port
	}
	if p.Port < 1 || last < p.Port || last >= 1<<16 {
		return s, false
	}
	return reverse.Span{Prefix: network, First: uint16(p.Port), Last: uint16(last)}, true
}

// text is what hubs are told, as an annotation.
func (r reach) text() string {
	var all []string
	for _, s := range r.told {
		all = append(all, s.String())
	}
	return strings.Join(all, ",")
}

// condition is ReachAccepted. No Type: the Pool names nothing.
func (r reach) condition() (c metav1.Condition) {
	switch {
	case len(r.refused) > 0:
		c.Type, c.Status, c.Reason, c.Message = poolv1.ReachAccepted, metav1.ConditionFalse, "Refused",
			strings.Join(r.refused, "; ")
	case len(r.told) > 0:
		c.Type, c.Status, c.Reason, c.Message = poolv1.ReachAccepted, metav1.ConditionTrue, "Accepted",
			fmt.Sprintf("%d networks and ranges of ports", len(r.told))
	}
	return c
}
