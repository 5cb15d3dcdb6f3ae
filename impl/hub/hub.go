package hub

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/documents"
	"github.com/weir-edge/weir/impl/filter"
	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/offline/writes"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/role"
	"github.com/weir-edge/weir/impl/snapshot"
	"github.com/weir-edge/weir/impl/source"
)

// Hub is the one door of a node to the Kubernetes API. See the package comment.
type Hub struct {
	*settings
	clock   clock.WithTickerAndDelayedExecution
	metrics *metrics
	reload  *reloader

	serving  *pair
	clientCA *bundle // nil: client certificates are not asked for

	cloud    *cloud
	relays   []*relay.Relay
	moved    movement            // used by the pool's loop alone
	kept     *snapshot.Snapshots // nil: nothing is kept
	feeders  []*feeder
	sources  *sources
	front    *front
	pool     *pool     // nil: no coordinator
	poolDoor *poolDoor // likewise

	discovery *discovery
	shelter   *shelter        // nil: nothing is served without the cloud but by relays
	judge     *identity.Judge // of callers, while the cloud is away
	filters   *filter.Filters // nil: all see what the cloud shows

	secure, health, plain net.Listener
}

// New checks a configuration, reads the credentials and what was kept, and opens the ports; Run does the rest. A hub that was made must be run,
// or closed by Close.
func New(c Config) (*Hub, error) {
	s, err := c.check()
	if err != nil {
		return nil, err
	}
	h := &Hub{settings: s, clock: clock.RealClock{}, metrics: newMetrics(), moved: movement{}}
	h.reload = &reloader{clock: h.clock, logger: s.Logger, then: func() {}}
	if err := h.build(); err != nil {
		return nil, err
	}
	if err := h.keep(); err != nil {
		return nil, err
	}
	if err := h.buildFilters(); err != nil {
		h.Close()
		return nil, err
	}
	if err := h.listen(); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

func (h *Hub) build() error {
	var err error
	if h.serving, err = h.pair("--tls-cert-file", h.TLSCertFile, "--tls-private-key-file", h.TLSPrivateKeyFile); err != nil {
		return err
	}
	if h.ClientCAFile != "" {
		if h.clientCA, err = h.bundle("--client-ca-file", h.ClientCAFile); err != nil {
			return err
		}
	}
	roots, err := h.bundle("--cloud-ca-file", h.CloudCAFile)
	if err != nil {
		return err
	}
	cert, err := h.pair("--cloud-client-cert-file", h.CloudClientCertFile, "--cloud-client-key-file", h.CloudClientKeyFile)
	if err != nil {
		return err
	}
	var forward *pair
	if h.EnableCoordinator && h.DelegateClientCertFile != "" {
		if forward, err = h.pair("--delegate-client-cert-file", h.DelegateClientCertFile, "--delegate-client-key-file", h.DelegateClientKeyFile); err != nil {
			return err
		}
	}
	h.cloud = newCloud(cloudConfig{net: h.Net, servers: h.servers, policy: h.policy(), roots: roots, cert: cert, forward: forward, quantum: h.CloudPostQuantum, leads: h.EnableCoordinator, clock: h.clock, logger: h.Logger})
	if err := h.buildRelays(); err != nil {
		return err
	}
	h.buildFront()
	h.sources = &sources{feeding: h.cloud.feeds, feeders: h.feeders, cloud: cloudUpstream(h.cloud, h.metrics)}
	renew := []func(){h.cloud.renew}
	if h.EnableCoordinator {
		if err := h.buildPool(); err != nil {
			return err
		}
		renew = append(renew, h.pool.coordinator.renew)
	}
	h.reload.then = func() {
		if h.shelter != nil {
			defer h.shelter.writes.Renewing()()
		}
		for _, f := range renew {
			f()
		}
	}
	h.metrics.registry.MustRegister(newState(h), relay.NewCollector(h.relays...))
	return nil
}

func (h *Hub) buildRelays() error {
	for _, res := range h.resources {
		r, err := relay.New(relay.Config{
			Resource: res, RingBytes: h.RingBytes, MaxBytes: h.RelayMaxBytes, RingAge: h.RingAge, Clock: h.clock, Logger: h.Logger,
		})
		if err != nil {
			return err
		}
		f := &feeder{relay: r, resource: res.String(), clock: h.clock, looks: func() {}}
		f.Feeder, err = source.NewFeeder(source.Config{
			Relay: r, WatchTimeout: h.UpstreamWatchTimeout, Learned: h.learned, Judge: h.cloudAsJudge, Doubt: func(err error) { h.pool.doubt.told(res.String(), err) }, Denied: f.denied,
			Feeds: func() bool { return h.pool != nil && h.pool.snapshot().Role != role.Pending }, Clock: h.clock, Logger: h.Logger,
		})
		if err != nil {
			return err
		}
		h.relays = append(h.relays, r)
		h.feeders = append(h.feeders, f)
	}
	return nil
}

// cloudAsJudge is the cloud while it can be asked.
func (h *Hub) cloudAsJudge() *source.Upstream {
	if h.sources == nil || !h.cloud.healthy() {
		return nil
	}
	return h.sources.cloud
}

// learned follows another history of the cloud. What is kept of it for the time without it is of before, wherever this hub heard of that: a store that went
// on would take the truth for the word of a server that lags.
func (h *Hub) learned(number uint64, cloud bool) {
	if cloud {
		h.overrule(number)
		return
	}
	h.front.consistency.reset()
	if h.shelter != nil {
		h.shelter.history(number)
	}
}

// overrule tells all feeders which history the cloud is in. One may be able to prove what another cannot.
func (h *Hub) overrule(number uint64) {
	if h.shelter != nil {
		h.shelter.history(number)
	}
	h.front.consistency.reset()
	for _, f := range h.feeders {
		f.Overrule(number)
	}
}

// door is the way of one class of traffic to the cloud, under one identity.
func (h *Hub) door(c class, as credential) http.RoundTripper {
	r := route{http2: h.cloud.doors[doorKey{c, as, overHTTP2}], http1: h.cloud.doors[doorKey{c, as, overHTTP1}]}
	if as == asCaller {
		r.nobody = h.cloud.doors[doorKey{c, asNobody, overHTTP1}]
	}
	return r
}

func (h *Hub) buildFront() {
	door := h.door
	h.discovery = &discovery{keys: func() []byte { return h.judge.Keys() }, copies: map[documents.Key]copied{}, forged: func() { h.metrics.forged.WithLabelValues().Inc() }, clock: h.clock, logger: h.Logger}
	h.discovery.asHub = h.discovery.through(door(classPool, asHub))
	gate := newGate(h.settings, h.clock, func(reason string) { h.metrics.refusals.WithLabelValues(reason).Inc() })
	gate.prove = newProver(h.cloud.doors[doorKey{classNode, asUnproven, overHTTP1}], gate)
	gate.away = func() bool { return h.cloud.reach() == writes.Away }
	callers := gated{gate, door(classNode, asCaller)}
	consistency := newConsistency(h.relays, h.MaxStaleRead, cloudUpstream(h.cloud, h.metrics), h.cloud.reach, h.cloud.patience, h.clock, func(about, outcome string) {
		h.metrics.questions.WithLabelValues(about, outcome).Inc()
	})
	// A caller's review travels as its requests do: a connection of its own would cost more than the review.
	review := reviewer{asCaller: callers, asHub: door(classControl, asHub)}
	proxy := newProxy(proxyConfig{
		asCaller: h.discovery.through(callers), asHub: h.discovery.through(door(classNode, asHub)), written: consistency, clock: h.clock, logger: h.Logger,
	})
	h.front = &front{
		identifier: &identifier{
			user: contract.NodeUserPrefix + h.NodeName, roots: h.clientCA, allowance: h.OfflineTokenAllowance, now: func() time.Time { return h.judge.Now() },
		},
		gate:        gate,
		stalls:      &stalls{clock: h.clock, count: func() { h.metrics.stalled.Inc() }, logger: h.Logger},
		router:      router{h.resources},
		authorizer:  newAuthorizer(gate.limited(review.review), h.cloud.awayBy, h.cloud.gone, h.cloud.unknown, h.clock, func(outcome string) { h.metrics.reviews.WithLabelValues(outcome).Inc() }),
		relays:      h.relays,
		feeders:     h.feeders,
		consistency: consistency,
		proxy:       proxy,
		beats:       newBeats(h.NodeName, &urgent{h.cloud.doors[doorKey{classHeartbeat, asHub, overHTTP2}], h.clock}, proxy, h.clock, h.Logger, h.metrics),
		metrics:     h.metrics,
	}
	for _, r := range h.relays {
		h.front.readers = append(h.front.readers, &rest.Handler{
			Source: r, Fallback: http.HandlerFunc(h.front.fallback), Alone: func() bool { return h.cloud.reach() == writes.Away }, Logger: h.Logger,
		})
	}
}

func (h *Hub) buildPool() error {
	roots, err := h.bundle("--coordinator-ca-file", h.CoordinatorCAFile)
	if err != nil {
		return err
	}
	cert, err := h.pair("--coordinator-client-cert-file", h.CoordinatorClientCertFile, "--coordinator-client-key-file", h.CoordinatorClientKeyFile)
	if err != nil {
		return err
	}
	identity, seed, err := newIdentity(h.NodeName)
	if err != nil {
		return err
	}
	rc := h.role(identity)
	rc.Seed = seed
	machine, err := role.New(rc)
	if err != nil {
		return err
	}
	c := newCoordinator(coordinatorConfig{
		net: h.Net, servers: h.coordinators, node: h.NodeName, roots: roots, cert: cert, policy: h.policy(), onBytes: h.metrics.body(role.Coordinator),
		clock: h.clock, logger: h.Logger,
	})
	p := &pool{
		machine: machine, coordinator: c, cloudOK: h.cloud.healthy, wantCloud: h.cloud.want, use: h.sources.use, clock: h.clock, logger: h.Logger, metrics: h.metrics,
		timeout: h.HeartbeatTimeout, limit: h.HeartbeatTimeout, began: h.clock.Now(),
		holds: h.holds, results: make(chan role.Result), watched: make(chan leaseEvent), poke: make(chan struct{}, 1),
	}
	p.snap.Store(&role.Snapshot{Reason: "starting"})
	c.leads, c.moved = func() bool { return p.snapshot().Role == role.Leader }, p.changed
	p.checker = newChecker(c.name(), h.policy().near(), h.clock, h.Logger.With("at", "coordinator"), c.healthz)
	p.checker.changed = func() {
		p.changed()
		if p.checker.ok() {
			h.sources.retry()
		}
	}
	if len(h.coordinators) > 1 { // a probe finds the next replica when one is gone
		p.checker.pause = h.HeartbeatTimeout / 20
	}
	h.cloud.changed = p.changed
	p.silence = &silenceOf{read: &h.cloud.meters[classPool].read}
	h.sources.cloud.Silent = p.silence.doubt.Load
	p.proof = &proof{heard: h.cloud.lastHeard, ask: h.cloud.ask, logger: h.Logger}
	p.shared = newShared(h.resources, c, h.Logger)
	p.shared.reachable, p.shared.changed = p.checker.ok, p.changed
	p.detours, p.feeders = role.NewDetours(rc, len(h.feeders)), h.feeders
	for _, f := range h.feeders {
		f.looks = func() {
			p.shared.forget(f.resource)
			p.changed()
		}
	}
	p.maxAge = 2 * h.maxAge()
	p.leases = &leases{coordinator: c, events: p.watched, broke: p.checker.kick, clock: h.clock, logger: h.Logger}
	h.sources.coordinator = c
	h.discovery.coordinator = c
	h.poolDoor = h.buildPoolDoor(c, roots, cert)
	p.feed = &feed{
		discovery: h.discovery, relays: h.relays, feeders: h.feeders, read: h.poolDoor.Read, shared: p.shared, overrule: h.overrule, coordinator: c,
		maxAge: h.maxAge(), patience: h.LeaderElectLeaseDuration / 3, changed: p.changed, clock: h.clock, logger: h.Logger, leads: make(chan bool),
	}
	p.doubt = &doubt{
		feeders: h.feeders, cloud: h.cloudAsJudge, leader: p.leaderNode, changed: p.changed, clock: h.clock, logger: h.Logger, metrics: h.metrics,
	}
	p.mirror = newMirror(c, h.NodeName, h.HeartbeatTimeout, h.front.beats.now, h.clock, h.Logger, h.metrics)
	h.front.beats.mirror = p.mirror
	var forwarder *urgent
	if door := h.cloud.doors[doorKey{classHeartbeat, asForwarder, overHTTP2}]; door != nil {
		forwarder = &urgent{door, h.clock}
	}
	p.forwarding = newForwarding(c, forwarder, h.HeartbeatTimeout, h.clock, h.Logger, h.metrics)
	p.feed.lead = p.forwarding.lead
	h.pool = p
	return nil
}

// holds tells what the relays hold. One that holds nothing, beside others that do, need not wait as long: see role.Detours.
func (h *Hub) holds(now time.Time, in *role.Input) {
	in.Have, in.Restored, in.Aged = false, false, false
	for _, r := range h.relays {
		s := r.Status()
		age, ok := s.Age(now)
		in.Have, in.Restored = in.Have || s.Synced, in.Restored || s.Restored && s.Denied == ""
		in.Aged = in.Aged || s.Denied == "" && ok && age > h.FailoverGracePeriod
		if h.moved.look(r, s.Fresh(now, h.maxAge()), s.Version) {
			in.Reached++
		}
	}
}

// movement knows the versions of relays that are not fresh.
type movement map[*relay.Relay]uint64

// look tells whether a relay has moved since it was last seen not to be fresh. That it has just ceased to be fresh is no movement.
func (m movement) look(r *relay.Relay, fresh bool, version uint64) bool {
	last, stale := m[r]
	if fresh {
		delete(m, r)
		return false
	}
	m[r] = version
	return stale && version != last
}

// maxAge is how long ago a stream from the cloud may have given its last sign to be fresh.
func (h *Hub) maxAge() time.Duration { return h.UpstreamWatchTimeout * 5 / 2 }

// newIdentity returns "<node>_<random>" and a seed.
func newIdentity(node string) (identity string, seed uint64, err error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", 0, fmt.Errorf("make an identity: %w", err)
	}
	identity = node + "_" + hex.EncodeToString(b[:])
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(identity))
	return identity, sum.Sum64(), nil
}

