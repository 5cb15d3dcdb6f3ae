package host

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"time"
)

// resolveFor is for the addresses of one server.
const resolveFor = 15 * time.Second

// Resolve finds the addresses of a server.
func Resolve(ctx context.Context, server string) (all []netip.AddrPort, err error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(cmp.Or(u.Port(), "443"), 10, 16)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, resolveFor)
	defer cancel()
	hosts, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	for _, h := range hosts {
		all = append(all, netip.AddrPortFrom(h.Unmap(), uint16(port)))
	}
	return all, err
}
