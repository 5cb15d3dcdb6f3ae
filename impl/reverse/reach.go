package reverse

import (
	"fmt"
	"net/netip"
	"slices"
)

// KubeletPort is where kubelets serve logs, exec and metrics.
const KubeletPort = 10250

// Reach is what a leader may dial for the gate. The zero value allows nothing. It is a value: nothing changes it.
//
// An address is allowed if it is the port KubeletPort of one of Nodes, or in one of Named. Two lists come before: what
// Forbidden refuses and Never, which no Named opens again. A name is never resolved, it is refused.
type Reach struct {
	Nodes []netip.Addr // InternalIPs of the nodes of the pool
	Named []Span       // what the Pool's spec.reach names
	Never []netip.Addr // refused on each port: the addresses of gates
}

// Forbidden is why an address is dialed by no leader and by no gate, whatever else is allowed: it is one of this
// machine, of a link, of many machines, of the metadata of a cloud, or an IPv4 address written as IPv6. nil: it is none
// of these.
func Forbidden(a netip.Addr) error {
	switch {
	case !a.IsValid():
		return &Error{Kind: Refused, Why: "it is no IP address"}
	case a.Zone() != "":
		return &Error{Kind: Refused, Address: a.String(), Why: "it has a zone"}
	}
	if is := ForbiddenAs(a); is != "" {
		return &Error{Kind: Refused, Address: a.String(), Why: "it is " + is}
	}
	return nil
}

// Check returns the address to dial for "host:port". What is dialed has to be this value, and not the text. The error
// is an *Error of kind Refused.
func (r Reach) Check(address string) (netip.AddrPort, error) {
	a, err := netip.ParseAddrPort(address)
	if err != nil || a.Port() == 0 {
		return netip.AddrPort{}, &Error{Kind: Refused, Address: address, Why: "it is no IP address and port"}
	}
	if err := r.Allows(a); err != nil {
		return netip.AddrPort{}, err
	}
	return a, nil
}

// Allows reports why an address may not be dialed; nil: it may. The error is an *Error of kind Refused.
func (r Reach) Allows(a netip.AddrPort) error {
	refuse := func(why string) error { return &Error{Kind: Refused, Address: a.String(), Why: why} }
	if err := Forbidden(a.Addr()); err != nil {
		return err
	}
	switch {
	case a.Port() == 0:
		return refuse("it has no port")
	case slices.Contains(r.Never, a.Addr()):
		return refuse("it is an address of a gate")
	case a.Port() == KubeletPort && slices.Contains(r.Nodes, a.Addr()):
		return nil
	case slices.ContainsFunc(r.Named, func(s Span) bool { return s.Has(a) }):
		return nil
	case slices.Contains(r.Nodes, a.Addr()):
		return refuse(fmt.Sprintf("of nodes only port %d is in reach, and what spec.reach of the Pool names", KubeletPort))
	}
	return refuse("it is no node of the pool, and spec.reach of the Pool does not name it")
}
