package uplink

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
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

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/lease"
	"github.com/weir-edge/weir/impl/limit"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/tunnel"
)

// Cloud is all that the hub knows of the cluster's kube-apiservers.
type Cloud struct {
	servers []*server
	current atomic.Int32 // index of the server in use: one at a time, connections are expensive
	doors   map[doorKey]*door
	meters  map[Class]*Meter
	resume  *Sessions   // of connections without a certificate
	hub     Certificate // of ways AsHub
	forward Certificate
	logger  *slog.Logger
	clock   clock.WithTicker
	policy  member.Probing
	node    string
	time    *pki.Proven
	doubted atomic.Pointer[time.Time] // since when somebody wanted to know of it, see Patience
	gone    *Link                     // it is away
	broken  atomic.Pointer[time.Time] // when it gave no connection, for the last time
	follow  []func()                  // told of changes
	late    atomic.Bool

	kubeconfig *Kubeconfig // where it is; nil: where it was said to be
	fixed      bool        // its servers are not those of the kubeconfig
	proxy      tunnel.Choice
}

// CloudConfig is what a Cloud is made of.
type CloudConfig struct {
	Net     Dials
	Servers map[Class][]*url.URL // none: the one of Kubeconfig
	// Kubeconfig says where the cloud is and how it is reached; nil: Servers and Proxy do.
	Kubeconfig *Kubeconfig
	Proxy      tunnel.Choice // of the environment; nil: no server is called through one
	Policy     member.Probing
	NodeName   string // whose Lease reports whether a server serves that is not ready
	Roots      *Bundle
	Node       Certificate // of ways AsNode
	Hub        Certificate // of ways AsHub
	Forward    Certificate // nil: no way is AsForwarder
	// NodeShows and HubShows are what requests AsNode and AsHub show; nil: nothing.
	NodeShows, HubShows Bearer
	Leads               bool // this hub may feed a pool, which should not wait for it
	// Rests reports whether the hub itself asks the cloud for nothing, so that its own connection has ended; nil: never.
	Rests  func() bool
	Time   *pki.Proven // by which the cloud's certificate is judged; it hears the cloud
	Clock  clock.WithTicker
	Logger *slog.Logger
}

// NewCloud makes what Run and requests then use.
func NewCloud(c CloudConfig) *Cloud {
	if c.Time == nil {
		c.Time = pki.OpenProven("", c.Clock, c.Logger)
	}
	k := &Cloud{
		policy: c.Policy, node: c.NodeName, time: c.Time, doors: map[doorKey]*door{}, meters: map[Class]*Meter{},
		logger: c.Logger, clock: c.Clock, resume: NewSessions(), hub: c.Hub, forward: c.Forward,
		kubeconfig: c.Kubeconfig, fixed: len(c.Servers[ClassControl]) > 0, proxy: c.Proxy,
	}
	k.gone = NewLink(func() bool { return k.Reach() != member.CloudAway })
	k.breaks()
	open := func(key doorKey) {
		shows := map[Credential]Bearer{AsNode: c.NodeShows, AsHub: c.HubShows}[key.as]
		k.doors[key] = &door{
			candidates: k.candidates, class: key.class, transport: NewTransport(k.transport(c, key)), shows: shows,
		}
	}
	for _, cl := range Counted {
		k.meters[cl] = &Meter{}
	}
	for _, cl := range Classes {
		for _, as := range []Credential{AsCaller, AsNode, AsHub} {
			open(doorKey{cl, as, overHTTP2})
			open(doorKey{cl, as, overHTTP1})
		}
	}
	open(doorKey{ClassNode, asNobody, overHTTP1})
	open(doorKey{ClassNode, asUnproven, overHTTP1})
	open(doorKey{ClassNode, AsCaller, overSilent})
	open(doorKey{ClassPool, AsHub, overNarrow})
	if c.Forward != nil {
		open(doorKey{ClassHeartbeat, AsForwarder, overHTTP2})
	}
	for i := range max(len(c.Servers[ClassControl]), 1) {
		s := &server{}
		address := map[Class]*url.URL{}
		for _, cl := range Classes {
			if len(c.Servers[cl]) > 0 {
				address[cl] = c.Servers[cl][i]
			}
		}
		s.address.Store(&address)
		s.Checker = NewChecker(CheckerConfig{
			Named: s.name, Policy: c.Policy, Clock: c.Clock, Logger: c.Logger.With("at", "cloud"), grace: c.Policy.Interval,
			lone:    len(c.Servers[ClassControl]) < 2,
			Changed: k.judged,
			Probe:   func(ctx context.Context) error { return k.probe(ctx, s, c.Rests) },
			idle: func() bool { // a spare server is asked only while the one in use is in doubt
				current := k.servers[k.current.Load()]
				j := current.Judgement()
				return current != s && (j.Ready() || !j.Known)
			},
		})
		k.servers = append(k.servers, s)
	}
	k.place()
	return k
}

