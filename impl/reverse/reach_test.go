package reverse

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

// TestReach: what a leader dials, and why it dials nothing else.
func TestReach(t *testing.T) {
	all := Reach{
		Nodes: []netip.Addr{
			netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("fd00::7"),
			// A node may say anything of itself.
			netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("::1"),
			netip.MustParseAddr("::ffff:10.0.0.9"),
		},
		Named: []Span{
			span("10.244.0.0/16", 8080, 8090), span("fd01::/64", 443, 443), span("192.0.2.1/32", 1, 65535),
			span("0.0.0.0/0", 9000, 9000), span("::/0", 9000, 9000), // an administrator may name too much
			span("10.7.0.9/16", 1, 2), span("10.8.0.0/16", 0, 2), span("10.8.0.0/16", 3, 2), {},
		},
		Never: []netip.Addr{netip.MustParseAddr("203.0.113.5")},
	}
	check := func(want, address string) {
		t.Helper()
		to, err := all.Check(address)
		switch {
		case want == "" && (err != nil || to.String() != address):
			t.Errorf("%s: %v, %v: want it to be allowed", address, to, err)
		case want != "" && (kindOfError(err) != Refused || !strings.Contains(err.Error(), want) || to.IsValid()):
			t.Errorf("%s: %v, %v: want it to be refused: %s", address, to, err, want)
		}
		if _, err := (Reach{}).Check(address); kindOfError(err) != Refused {
			t.Errorf("%s: %v: want the zero value to refuse it", address, err)
		}
	}
	for want, addresses := range map[string][]string{ // "": allowed
		"": {
			"10.0.0.7:10250", "[fd00::7]:10250", "10.244.3.4:8080", "10.244.3.4:8090", "[fd01::9]:443", "192.0.2.1:1",
			"192.0.2.1:65535", "203.0.113.6:9000", "10.0.0.7:9000", "[2a00::1]:9000",
		},
		"only port 10250": {
			"10.0.0.7:10255", "10.0.0.7:22",
		},
		"no node of the pool": {
			"10.0.0.8:10250",
		},
		"no node": {
			"10.244.3.4:8079", "10.244.3.4:8091", "10.245.0.1:8080", "[fd01:0:0:1::]:443", "10.7.0.1:1", "10.8.0.1:1",
			"10.8.0.1:2",
		},
		"loopback": {
			"127.0.0.1:10250", "127.9.9.9:9000", "[::1]:10250",
		},
		"unspecified": {
			"0.0.0.0:9000", "0.1.2.3:9000", "[::]:9000",
		},
		"link-local": {
			"169.254.169.254:10250", "169.254.2.1:9000", "[fe80::1]:9000",
		},
		"zone": {
			"[fe80::1%eth0]:9000",
		},
		"multicast": {
			"224.0.0.1:9000", "[ff02::1]:9000",
		},
		"reserved": {
			"255.255.255.255:9000", "240.0.0.1:9000",
		},
		"IPv4 address in IPv6": {
			"[::ffff:10.0.0.7]:10250", "[::ffff:127.0.0.1]:9000", "[::ffff:10.0.0.9]:10250", "[::127.0.0.1]:9000",
			"[::ffff:0:7f00:1]:9000", "[64:ff9b::7f00:1]:9000", "[64:ff9b:1::7f00:1]:9000", "[2002:7f00:1::]:9000",
			"[2001::1]:9000",
		},
		"metadata": {
			"100.100.100.200:9000", "[fd00:ec2::254]:9000", "168.63.129.16:9000", "192.0.0.192:9000",
			"[fd20:ce::254]:9000",
		},
		"of a gate": {
			"203.0.113.5:9000",
		},
		"no IP address and port": {
			"edge-7:10250", "localhost:10250", "10.0.0.7", "10.0.0.7:0", "10.0.0.7:65537", "10.0.0.7:https",
			"010.0.0.7:10250", "10.7:10250", "0x0a000007:10250", "167772167:10250", " 10.0.0.7:10250", "fd00::7:10250",
			"user@10.0.0.7:10250", "[10.0.0.7]:10250", "10.0.0.7:10250/x", "",
		},
	} {
		for _, address := range addresses {
			check(want, address)
		}
	}
	if err := all.Allows(netip.AddrPort{}); kindOfError(err) != Refused {
		t.Errorf("no address: %v", err)
	}
}

// FuzzReach: whatever is asked for, what is dialed is the text that was asked for, in reach, and nothing that Forbidden
// refuses.
func FuzzReach(f *testing.F) {
	for _, s := range []string{
		"10.0.0.7:10250", "[::ffff:10.0.0.7]:10250", "[fe80::1%lo]:9000", "127.0.0.1:9000", "edge:1", "[2002::]:9000",
	} {
		f.Add(s)
	}
	r := Reach{
		Nodes: []netip.Addr{netip.MustParseAddr("10.0.0.7")},
		Named: []Span{span("0.0.0.0/0", 9000, 9010), span("::/0", 9000, 9010)},
	}
	f.Fuzz(func(t *testing.T, address string) {
		to, err := r.Check(address)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Kind != Refused || to.IsValid() || clean(err.Error()) != err.Error() {
				t.Fatalf("%q: %v, %q", address, to, err)
			}
			return
		}
		a := to.Addr()
		if a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() || a.Is4In6() || a.Zone() != "" ||
			Forbidden(a) != nil {
			t.Fatalf("%q: %v is allowed", address, to)
		}
		if p := to.Port(); (p < 9000 || p > 9010) && (p != KubeletPort || a != r.Nodes[0]) {
			t.Fatalf("%q: %v is allowed", address, to)
		}
		if again, err := r.Check(to.String()); err != nil || again != to {
			t.Fatalf("%q: %v, then %v, %v", address, to, again, err)
		}
	})
}
