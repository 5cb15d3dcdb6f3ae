package mesh

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/callers"
)

const (
	// Silence is after what time a connection is asked whether it lives, and for as long again it may not answer.
	Silence   = 3 * time.Second
	connect   = 2 * time.Second // TCP, and as long for TLS
	lookEvery = 5 * time.Second // how often it is looked whether what is open still counts
)

// Config of a mesh. All fields are required.
type Config struct {
	Self     string
	Replicas map[string]*url.URL // where each replica is met, by name; this one is among them
	Listen   string              // host:port
	Dir      string              // of sockets; the process works in it from Start on

	// Certificate is that of this replica now.
	Certificate func() (*tls.Certificate, error)
	// Verify tells why who shows a chain, leaf first, is not the replica of that name, as the server at a host or, without a host, as a client.
	Verify func(name, host string, chain []*x509.Certificate) error
	// NameOf is the replica that a certificate claims to be of; "": none.
	NameOf func(*x509.Certificate) string
	// Changes are closed when Verify may judge otherwise than before.
	Changes func() []<-chan struct{}
	// Refresh is called before what is open is verified again.
	Refresh func(context.Context)

	Clock  clock.WithTicker
	Logger *slog.Logger
}

// Mesh is one replica's part of it.
type Mesh struct {
	Config
	callers *callers.Callers // nil: this replica does not listen
	inner   atomic.Pointer[http.Handler]
	links   links
	outs    map[string]*out // by name of the other replica

	running sync.WaitGroup
	stop    context.CancelFunc // nil: it has not started
	servers []*http.Server
}

// URL is where etcd meets a replica.
func URL(name string) *url.URL { return &url.URL{Scheme: "unix", Host: socket(name)} }

func socket(name string) string { return net.JoinHostPort(name, strconv.Itoa(contract.PeerPort)) }

// New takes the port.
func New(c Config) (*Mesh, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", c.Listen)
	if err != nil {
		return nil, err
	}
	m := &Mesh{Config: c, callers: callers.New(l, nil), links: links{logger: c.Logger, open: map[*link]struct{}{}}, outs: map[string]*out{}}
	for name, to := range c.Replicas {
		if name != c.Self {
			m.outs[name] = m.newOut(name, to)
		}
	}
	return m, nil
}

// Start takes the sockets and serves, until Close. etcd must not run before.
func (m *Mesh) Start() error {
	if err := os.MkdirAll(m.Dir, 0o700); err != nil {
		return err
	}
	if err := os.Chdir(m.Dir); err != nil { // etcd takes the names of sockets from here
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	for name, o := range m.outs {
		if err := os.Remove(socket(name)); err != nil && !os.IsNotExist(err) { // of a process that was killed
			return err
		}
		l, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket(name))
		if err != nil {
			return fmt.Errorf("listen on %s in %s: %w", socket(name), m.Dir, err)
		}
		m.serve(&http.Server{Handler: o.handler(), ReadHeaderTimeout: connect, ErrorLog: m.quietly()}, l, "")
	}
	m.serve(m.server(), &accepted{m.callers, &m.links}, "tls")
	m.running.Go(func() {
		m.look(ctx, func() {
			m.Refresh(ctx)
			m.links.verify()
		})
	})
	for _, o := range m.outs {
		m.running.Go(func() { m.look(ctx, func() { o.follow(ctx) }) })
	}
	return nil
}

func (m *Mesh) serve(s *http.Server, l net.Listener, over string) {
	m.servers = append(m.servers, s)
	m.running.Go(func() {
		if over == "tls" {
			_ = s.ServeTLS(l, "", "")
		} else {
			_ = s.Serve(l)
		}
	})
}

// quietly is for what the other end of a connection may cause as often as it likes.
func (m *Mesh) quietly() *log.Logger { return slog.NewLogLogger(m.Logger.Handler(), slog.LevelDebug) }

// Serve hands what comes in from now on to etcd.
func (m *Mesh) Serve(h http.Handler) { m.inner.Store(&h) }

// Close ends all, and gives the port back.
func (m *Mesh) Close() {
	if m.stop != nil {
		m.stop()
	}
	_ = m.callers.Close()
	for _, s := range m.servers {
		_ = s.Close()
	}
	m.running.Wait()
	for _, o := range m.outs {
		o.now().transport.CloseIdleConnections()
	}
}

// look does something now, when something has changed, and every few seconds.
func (m *Mesh) look(ctx context.Context, do func()) {
	tick := m.Clock.NewTicker(lookEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		changes := m.Changes()
		do()
		wake, woken := context.WithCancel(ctx)
		for _, c := range changes {
			m.running.Go(func() {
				select {
				case <-c:
					woken()
				case <-wake.Done():
				}
			})
		}
		select {
		case <-wake.Done():
		case <-tick.C():
		}
		woken()
	}
}