// place follows where the kubeconfig says that the cloud is.
func (k *Cloud) place() {
	server, _, _ := k.kubeconfig.now()
	s := k.servers[0]
	former := s.at(ClassControl)
	if server == nil || len(k.servers) > 1 || k.fixed || former != nil && former.Host == server.Host {
		return
	}
	address := map[Class]*url.URL{}
	for _, cl := range Classes {
		address[cl] = server
	}
	s.address.Store(&address)
	if former != nil {
		k.logger.Info("the cloud is at another address from now on", "server", server.Host, "instead-of", former.Host)
		s.Kick()
	}
}

// verify judges who answers as the cloud.
func (c CloudConfig) verify(host string, chain []*x509.Certificate) error {
	return c.Time.Verify(chain, x509.VerifyOptions{
		Roots: c.Roots.Get(), DNSName: host, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// transport returns what builds the transport of a door. Only doors of the hub itself know a certificate.
func (k *Cloud) transport(c CloudConfig, key doorKey) func() *http.Transport {
	return func() *http.Transport {
		config := &tls.Config{
			RootCAs: c.Roots.Get(), MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		}
		// What is secret for longer than a token lives is in class node: its keys are of a kind that a quantum computer
		// cannot recover either, unless GODEBUG has tlsmlkem=0. The others save 2.3 kB a connection.
		if key.class != ClassNode {
			config.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384}
		}
		switch key.as { // a ticket would hold the certificate, and be longer than what resuming saves
		case AsNode:
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return Held(c.Node) }
		case AsHub:
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return Held(c.Hub) }
		case AsForwarder:
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return Held(c.Forward) }
		default:
			config.ClientSessionCache = k.resume
		}
		if key.over == overHTTP1 {
			config.NextProtos = []string{"http/1.1"}
		}
		_, name, _ := c.Kubeconfig.now()
		t := TransportConfig{
			Dialer: &Dialer{
				Net: c.Net, TLS: config, ServerName: name, Proxy: k.through(), Verify: c.verify, Meter: k.meters[key.class],
				broken: k.breaks,
				heard:  func(address string) func() { return k.hearing(key.class, address) },
			},
			http1: key.over == overHTTP1, IdlePing: 30 * time.Second, PingTimeout: 15 * time.Second,
		}
		switch key.as {
		case AsCaller:
			t.window = limit.ReceiveBuffer // of a caller that reads slowly
			t.idle = serverIdle
		case asNobody:
			t.connections = limit.MaxAnonymousConnections
		case asUnproven:
			t.connections = limit.MaxProofConnections
		}
		switch key.class {
		case ClassPool:
			if t.window, t.idle = poolWindow, poolIdle; key.over == overNarrow {
				t.window, t.idle = narrowWindow, 0 // a leader comes back to it
			}
			t.IdlePing, t.PingTimeout = 15*time.Second, 5*time.Second // bookmarks come sooner: a ping is rare
			if c.Leads {
				t.IdlePing = member.Silent / 2
			}
		case ClassHeartbeat, ClassControl:
			t.idle = serverIdle
		case ClassNode: // a ping spares the probe that would be due, and is half as long
			t.IdlePing = lasting*c.Policy.Interval - c.Policy.Timeout
		}
		if key.over == overSilent {
			t.IdlePing, t.late = reviewPing, reviewLate
		}
		return t.Build()
	}
}

