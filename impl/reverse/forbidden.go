package reverse

import "net/netip"

// forbidden are networks that are never dialed, and what each address of them is.
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

// ForbiddenAs is what an address is that nobody dials, whatever else is allowed: one of this machine, of a link, of
// many machines, of the metadata of a cloud, or an IPv4 address written as IPv6. "": it is none of these.
func ForbiddenAs(a netip.Addr) (is string) {
	for _, f := range forbidden {
		if f.prefix.Contains(a) {
			return f.is
		}
	}
	return ""
}

// ForbiddenNetwork is what each address of a network is, if ForbiddenAs has one word for all. "": it has not.
func ForbiddenNetwork(network netip.Prefix) (each string) {
	for _, f := range forbidden {
		if f.prefix.Bits() <= network.Bits() && f.prefix.Contains(network.Addr()) {
			return f.is
		}
	}
	return ""
}