func (s *settings) policy() healthPolicy {
	return healthPolicy{
		interval: s.HeartbeatInterval, timeout: s.HeartbeatTimeout, failures: s.HeartbeatFailedRetry, healthy: s.HeartbeatHealthyThreshold,
		away: s.HeartbeatInterval / 2, confirm: s.HeartbeatTimeout / 2,
	}
}

func (s *settings) role(identity string) role.Config {
	if identity == "" {
		identity = s.NodeName + "_"
	}
	return role.Config{
		Identity: identity, LeaseDuration: s.LeaderElectLeaseDuration, RenewDeadline: s.LeaderElectRenewDeadline,
		RetryPeriod: s.LeaderElectRetryPeriod, Wait: s.CoordinatorWait,
		Grace: s.FailoverGracePeriod, Spread: s.FailoverSpread,
	}
}

func (h *Hub) pair(certFlag, certFile, keyFlag, keyFile string) (*pair, error) {
	p, err := loadPair(certFlag, certFile, keyFlag, keyFile)
	h.reload.files = append(h.reload.files, p)
	return p, err
}

func (h *Hub) bundle(flag, file string) (*bundle, error) {
	b, err := loadBundle(flag, file)
	h.reload.files = append(h.reload.files, b)
	return b, err
}

func (h *Hub) listen() (err error) {
	if h.secure, err = listen(h.Net, "--secure-port", h.BindAddress, h.SecurePort); err != nil {
		return err
	}
	if h.health, err = listen(h.Net, "--health-port", h.HealthBindAddress, h.HealthPort); err != nil {
		return err
	}
	if h.ProxyPort != 0 {
		if h.plain, err = listen(h.Net, "--proxy-port", h.BindAddress, h.ProxyPort); err != nil {
			return err
		}
	}
	if h.poolDoor != nil && h.poolDoor.listener == nil {
		h.poolDoor.listener, err = listen(h.Net, "--pool-port", h.PoolBindAddress, h.PoolPort)
	}
	return err
}

