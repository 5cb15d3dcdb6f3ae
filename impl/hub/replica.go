package hub

import (
	"cmp"
	"context"
	"crypto/tls"
	"hash/fnv"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/source"
)

// homeAfter is how long the replica that a hub prefers has to be ready before the hub goes back to it. Were it for ever, all
// hubs would be at one replica once each of the others has been restarted.
const homeAfter = time.Minute

// staleLooks is how many probes in a row have to find that a replica serves and is not fresh before the hub goes to one that is.
const staleLooks = 2

// replica is one replica of the pool's coordinator as this hub reaches it. There may be one, or three.
type replica struct {
	url       *url.URL
	transport *transport
	connect   func(context.Context) (net.Conn, error) // one of its own, over which HTTP/1.1 is spoken
	upstream  *source.Upstream
	resume    *sessions
}

// use is the time during which a hub uses one replica.
type use struct {
	*replica
	left context.Context // ends when the hub goes to another one
	end  context.CancelFunc
}

// coordinatorConfig is what a coordinator is made of.
type coordinatorConfig struct {
	net     Net
	servers []*url.URL
	node    string
	roots   *bundle
	cert    *pair
	policy  healthPolicy
	onBytes func(int) // of what feeds relays
	clock   clock.WithTicker
	logger  *slog.Logger
}

// newCoordinator spreads hubs over the replicas by the names of their nodes.
func newCoordinator(cfg coordinatorConfig) *coordinator {
	c := &coordinator{policy: cfg.policy, clock: cfg.clock, logger: cfg.logger, leads: func() bool { return false }, moved: func() {}, address: func() string { return "" }}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(cfg.node))
	first := int(sum.Sum32() % uint32(len(cfg.servers)))
	for i := range cfg.servers {
		c.replicas = append(c.replicas, newReplica(cfg, cfg.servers[(first+i)%len(cfg.servers)], c))
	}
	c.using = newUse(c.replicas[0])
	return c
}

func newReplica(cfg coordinatorConfig, u *url.URL, c *coordinator) *replica {
	r := &replica{url: u, resume: newSessions()}
	by := func(protocol string) *dialer {
		return &dialer{net: &notingNet{cfg.net, &c.from}, meter: &c.meter, tls: &tls.Config{
			RootCAs: cfg.roots.get(), MinVersion: tls.VersionTLS13, NextProtos: []string{protocol}, ClientSessionCache: r.resume,
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cfg.cert.get(), nil },
		}}
	}
	r.transport = newTransport(func() *http.Transport {
		// Inside the pool bytes are cheap, and a dead coordinator should be noticed soon.
		return transportConfig{dialer: by("h2"), idlePing: 3 * time.Second, pingTimeout: 3 * time.Second}.build()
	})
	r.connect = func(ctx context.Context) (net.Conn, error) {
		return by("http/1.1").connect(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443")))
	}
	r.upstream = coordinatorUpstream(r, cfg.onBytes)
	return r
}

// waits opens a connection to the replica that is used now, for as long as it is. See impl/reverse.
func (c *coordinator) waits(ctx context.Context) (net.Conn, context.Context, error) {
	u := c.inUse()
	conn, err := u.connect(ctx)
	return conn, u.left, err
}

// soon finds out that the machine at the other end of a silent connection is gone.
func soon() net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}
}

// notingNet notes where connections come from.
type notingNet struct {
	Net
	from *atomic.Pointer[string]
}

func (n *notingNet) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := n.Net.DialContext(ctx, network, address)
	if err == nil {
		if t, ok := c.(interface {
			SetKeepAliveConfig(net.KeepAliveConfig) error
		}); ok {
			_ = t.SetKeepAliveConfig(soon())
		}
		if host, _, err := net.SplitHostPort(c.LocalAddr().String()); err == nil {
			n.from.Store(&host)
		}
	}
	return c, err
}

func newUse(r *replica) *use {
	left, end := context.WithCancel(context.Background())
	return &use{r, left, end}
}

// inUse is the replica that is used now.
func (c *coordinator) inUse() *use {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.using
}

// with returns the replica that is used now and a context that ends when another is.
func (c *coordinator) with(ctx context.Context) (*replica, context.Context, context.CancelFunc) {
	u := c.inUse()
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(u.left, cancel)
	return u.replica, ctx, func() {
		stop()
		cancel()
	}
}

func (c *coordinator) renew() {
	for _, r := range c.replicas {
		r.resume.forget()
		r.transport.renew()
	}
}

func (c *coordinator) close() {
	c.inUse().end()
	for _, r := range c.replicas {
		r.transport.close()
	}
}

