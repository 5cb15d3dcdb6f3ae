package hub

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/offline/writes"
)

// class is a class of traffic to the cloud. Each has connections of its own, so that bulk never delays a heartbeat and
// bytes can be counted by class.
type class string

const (
	classPool      class = "pool"      // what the pool has one copy of: feeds of relays, API discovery
	classNode      class = "node"      // requests of the node's clients
	classHeartbeat class = "heartbeat" // the Lease of this node, and those that a leader forwards
	classControl   class = "control"   // probes, and reviews of this node
)

// poolWindow bounds what a stream of class pool has under way. What was sent for a watch that is over still takes its time of a thin link.
// A link of 10 Mbit/s and 200 ms is kept busy by it.
const poolWindow = 256 << 10

// narrowWindow is the same of a stream that is left before its end: all that is under way then is paid for nothing.
const narrowWindow = 32 << 10

var classes = []class{classPool, classNode, classHeartbeat, classControl}

// credential is whose certificate a connection carries.
type credential uint8

const (
	asCaller    credential = iota // nobody's
	asHub                         // of this node
	asForwarder                   // of whoever forwards heartbeats of this pool
	asNobody                      // nobody's, for requests without a token
	asUnproven                    // nobody's, for tokens of which nothing is known, see prover
)

// errNoServer says that no kube-apiserver is healthy.
var errNoServer = errors.New("no cloud server is healthy")

// cloud is all that the hub knows of the cluster's kube-apiservers.
type cloud struct {
	servers []*server
	current atomic.Int32 // index of the server in use: one at a time, connections are expensive
	doors   map[doorKey]*door
	meters  map[class]*meter
	resume  *sessions // of connections without the hub's certificate
	logger  *slog.Logger
	clock   clock.WithTicker
	doubted atomic.Pointer[time.Time] // since when somebody wanted to know of it, see patience
	gone    *link                     // it is away
	changed func()                    // the judgement of a server changed
}

// server is one kube-apiserver.
type server struct {
	name    string
	address map[class]*url.URL
	*checker
}

type doorKey struct {
	class class
	as    credential
	over  protocol
}

// protocol is what a door's connections speak.
type protocol uint8

const (
	overHTTP2  protocol = iota // or HTTP/1.1, where the server speaks no other
	overHTTP1                  // HTTP/1.1 only
	overNarrow                 // HTTP/2 with little under way, of class pool: for streams that are left early
)

type cloudConfig struct {
	net     Net
	servers map[class][]*url.URL
	policy  healthPolicy
	roots   *bundle
	cert    *pair
	forward *pair // nil: no door is asForwarder
	quantum bool  // post-quantum key exchange
	leads   bool  // this hub may feed a pool, which should not wait for it
	clock   clock.WithTicker
	logger  *slog.Logger
}

func newCloud(c cloudConfig) *cloud {
	k := &cloud{
		doors: map[doorKey]*door{}, meters: map[class]*meter{}, logger: c.logger, clock: c.clock,
		resume: newSessions(), changed: func() {},
	}
	k.gone = newLink(func() bool { return k.reach() != writes.Away })
	for _, cl := range classes {
		k.meters[cl] = &meter{}
		for _, as := range []credential{asCaller, asHub} {
			for _, over := range []protocol{overHTTP2, overHTTP1} {
				key := doorKey{cl, as, over}
				k.doors[key] = &door{cloud: k, class: cl, transport: newTransport(k.transport(c, key))}
			}
		}
	}
	for _, as := range []credential{asNobody, asUnproven} {
		key := doorKey{classNode, as, overHTTP1}
		k.doors[key] = &door{cloud: k, class: key.class, transport: newTransport(k.transport(c, key))}
	}
	narrow := doorKey{classPool, asHub, overNarrow}
	k.doors[narrow] = &door{cloud: k, class: narrow.class, transport: newTransport(k.transport(c, narrow))}
	if c.forward != nil {
		key := doorKey{classHeartbeat, asForwarder, overHTTP2}
		k.doors[key] = &door{cloud: k, class: key.class, transport: newTransport(k.transport(c, key))}
	}
	for i, u := range c.servers[classControl] {
		s := &server{name: u.Host, address: map[class]*url.URL{}}
		for _, cl := range classes {
			s.address[cl] = c.servers[cl][i]
		}
		s.checker = newChecker(u.Host, c.policy, c.clock, c.logger.With("at", "cloud"), func(ctx context.Context) error { return k.probe(ctx, s) })
		// A spare server is asked only while the one in use is in doubt.
		s.idle = func() bool {
			current := k.servers[k.current.Load()]
			j := current.judgement()
			return current != s && (j.Healthy || !j.Known)
		}
		s.grace = c.policy.interval
		s.checker.changed = func() { k.judged() }
		k.servers = append(k.servers, s)
	}
	return k
}