// Addr is where the API is served.
func (h *Hub) Addr() net.Addr { return h.secure.Addr() }

// HealthAddr is where health, metrics and status are served.
func (h *Hub) HealthAddr() net.Addr { return h.health.Addr() }

// Close gives back the ports of a hub that is not run.
func (h *Hub) Close() {
	for _, l := range []net.Listener{h.secure, h.health, h.plain} {
		if l != nil {
			_ = l.Close()
		}
	}
	if h.poolDoor != nil && h.poolDoor.listener != nil {
		_ = h.poolDoor.listener.Close()
	}
	if h.kept != nil {
		h.kept.Close()
	}
	if h.shelter != nil {
		h.shelter.store.Close()
	}
}

// Run serves until ctx ends. A leader gives back its Lease first.
func (h *Hub) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	// What serves goes on until the pool has been left.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	// The store is written after the last request that it may record.
	storing, stored := context.WithCancel(context.WithoutCancel(ctx))
	defer stored()
	h.front.authorizer.start(serving)
	h.front.consistency.start(serving)
	var doors sync.WaitGroup
	open := func(l net.Listener) {
		doors.Add(1)
		g.Go(func() error {
			defer doors.Done()
			return serve(serving, l, h.front, h.front.identifier.isNode, h.Logger)
		})
	}
	open(h.secureListener())
	g.Go(func() error {
		return serve(serving, h.health, h.admin(), nil, h.Logger)
	})
	if h.plain != nil {
		open(h.plain)
	}
	if d := h.poolDoor; d != nil {
		g.Go(func() error {
			return serve(serving, tls.NewListener(sealedListener{d.listener}, d.tls()), d, nil, h.Logger)
		})
	}
	if h.kept != nil {
		g.Go(func() error { return h.kept.Run(serving) })
	}
	if h.shelter != nil {
		g.Go(func() error {
			defer stored()
			defer h.shelter.Wait()
			defer doors.Wait()
			return h.shelter.run(serving)
		})
		g.Go(func() error { return h.shelter.store.Run(storing) })
	}
	for i, r := range h.relays {
		g.Go(func() error { return r.Run(serving) })
		g.Go(func() error { return h.feeders[i].Run(serving) })
	}
	g.Go(func() error { return h.judge.Run(serving) })
	if h.filters != nil {
		g.Go(func() error { return h.filters.Run(serving) })
	}
	g.Go(func() error { return h.cloud.run(serving) })
	g.Go(func() error { return h.front.stalls.run(serving) })
	g.Go(func() error { return h.reload.run(serving) })
	g.Go(func() error {
		defer stop()
		defer h.front.close()
		if h.pool == nil {
			h.sources.alone()
			<-ctx.Done()
			return nil
		}
		return h.pool.run(ctx)
	})
	err := g.Wait()
	h.cloud.close()
	if h.pool != nil {
		h.pool.coordinator.close()
	}
	return err
}
