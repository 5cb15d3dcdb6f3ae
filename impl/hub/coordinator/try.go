package coordinator

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/weir-edge/weir/impl/connectivity"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/uplink"
)

// large is what a request of Try carries, in bytes: more than one packet of any link has room for.
const large = 12 << 10

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
	defer conn.Close()
	over := &http.Transport{
		DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		Protocols:      new(http.Protocols), MaxConnsPerHost: 1,
	}
	over.Protocols.SetHTTP2(true)
	defer over.CloseIdleConnections()
	path := "/healthz"
	if s.Node != "" {
		path = contract.StatusPath
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(s.URL.String(), "/")+path, nil)
	if err != nil {
		return connectivity.Secured, err
	}
	req.Header.Set("User-Agent", contract.UserAgent)
	req.Header.Set("Weir-Filler", strings.Repeat("~", large)) // HPACK cannot make less of it
	resp, err := over.RoundTrip(req)
	if err != nil {
		return connectivity.Secured, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		return connectivity.Secured, fmt.Errorf("%s: %w", resp.Status, connectivity.ErrRefused)
	}
	return connectivity.Secured, nil
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