// transport returns what builds the transport of a door. Only doors of the hub itself know its certificate.
func (k *cloud) transport(c cloudConfig, key doorKey) func() *http.Transport {
	return func() *http.Transport {
		config := &tls.Config{
			RootCAs: c.roots.get(), MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		}
		if !c.quantum || key.class != classNode { // what is secret for longer than a token lives is in class node
			config.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384}
		}
		switch key.as { // a ticket would hold the certificate, and be longer than what resuming saves
		case asHub:
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.cert.get(), nil }
		case asForwarder:
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.forward.get(), nil }
		default:
			config.ClientSessionCache = k.resume
		}
		if key.over == overHTTP1 {
			config.NextProtos = []string{"http/1.1"}
		}
		t := transportConfig{
			dialer: &dialer{net: c.net, tls: config, meter: k.meters[key.class], heard: func(address string) func() { return k.hearing(key.class, address) }},
			http1:  key.over == overHTTP1, idlePing: 30 * time.Second, pingTimeout: 15 * time.Second,
		}
		switch key.as {
		case asCaller:
			t.window = receiveBuffer // of a caller that reads slowly
		case asNobody:
			t.connections = maxAnonymousConnections
		case asUnproven:
			t.connections = maxProofConnections
		}
		switch key.class {
		case classPool:
			if t.window = poolWindow; key.over == overNarrow {
				t.window = narrowWindow
			}
			t.idlePing, t.pingTimeout = 15*time.Second, 5*time.Second // bookmarks come sooner: a ping is rare
			if c.leads {
				t.idlePing = silence / 2
			}
		case classNode: // a ping spares the probe that would be due, and is half as long
			t.idlePing = max(c.policy.interval-c.policy.timeout, c.policy.interval/2)
		}
		return t.build()
	}
}

// hearing returns what notes signs of life from an address: nil if it is not that of exactly one server.
func (k *cloud) hearing(cl class, address string) (heard func()) {
	for _, s := range k.servers {
		u := s.address[cl]
		if a := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443")); a != address {
			continue
		}
		if heard != nil {
			return nil
		}
		heard = s.heard
	}
	return heard
}

// run probes the servers until ctx ends.
func (k *cloud) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, s := range k.servers {
		g.Go(func() error { return s.run(ctx) })
	}
	return g.Wait()
}

// probe asks for /readyz. Any answer of a server that proved its name by certificate shows that the link and the
// server work, also 401, 403 and 429; only 500 and more mean that it cannot serve. It asks with the hub's certificate:
// kube-apiserver closes HTTP/2 connections that carry anonymous requests, and handshakes cost more than anything else here.
func (k *cloud) probe(ctx context.Context, s *server) error {
	u := *s.address[classControl]
	u.Path = "/readyz"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", userAgent)
	resp, err := k.doors[doorKey{classControl, asHub, overHTTP2}].transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	if resp.StatusCode >= 500 {
		return fmt.Errorf("GET /readyz: %s", resp.Status)
	}
	return nil
}

// judged follows a change of a judgement: it picks the server in use and wakes probes of the others.
func (k *cloud) judged() {
	current := k.servers[k.current.Load()]
	if !current.ok() {
		for i, s := range k.servers {
			if s.ok() {
				k.current.Store(int32(i))
				s.kick() // what is known of it may be old
				k.logger.Info("another cloud server is used from now on", "server", s.name, "instead-of", current.name)
				break
			}
			if s != current {
				s.kick()
			}
		}
	}
	k.gone.look()
	k.changed()
}

// want says within what time somebody has to know whether there is a cloud; zero: nobody has to.
func (k *cloud) want(within time.Duration) { k.servers[k.current.Load()].want(within) }

// feeds says whether relays are fed from the cloud.
func (k *cloud) feeds(yes bool) {
	for _, s := range k.servers {
		s.feeds(yes)
	}
}

// lastHeard is when the server in use gave its last sign of life.
func (k *cloud) lastHeard() time.Time { return k.servers[k.current.Load()].lastHeard() }

// ask makes the server in use give a sign of life now, if there is one.
func (k *cloud) ask() { k.servers[k.current.Load()].kick() }

