package reverse

import (
	"net/netip"
	"testing"
)

// TestForbidden: a network of which each address is refused is refused with one word for all. One that has others, too,
// is not.
func TestForbidden(t *testing.T) {
	for network, want := range map[string]string{
		"127.0.0.0/8": "a loopback address", "127.0.0.1/32": "a loopback address", "::1/128": "a loopback address",
		"0.0.0.0/8": "an unspecified address", "::/128": "an unspecified address",
		"169.254.0.0/16": "a link-local address", "169.254.169.254/32": "a link-local address",
		"fe80::/10": "a link-local address", "fe80::/64": "a link-local address",
		"224.0.0.0/4": "a multicast address", "239.1.0.0/16": "a multicast address", "ff02::/16": "a multicast address",
		"240.0.0.0/4": "a reserved address", "255.255.255.255/32": "a reserved address",
		"64:ff9b::/96": "an IPv4 address in IPv6", "2002::/16": "an IPv4 address in IPv6",
		"2002:a00::/24": "an IPv4 address in IPv6", "2001::/32": "an IPv4 address in IPv6",
		"100.100.100.200/32": "a metadata address", "fd00:ec2::254/128": "a metadata address",
	} {
		p := netip.MustParsePrefix(network)
		if is := ForbiddenNetwork(p); is != want {
			t.Errorf("each of %s is %q, want %q", network, is, want)
		}
		if is := ForbiddenAs(p.Addr()); is != want {
			t.Errorf("%s is %q, want %q", p.Addr(), is, want)
		}
	}
	for _, network := range []string{
		"0.0.0.0/0", "::/0", "126.0.0.0/7", "0.0.0.0/7", "10.0.0.0/8", "169.254.0.0/15", "fe80::/9", "fd00::/8",
		"100.100.100.0/24", "fd00:ec2::/32", "2001::/16", "192.168.0.0/16", "2001:db8::/32",
	} {
		if is := ForbiddenNetwork(netip.MustParsePrefix(network)); is != "" {
			t.Errorf("each of %s is %s", network, is)
		}
	}
	if is := ForbiddenAs(netip.MustParseAddr("10.0.0.7")); is != "" {
		t.Error(is)
	}
}