// standing is how well a replica stands.
type standing int

const (
	down    standing = iota
	serving          // Leases can be read and written
	ready            // and what it copies is fresh
)

// finding is what a probe of a replica found.
type finding struct {
	*replica
	standing
	err error // of down
}

// probe asks a replica how it stands.
func (r *replica) probe(ctx context.Context) finding {
	code, err := r.do(ctx, http.MethodGet, "/readyz", nil, nil)
	if err == nil {
		return finding{r, ready, nil}
	}
	if code != 0 {
		_, err = r.do(ctx, http.MethodGet, "/healthz", nil, nil)
	}
	if err != nil {
		return finding{r, down, err}
	}
	return finding{r, serving, nil}
}

// healthz tells whether any replica serves, and goes to another one if that stands better than the one in use. The
// one in use has the first word; others are asked as soon as it fails, or takes long.
func (c *coordinator) healthz(ctx context.Context) error {
	now := c.inUse().replica
	if len(c.replicas) == 1 {
		_, err := now.do(ctx, http.MethodGet, "/healthz", nil, nil)
		return err
	}
	best := c.survey(ctx, now)
	if best.replica == now && best.standing == ready {
		c.stale = 0
	}
	if best.standing == down {
		return best.err
	}
	if best.replica == now {
		best = c.home(ctx, best)
	}
	if best.replica != now {
		c.move(best)
	}
	return nil
}

// survey finds the replica that stands best; of equals, the one in use.
func (c *coordinator) survey(ctx context.Context, now *replica) finding {
	began := c.clock.Now()
	ctx, cancel := context.WithCancel(ctx)
	answers := make(chan finding, len(c.replicas))
	waiting := 0
	ask := func(r *replica) {
		waiting++
		go func() { answers <- r.probe(ctx) }()
	}
	defer func() {
		cancel()
		for ; waiting > 0; waiting-- {
			<-answers
		}
	}()
	ask(now)
	hedge := c.clock.NewTimer(c.policy.timeout / 2)
	defer hedge.Stop()
	late := hedge.C()
	own, best := finding{replica: now, err: context.DeadlineExceeded}, finding{replica: now}
	for waiting > 0 {
		askOthers := false
		select {
		case v := <-answers:
			waiting--
			c.logger.Debug("probe of a replica", "server", v.url.Host, "standing", v.standing, "err", v.err, "took", c.clock.Since(began))
			if v.replica == now {
				own = v
				askOthers = late != nil
			}
			if v.standing > best.standing || v.standing == best.standing && v.replica == now {
				best = v
			}
		case <-late:
			askOthers = true
		}
		if own.standing == ready || own.standing == serving && c.stays() {
			return own
		}
		if best.standing == ready {
			return best
		}
		if askOthers {
			late = nil
			for _, r := range c.replicas {
				if r != now {
					ask(r)
				}
			}
		}
	}
	if best.standing == down {
		return own
	}
	return best
}

// stays tells whether a replica is kept that serves and is not fresh. A leader makes it fresh. For others, fresh may be a moment away, as after a
// start; that they looked is counted.
func (c *coordinator) stays() bool {
	if c.leads() {
		return true
	}
	c.stale++
	return c.stale < staleLooks
}

// home goes back to the replica that this hub prefers once that has been ready for some time. A leader stays where it is.
func (c *coordinator) home(ctx context.Context, now finding) finding {
	if now.replica == c.replicas[0] || c.leads() {
		c.homeSeen = time.Time{}
		return now
	}
	v := c.replicas[0].probe(ctx)
	switch at := c.clock.Now(); {
	case v.standing != ready:
		c.homeSeen = time.Time{}
	case c.homeSeen.IsZero():
		c.homeSeen = at
	case at.Sub(c.homeSeen) > homeAfter:
		return v
	}
	return now
}

// move uses another replica from now on: what runs at the one before ends.
func (c *coordinator) move(to finding) {
	c.mu.Lock()
	before := c.using
	c.using = newUse(to.replica)
	c.mu.Unlock()
	c.homeSeen, c.stale = time.Time{}, 0
	c.logger.Info("another replica of the coordinator is used", "server", to.url.Host, "was", before.url.Host, "ready", to.standing == ready)
	before.end()
	c.moved()
}

// name is what logs call the coordinator: where its replicas are.
func (c *coordinator) name() string {
	hosts := make([]string, 0, len(c.replicas))
	for _, r := range c.replicas {
		hosts = append(hosts, r.url.Host)
	}
	return strings.Join(hosts, ",")
}
