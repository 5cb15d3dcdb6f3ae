package hop

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
)

// pingAfter and pingAnswer find out within contract.PulseSilence that nobody is there any more. A process that gets no
// processor for a second is.
const (
	pingAfter  = 250 * time.Millisecond
	pingAnswer = 1500 * time.Millisecond
)

// LineConfig says where a Line leads. All is required.
type LineConfig struct {
	Name string // of the Server, for people
	// Dial opens a connection to the Server. A Server that cannot be reached may also have come by itself, and serve over
	// the connection that it opened.
	Dial func(context.Context) (net.Conn, error)
	// TLS says who this is, and who the Server has to be.
	TLS   *tls.Config
	Clock clock.WithDelayedExecution
}

// Line is the way to one Server: one connection at a time, which carries all that is read there, and by which its life
// is known. It is an http.RoundTripper that waits for the connection.
type Line struct {
	name      string
	transport *http.Transport
	clock     clock.WithDelayedExecution

	mu     sync.Mutex
	conn   *http.ClientConn // nil: there is none
	change chan struct{}    // closed at a change of conn
}

// NewLine returns a Line that is not connected.
func NewLine(c LineConfig) *Line {
	l := &Line{name: c.Name, clock: c.Clock, change: make(chan struct{})}
	l.transport = &http.Transport{
		DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return c.Dial(ctx) },
		TLSClientConfig:    c.TLS,
		HTTP2:              &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingAnswer},
		DisableCompression: true,
		Protocols:          new(http.Protocols),
	}
	l.transport.Protocols.SetHTTP2(true)
	return l
}

// Upstream reads relays over the line.
func (l *Line) Upstream() *Upstream {
	return &Upstream{
		Name: l.name, URL: &url.URL{Scheme: "https", Host: "hub"}, Progress: true,
		Client: &http.Client{
			Transport: l, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Connect opens the connection.
func (l *Line) Connect(ctx context.Context) error {
	c, err := l.transport.NewClientConn(ctx, "https", "hub:443")
	if err != nil {
		return fmt.Errorf("connect to %s: %w", l.name, err)
	}
	l.set(c)
	return nil
}

func (l *Line) set(c *http.ClientConn) {
	l.mu.Lock()
	before := l.conn
	l.conn = c
	close(l.change)
	l.change = make(chan struct{})
	l.mu.Unlock()
	if before != nil {
		_ = before.Close()
	}
}

// Close ends the connection; another one may be opened.
func (l *Line) Close() { l.set(nil) }

// RoundTrip implements http.RoundTripper.
func (l *Line) RoundTrip(req *http.Request) (*http.Response, error) {
	for {
		l.mu.Lock()
		c, change := l.conn, l.change
		l.mu.Unlock()
		if c != nil {
			return c.RoundTrip(req)
		}
		select {
		case <-change:
		case <-req.Context().Done():
			return nil, fmt.Errorf("no connection to %s: %w", l.name, context.Cause(req.Context()))
		}
	}
}

var (
	errSilent  = errors.New("nothing is answered")
	errExpired = errors.New("the certificate has expired")
)

// Pulse opens the connection, and returns when it is over, or if the Server does not answer within a time. beat tells
// that it did.
func (l *Line) Pulse(ctx context.Context, within time.Duration) (beat bool, err error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	silent := l.clock.AfterFunc(within, func() { end(errSilent) })
	defer silent.Stop()
	if err := l.Connect(ctx); err != nil {
		return false, errors.Join(err, context.Cause(ctx))
	}
	defer l.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://hub"+contract.PulsePath, nil)
	if err != nil {
		return false, err
	}
	resp, err := l.RoundTrip(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return false, fmt.Errorf("pulse of %s: %s", l.name, resp.Status)
	}
	silent.Stop()
	expired := l.clock.AfterFunc(resp.TLS.PeerCertificates[0].NotAfter.Sub(l.clock.Now()), func() { end(errExpired) })
	defer expired.Stop()
	_, err = resp.Body.Read(make([]byte, 1)) // nothing comes
	return true, fmt.Errorf("the connection to %s is over: %w", l.name, errors.Join(err, context.Cause(ctx)))
}
