package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"sync"

	"github.com/weir-edge/weir/impl/coordinator/authz"
)

// Mesh is one replica's part of it.
type Mesh struct {
	MeshConfig
	links *links
	in    *in

	mu   sync.Mutex
	outs map[string]*out // by name of the other replica

	running sync.WaitGroup
	ctx     context.Context    // of what runs
	stop    context.CancelFunc // nil: it has not started
	servers []*http.Server
}

// NewMesh takes the port.
func NewMesh(c MeshConfig) (*Mesh, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", c.Listen)
	if err != nil {
		return nil, err
	}
	m := &Mesh{MeshConfig: c, links: &links{logger: c.Logger, open: map[*link]struct{}{}}, outs: map[string]*out{}}
	m.in = &in{MeshConfig: &m.MeshConfig, callers: authz.Listen(l, nil)}
	for name, to := range c.Replicas {
		if name != c.Self {
			m.outs[name] = newOut(&m.MeshConfig, m.links, name, to)
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
	m.ctx, m.stop = ctx, stop
	for _, o := range m.all() {
		if err := m.open(o); err != nil {
			return err
		}
	}
	m.serve(m.in.server(), &accepted{m.in.callers, m.links})
	m.running.Go(func() {
		m.look(ctx, func() {
			m.Refresh(ctx)
			m.links.verify()
		})
	})
	return nil
}

// all are the other replicas.
func (m *Mesh) all() []*out {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.outs))
}

// open takes the socket of another replica, and hands on what etcd asks of it, until the replica is left out or all
// ends.
func (m *Mesh) open(o *out) error {
	if err := os.Remove(socket(o.name)); err != nil && !os.IsNotExist(err) { // of a process that was killed
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(m.ctx, "unix", socket(o.name))
	if err != nil {
		return fmt.Errorf("listen on %s in %s: %w", socket(o.name), m.Dir, err)
	}
	ctx, stop := context.WithCancel(m.ctx)
	s := &http.Server{Handler: o.handler(), ReadHeaderTimeout: connect, ErrorLog: m.quietly()}
	o.close = func() {
		stop()
		_ = s.Close()
		o.now().transport.CloseIdleConnections()
	}
	m.running.Go(func() { _ = s.Serve(l) })
	m.running.Go(func() { m.look(ctx, func() { o.follow(ctx) }) })
	return nil
}

// Follow takes that the replicas are others, or are met elsewhere, from now on. This one is among them. A replica that
// is not is asked no more, and Config.NameOf is not to know its certificate. It is called after Start, by one at a
// time.
func (m *Mesh) Follow(replicas map[string]*url.URL) error {
	var failed []error
	var former []*out
	m.mu.Lock()
	for name, o := range m.outs {
		if to := replicas[name]; to == nil || *to != *o.to {
			former = append(former, o)
			delete(m.outs, name)
		}
	}
	m.mu.Unlock()
	for _, o := range former {
		o.close()
	}
	for name, to := range replicas {
		m.mu.Lock()
		known := name == m.Self || m.outs[name] != nil
		m.mu.Unlock()
		if known {
			continue
		}
		o := newOut(&m.MeshConfig, m.links, name, to)
		if err := m.open(o); err != nil { // it is tried again with the next change
			failed = append(failed, err)
			continue
		}
		m.mu.Lock()
		m.outs[name] = o
		m.mu.Unlock()
	}
	m.links.verify()
	return errors.Join(failed...)
}

func (m *Mesh) serve(s *http.Server, l net.Listener) {
	m.servers = append(m.servers, s)
	m.running.Go(func() { _ = s.ServeTLS(l, "", "") })
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
	for _, o := range m.all() {
		if o.close != nil {
			o.close()
		}
	}
	m.running.Wait()
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
	for _, o := range m.all() {
		if _, err := o.now().ask(ctx); err != nil {
			return fmt.Errorf("replica %s: %w", o.name, err)
		}
	}
	return nil
}