// healthy tells whether any server is.
func (k *cloud) healthy() bool {
	return slices.ContainsFunc(k.servers, func(s *server) bool { return s.ok() })
}

// reach tells whether the cloud can be reached, as far as is known.
func (k *cloud) reach() writes.Reach {
	switch {
	case k.healthy():
		return writes.Here
	case len(k.candidates()) == 0:
		return writes.Away
	}
	return writes.Unknown
}

// unknown tells whether nothing is known of the cloud, and then asks it.
func (k *cloud) unknown() bool {
	if k.reach() != writes.Unknown {
		return false
	}
	now := k.clock.Now()
	k.doubted.CompareAndSwap(nil, &now)
	k.ask()
	return true
}

// patience is how long a read of which the authorization may have waited already still waits for a cloud of which nothing is known: connectPatience since
// the first wanted to know.
func (k *cloud) patience() time.Duration {
	since := k.doubted.Load()
	if since == nil {
		return connectPatience
	}
	return max(0, connectPatience-k.clock.Since(*since))
}

// awayBy tells whether a request failed because the cloud is away: it is judged to be, or nobody has judged it yet and there was no connection. A failure
// alone shows nothing: callers can bring it about.
func (k *cloud) awayBy(err error) bool {
	switch k.reach() {
	case writes.Away:
		return true
	case writes.Here:
		return false
	}
	var connect *connectError
	return errors.Is(err, errNoServer) || errors.As(err, &connect)
}

// candidates are the servers worth a try, best first: the one in use, other healthy ones, those not judged yet.
func (k *cloud) candidates() []*server {
	current := k.servers[k.current.Load()]
	var first, second, third []*server
	for _, s := range k.servers {
		switch j := s.judgement(); {
		case s == current && (j.Healthy || !j.Known):
			first = append(first, s)
		case j.Healthy:
			second = append(second, s)
		case !j.Known:
			third = append(third, s)
		}
	}
	return append(append(first, second...), third...)
}

// follow calls a function after each change of a judgement, beside those that do already. It is for the time before run.
func (k *cloud) follow(f func()) {
	before := k.changed
	k.changed = func() { before(); f() }
}

// renew follows a change of credentials.
func (k *cloud) renew() {
	k.resume.forget()
	for _, d := range k.doors {
		d.transport.renew()
	}
}

func (k *cloud) close() {
	for _, d := range k.doors {
		d.transport.close()
	}
}

// door is the way to the cloud for one class and identity: an http.RoundTripper that picks the server.
type door struct {
	cloud     *cloud
	class     class
	transport *transport
}

// RoundTrip sends a request to a server that is worth a try; scheme and host of its URL do not matter. Only if no connection comes
// about, so that nothing was sent, the next server is tried.
func (d *door) RoundTrip(req *http.Request) (*http.Response, error) {
	servers := d.cloud.candidates()
	if len(servers) == 0 {
		closeBody(req)
		return nil, errNoServer
	}
	var err error
	for _, s := range servers {
		var resp *http.Response
		if resp, err = d.at(s, req); err == nil {
			return resp, nil
		}
		var connect *connectError
		if !errors.As(err, &connect) || req.Context().Err() != nil {
			break
		}
		s.kick()
	}
	closeBody(req)
	return nil, err
}

// at sends a request to one server.
func (d *door) at(s *server, req *http.Request) (*http.Response, error) {
	if isLapsed(req.Context()) {
		return nil, &connectError{s.name, errLapsed}
	}
	out := req.WithContext(req.Context())
	u := *req.URL
	u.Scheme, u.Host = "https", s.address[d.class].Host
	out.URL, out.Host = &u, ""
	resp, err := d.transport.RoundTrip(out)
	if err == nil {
		s.answered(resp.StatusCode)
	}
	return resp, err
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// route picks the kind of connection for a request: HTTP/1.1 for upgrades, and for requests without a token, because
// kube-apiserver closes the HTTP/2 connection that carries one (its mitigation of HTTP/2 floods), under the feet of others.
type route struct {
	http2, http1 http.RoundTripper
	nobody       http.RoundTripper // for requests without a token; nil: the hub's certificate stands for one
}

// RoundTrip implements http.RoundTripper.
func (r route) RoundTrip(req *http.Request) (*http.Response, error) {
	switch {
	case r.nobody != nil && !hasToken(req.Header):
		return r.nobody.RoundTrip(req)
	case len(req.Header["Upgrade"]) > 0:
		return r.http1.RoundTrip(req)
	}
	return r.http2.RoundTrip(req)
}