// through is by what proxy the cloud is called: that of the kubeconfig, else that of the environment.
func (k *Cloud) through() tunnel.Choice {
	if _, _, proxy := k.kubeconfig.now(); proxy != nil {
		return tunnel.Always(proxy)
	}
	return k.proxy
}

// hearing returns what notes signs of life from an address: nil if it is not that of exactly one server.
func (k *Cloud) hearing(cl Class, address string) (heard func()) {
	for _, s := range k.servers {
		u := s.at(cl)
		if u == nil {
			continue
		}
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

// Run probes the servers until ctx ends.
func (k *Cloud) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, s := range k.servers {
		g.Go(func() error { return s.Run(ctx) })
	}
	return g.Wait()
}

// probe asks a server whether it is ready, and whether it serves if it does not say yes. What is answered counts: one
// hook of kube-apiserver that is down, or that hangs, makes /readyz fail while everything else is served. So the second
// question is the read of this node's Lease, over the connections and under the identity of heartbeats. kube-apiserver
// reads it from etcd.
//
// While the hub itself asks the cloud for nothing, a server that is in good standing is asked over the node's
// connection first: that is open, and a handshake would cost forty times the question.
func (k *Cloud) probe(ctx context.Context, s *server, rests func() bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if rests != nil && rests() && s.Judgement().Ready() {
		brief, over := context.WithTimeout(ctx, k.policy.Limit/2)
		err := k.question(brief, s, ClassNode, AsNode, "/readyz")
		if over(); err == nil {
			return nil
		}
	}
	ready, serves := make(chan error, 1), make(chan error, 1)
	go func() { ready <- k.question(ctx, s, ClassControl, AsHub, "/readyz") }()
	ask := func() {
		err := k.question(ctx, s, ClassHeartbeat, AsNode, lease.Path+"/"+k.node)
		if Unsent(err) { // the node has nothing to show: who is refused has an answer as well
			err = k.question(ctx, s, ClassControl, AsHub, lease.Path+"/"+k.node)
		}
		serves <- err
	}
	timer := time.NewTimer(k.policy.Limit / 2)
	defer timer.Stop()
	var unready, silent error
	for asked := false; ; {
		select {
		case unready = <-ready:
			if unready == nil || Unsent(unready) {
				return unready
			}
		case silent = <-serves:
			if silent == nil {
				return &UnreadyError{cmp.Or(unready, errNoAnswer)}
			}
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if unready != nil && silent != nil {
			return errors.Join(unready, silent)
		}
		if !asked {
			asked = true
			go ask()
		}
	}
}

// errNoAnswer is why a server counts as not ready that has not said yet whether it is.
var errNoAnswer = errors.New("GET /readyz: no answer")

// question asks a server something small. Any answer of a server that proved its name by certificate shows that the
// link and the server work, also 401, 403 and 429; 500 and more mean that it cannot serve this. It asks with a
// certificate: kube-apiserver closes HTTP/2 connections that carry anonymous requests, and handshakes cost more than
// anything else here.
func (k *Cloud) question(ctx context.Context, s *server, class Class, as Credential, path string) error {
	at := s.at(class)
	if at == nil {
		return &connectError{s.name(), errNowhere}
	}
	u := *at
	u.Path = path
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", contract.UserAgent)
	d := k.doors[doorKey{class, as, overHTTP2}]
	// The cloud is there also for a hub that is nobody: its callers have tokens.
	if as == AsHub && k.hub != nil && k.hub.Get() == nil && d.shows == nil {
		d = k.doors[doorKey{class, AsCaller, overHTTP1}]
	}
	if d.shows != nil { // without it the cloud answers 401, which is an answer
		if token, err := d.shows.Token(ctx); err == nil && token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
	}
	resp, err := d.transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	k.time.Hear(resp.Header.Get("Date"))
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	if resp.StatusCode >= http.StatusInternalServerError {
		return fmt.Errorf("GET %s: %s", path, resp.Status)
	}
	return nil
}

// judged follows a change of a judgement: it picks the server in use and wakes probes of the others.
func (k *Cloud) judged() {
	current := k.servers[k.current.Load()]
	if j := current.Judgement(); !j.Ready() {
		better := slices.IndexFunc(k.servers, func(s *server) bool { return s.Judgement().Ready() })
		if better < 0 && !j.Healthy {
			better = slices.IndexFunc(k.servers, func(s *server) bool { return s.OK() })
		}
		if better >= 0 {
			s := k.servers[better]
			k.current.Store(int32(better))
			s.Kick() // what is known of it may be old
			k.logger.Info("another cloud server is used from now on", "server", s.name(), "instead-of", current.name())
		} else {
			for _, s := range k.servers {
				if s != current {
					s.Kick()
				}
			}
		}
	}
	k.gone.Look()
	for _, f := range k.follow {
		f()
	}
}

// Follow calls a function after each change of a judgement. It is for the time before Run.
func (k *Cloud) Follow(f func()) { k.follow = append(k.follow, f) }

// Want says within what time somebody has to know whether there is a cloud; zero: nobody has to.
func (k *Cloud) Want(within time.Duration) { k.servers[k.current.Load()].want(within) }

// Feeds says whether relays are fed from the cloud.
func (k *Cloud) Feeds(yes bool) {
	for _, s := range k.servers {
		s.feeds(yes)
	}
}

// LastHeard is when the server in use gave its last sign of life.
func (k *Cloud) LastHeard() time.Time { return k.servers[k.current.Load()].lastHeard() }

// breaks notes that there is no connection.
func (k *Cloud) breaks() {
	now := k.clock.Now()
	k.broken.Store(&now)
}

// Unbroken is for how long the cloud has given each connection that was wanted. A server that is killed gives none
// until it listens again. Over a balancer of several servers nothing is seen of that.
func (k *Cloud) Unbroken() time.Duration { return k.clock.Since(*k.broken.Load()) }

// Ask makes the server in use give a sign of life now, if there is one.
func (k *Cloud) Ask() { k.servers[k.current.Load()].Kick() }

// Healthy reports whether any server is.
func (k *Cloud) Healthy() bool {
	return slices.ContainsFunc(k.servers, func(s *server) bool { return s.OK() })
}

// Reach reports whether the cloud can be reached, as far as is known.
func (k *Cloud) Reach() member.Reach {
	switch {
	case k.Healthy():
		return member.CloudHere
	case len(k.candidates()) == 0:
		return member.CloudAway
	}
	return member.CloudUnknown
}

// IsAway reports whether the cloud is away, which is when each of its servers was judged and none is healthy, and gives
// a context that ends when that changes.
func (k *Cloud) IsAway() (yes bool, until context.Context) { return k.gone.State() }

// Unknown reports whether nothing is known of the cloud, and then asks it.
func (k *Cloud) Unknown() bool {
	if k.Reach() != member.CloudUnknown {
		return false
	}
	now := k.clock.Now()
	k.doubted.CompareAndSwap(nil, &now)
	k.Ask()
	return true
}

// AwayBy reports whether a request failed because the cloud is away: it is judged to be, or nobody has judged it yet
// and there was no connection. A failure alone shows nothing: callers can bring it about.
func (k *Cloud) AwayBy(err error) bool {
	switch k.Reach() {
	case member.CloudAway:
		return true
	case member.CloudHere:
		return false
	}
	return Unsent(err)
}

// candidates are the servers worth a try, best first: the one in use, other healthy ones, those not judged yet.
func (k *Cloud) candidates() []*server {
	current := k.servers[k.current.Load()]
	var first, second, third []*server
	for _, s := range k.servers {
		switch j := s.Judgement(); {
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

// Renew follows a change of credentials.
func (k *Cloud) Renew() {
	k.place()
	k.resume.Forget()
	for _, d := range k.doors {
		d.transport.Renew()
	}
}

// RenewAs follows a change of one certificate.
func (k *Cloud) RenewAs(as Credential) {
	for key, d := range k.doors {
		if key.as == as {
			d.transport.Renew()
		}
	}
}

// Sweep closes connections of before a change of credentials on which nothing runs any more.
func (k *Cloud) Sweep() {
	for _, d := range k.doors {
		d.transport.Sweep()
	}
}

// Close closes connections on which nothing runs.
func (k *Cloud) Close() {
	for _, d := range k.doors {
		d.transport.Close()
	}
}

// Way is the way of one class of traffic to the cloud, under one identity.
func (k *Cloud) Way(c Class, as Credential) http.RoundTripper {
	r := route{http2: k.doors[doorKey{c, as, overHTTP2}], http1: k.doors[doorKey{c, as, overHTTP1}]}
	if d := k.doors[doorKey{c, asNobody, overHTTP1}]; d != nil && as == AsCaller {
		r.nobody = d
	}
	return r
}

// NodePlace is where requests of class node go now as the node, and by what: it is another one after a change of server
// or credentials.
func (k *Cloud) NodePlace() any {
	return [2]any{k.current.Load(), k.doors[doorKey{ClassNode, AsNode, overHTTP2}].transport.current.Load()}
}

// Reviews is the way of questions about callers, each with the caller's own token, of which something is known.
func (k *Cloud) Reviews() http.RoundTripper {
	r := k.Way(ClassNode, AsCaller).(route)
	r.http2 = again{k.doors[doorKey{ClassNode, AsCaller, overSilent}]}
	return r
}

// again asks once more, over another connection, what was not answered in time.
type again struct{ *door }

// RoundTrip implements http.RoundTripper. A request may be sent twice, so it changes nothing.
func (a again) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := a.door.RoundTrip(req)
	var late net.Error
	if !errors.As(err, &late) || !late.Timeout() || Unsent(err) || req.Context().Err() != nil {
		return resp, err
	}
	a.transport.Renew()
	if req.Body != nil {
		if req.GetBody == nil {
			return nil, err
		}
		body, gone := req.GetBody()
		if gone != nil {
			return nil, err
		}
		req = req.WithContext(req.Context())
		req.Body = body
	}
	return a.door.RoundTrip(req)
}

// Prove is the way of questions about tokens of which nothing is known.
func (k *Cloud) Prove() http.RoundTripper { return k.doors[doorKey{ClassNode, asUnproven, overHTTP1}] }

// Streamed is how many bytes came over the streams of the relays.
func (k *Cloud) Streamed() int64 { return k.meters[ClassPool].read.Load() }

// Late says whether even the answer to a ping over these streams is late.
func (k *Cloud) Late(is bool) { k.late.Store(is) }

// Urgent is the way of small requests that must not wait for a server that is dead; nil: there is no such certificate.
func (k *Cloud) Urgent(as Credential) *Urgent {
	if d := k.doors[doorKey{ClassHeartbeat, as, overHTTP2}]; d != nil {
		u := &Urgent{door: d, calm: d, clock: k.clock}
		if as == AsForwarder {
			u.cert = k.forward
		} else {
			u.calm = k.doors[doorKey{ClassNode, as, overHTTP2}]
		}
		return u
	}
	return nil
}

// Bytes counts the connections of a class.
func (k *Cloud) Bytes(c Class) BytesStatus { return k.meters[c].Status() }

// ServerStatus is one kube-apiserver.
type ServerStatus struct {
	Server string `json:"server"`
	InUse  bool   `json:"inUse"`
	Proxy  string `json:"proxy,omitempty"` // through which it is called
	Judgement
}

// Status tells how the servers are.
func (k *Cloud) Status() (all []ServerStatus) {
	for i, s := range k.servers {
		all = append(all, ServerStatus{s.name(), int(k.current.Load()) == i, k.proxyOf(s), s.Judgement()})
	}
	return all
}

// proxyOf is through what proxy a server is called, for people; "": through none.
func (k *Cloud) proxyOf(s *server) string {
	choose, u := k.through(), s.at(ClassControl)
	if choose == nil || u == nil {
		return ""
	}
	switch proxy, err := choose(net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443"))); {
	case err != nil:
		return err.Error()
	case proxy != nil:
		return tunnel.Name(proxy)
	}
	return ""
}
