package coordinator

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"

	"github.com/weir-edge/weir/impl/connectivity"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/uplink"
)

// Try has a request answered by a server over a connection of its own, which meets firewalls as a new one does. stage
// is how far it came. The handshake is of small packets, and the request of large ones: so a path on which only the
// large ones get lost is known.
func (c *Client) Try(ctx context.Context, s Server) (stage connectivity.Stage, err error) {
	by := &stagedNet{Dials: c.Net}
	d := c.dialer(s, by, &c.Meter, "h2")
	d.TLS.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256}
	conn, err := d.Connect(ctx, "tcp", net.JoinHostPort(s.URL.Hostname(), cmp.Or(s.URL.Port(), "443")))
	if err != nil {
		return by.stage, err
	}
	path := "/healthz"
	if s.Node != "" {
		path = contract.StatusPath
	}
	return connectivity.Secured, connectivity.Attempt(ctx, conn, path)
}

// stagedNet notes that a connection came about.
type stagedNet struct {
	uplink.Dials
	stage connectivity.Stage
}

func (n *stagedNet) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := n.Dials.DialContext(ctx, network, address)
	if err == nil {
		n.stage = connectivity.Connected
	}
	return c, err
}
