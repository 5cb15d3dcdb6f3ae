package connectivity

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/weir-edge/weir/impl/contract"
)

// largeRequest is what the request carries, in bytes.
const largeRequest = 12 << 10

// Attempt has a request answered over a TLS connection on which both ends speak HTTP/2, and closes it. An answer that
// is an error works as well, unless it says that the caller is not known.
func Attempt(ctx context.Context, conn net.Conn, path string) error {
	defer conn.Close()
	over := &http.Transport{
		DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		Protocols:      new(http.Protocols), MaxConnsPerHost: 1,
	}
	over.Protocols.SetHTTP2(true)
	defer over.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://other-end"+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", contract.UserAgent)
	req.Header.Set("Weir-Filler", strings.Repeat("~", largeRequest)) // HPACK cannot make less of it
	resp, err := over.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		return fmt.Errorf("%s: %w", resp.Status, ErrRefused)
	}
	return nil
}
