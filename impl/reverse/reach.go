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

// Span is ports of a network, as spec.reach has them.
type Span struct {
	Prefix      netip.Prefix
	First, Last uint16 // both are in it
}

// Validate reports what is wrong with a span.
func (s Span) Validate() error {
	switch {
	case !s.Prefix.IsValid() || s.Prefix.Addr().Is4In6():
		return fmt.Errorf("network %q: want a network as in 10.244.0.0/16 or fd00:1::/64", s.Prefix)
	case s.Prefix != s.Prefix.Masked():
		return fmt.Errorf("network %s: want %s, the address of the network", s.Prefix, s.Prefix.Masked())
	case s.First == 0 || s.Last < s.First:
		return fmt.Errorf("ports %d to %d of %s: want the first one above 0, and the last one not before it", s.First,
			s.Last, s.Prefix)
	}
	return nil
}

func (s Span) has(a netip.AddrPort) bool {
	return s.Validate() == nil && s.Prefix.Contains(a.Addr()) && s.First <= a.Port() && a.Port() <= s.Last
}

// forbidden are networks that are never dialed, and what they are.
var forbidden = []struct {
	prefix netip.Prefix
	is     string
}{
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},
	{netip.MustParsePrefix("0.0.0.0/8"), "an unspecified address"}, // 0.0.0.0 is this machine to Linux
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved address"}, // 255.255.255.255 among them
	{netip.MustParsePrefix("::1/128"), "a loopback address"},
	{netip.MustParsePrefix("::/128"), "an unspecified address"},
	// Forms of IPv6 that have an IPv4 address in them would get round the rules for that address.
	{netip.MustParsePrefix("::/96"), "an IPv4 address in IPv6"},
	{netip.MustParsePrefix("::ffff:0:0/96"), "an IPv4 address in IPv6"},
	{netip.MustParsePrefix("::ffff:0:0:0/96"), "an IPv4 address in IPv6"},
	{netip.MustParsePrefix("64:ff9b::/96"), "an IPv4 address in IPv6"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "an IPv4 address in IPv6"},
	{netip.MustParsePrefix("2001::/32"), "an IPv4 address in IPv6"},
	{netip.MustParsePrefix("2002::/16"), "an IPv4 address in IPv6"},
	// Where clouds give credentials to their machines, besides 169.254.169.254.
	{netip.MustParsePrefix("fd00:ec2::254/128"), "a metadata address"},
	{netip.MustParsePrefix("fd20:ce::254/128"), "a metadata address"},
	{netip.MustParsePrefix("100.100.100.200/32"), "a metadata address"},
	{netip.MustParsePrefix("168.63.129.16/32"), "a metadata address"},
	{netip.MustParsePrefix("192.0.0.192/32"), "a metadata address"},
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
	for _, f := range forbidden {
		if f.prefix.Contains(a) {
			return &Error{Kind: Refused, Address: a.String(), Why: "it is " + f.is}
		}
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
	case slices.ContainsFunc(r.Named, func(s Span) bool { return s.has(a) }):
		return nil
	case slices.Contains(r.Nodes, a.Addr()):
		return refuse(fmt.Sprintf("of nodes only port %d is in reach, and what spec.reach of the Pool names", KubeletPort))
	}
	return refuse("it is no node of the pool, and spec.reach of the Pool does not name it")
}
