package mesh

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"

	"github.com/weir-edge/weir/impl/coordinator/callers"
)

// Mesh is one replica's part of it.
type Mesh struct {
	Config
	links *links
	in    *in
	outs  map[string]*out // by name of the other replica

	running sync.WaitGroup
	stop    context.CancelFunc // nil: it has not started
	servers []*http.Server
}

// New takes the port.
func New(c Config) (*Mesh, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", c.Listen)
	if err != nil {
		return nil, err
	}
	m := &Mesh{Config: c, links: &links{logger: c.Logger, open: map[*link]struct{}{}}, outs: map[string]*out{}}
	m.in = &in{Config: &m.Config, callers: callers.New(l, nil)}
	for name, to := range c.Replicas {
		if name != c.Self {
			m.outs[name] = newOut(&m.Config, m.links, name, to)
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
	m.serve(m.in.server(), &accepted{m.in.callers, m.links}, "tls")
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

// Serve hands what comes in from now on to etcd.
func (m *Mesh) Serve(h http.Handler) { m.in.etcd.Store(&h) }

// Close ends all, and gives the port back.
func (m *Mesh) Close() {
	if m.stop != nil {
		m.stop()
	}
	_ = m.in.callers.Close()
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

// Meshed tells why not all other replicas are met over a mesh, now. Those of before let their etcds do TLS.
func (m *Mesh) Meshed(ctx context.Context) error {
	for name, o := range m.outs {
		if _, err := o.now().ask(ctx); err != nil {
			return fmt.Errorf("replica %s: %w", name, err)
		}
	}
	return nil
}
