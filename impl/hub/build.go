package hub

import (
	"cmp"
	"math/rand/v2"
	"net/http"
	"path/filepath"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/denylist"
	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/heartbeat"
	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/hub/beat"
	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/hub/door"
	"github.com/weir-edge/weir/impl/hub/membership"
	"github.com/weir-edge/weir/impl/hub/mirror"
	"github.com/weir-edge/weir/impl/hub/overlay"
	"github.com/weir-edge/weir/impl/hub/ownkubelet"
	"github.com/weir-edge/weir/impl/hub/pooldoor"
	"github.com/weir-edge/weir/impl/hub/reach"
	"github.com/weir-edge/weir/impl/hub/relayed"
	"github.com/weir-edge/weir/impl/hub/togate"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/hub/wayin"
	"github.com/weir-edge/weir/impl/lease"
	"github.com/weir-edge/weir/impl/limit"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/process"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/role"
	"github.com/weir-edge/weir/impl/source"
	"github.com/weir-edge/weir/impl/source/hop"
	"github.com/weir-edge/weir/impl/tunnel"
)

// buildCloud reads the credentials of both sides of the hub.
func (h *Hub) buildCloud() (err error) {
	h.time = pki.OpenProven(filepath.Join(h.DataDir, "time"), h.clock, h.Logger)
	if h.EnrolCoordinatorDir != "" {
		h.time.HandOn(filepath.Join(h.EnrolCoordinatorDir, pki.CloudTimeFile))
	}
	if !h.ownsAuthority() {
		if h.serving.cert, err = h.reload.Pair(inEtc(servingPair), h.etc(servingPair)); err != nil {
			return err
		}
	}
	if len(h.ClientCAFiles) > 0 {
		if h.serving.callers, err = h.reload.Kept("--client-ca-file", filepath.Join(h.DataDir, "client-ca.crt"),
			h.ClientCAFiles...); err != nil {
			return err
		}
	}
	c := uplink.CloudConfig{
		NodeName: h.NodeName, Net: h.Net, Servers: h.servers, Proxy: tunnel.FromEnvironment(), Policy: h.policy(),
		Leads: h.EnableCoordinator, Time: h.time, Clock: h.clock, Logger: h.Logger,
		Rests: func() bool { return h.EnableCoordinator && h.poolDoor.Notices.Rests() },
	}
	if c.Kubeconfig, err = h.buildKubeconfig(); err != nil {
		return err
	}
	flag, file := inEtc(cloudCA), h.etc(cloudCA)
	if h.CloudClientKubeconfig != "" {
		flag, file = uplink.KubeconfigFlag, h.CloudClientKubeconfig
	}
	if c.Roots, err = h.reload.Kept(flag, filepath.Join(h.DataDir, cloudCA), file); err != nil {
		return err
	}
	if err := h.buildNode(); err != nil {
		return err
	}
	if err := h.buildForwarder(); err != nil {
		return err
	}
	if h.atCloud, err = h.buildAtCloud(); err != nil {
		return err
	}
	c.Node, c.Hub, c.Forward, c.NodeShows = h.node, h.atCloud, h.forward, h.shows
	if h.shows != nil {
		c.HubShows = h.atCloud
	}
	h.cloud = uplink.NewCloud(c)
	h.cloud.Follow(h.retry)
	return nil
}

// buildCoordinator makes the way to the pool's coordinator, if there is one, and what the pool has one copy of beside
// relays.
func (h *Hub) buildCoordinator() error {
	if err := h.buildClient(); err != nil {
		return err
	}
	h.discovery = pooldoor.NewDiscovery(pooldoor.DiscoveryConfig{
		Coordinator: h.coordinator, Cloud: h.cloud.Way(uplink.ClassPool, uplink.AsHub),
		Forged: h.metrics.forged.WithLabelValues().Inc, Clock: h.clock, Logger: h.Logger,
	})
	h.asNode = h.discovery.Through(h.cloud.Way(uplink.ClassNode, uplink.AsNode))
	return nil
}

// buildClient makes the way to the coordinator.
func (h *Hub) buildClient() error {
	if !h.EnableCoordinator {
		return nil
	}
	c := coordinator.Config{
		Net: h.Net, Servers: coordinator.At(h.coordinators...), Node: h.NodeName, Pool: h.NodePoolName, Policy: h.policy(),
		OnBytes: h.metrics.body(role.Coordinator),
		Leads:   func() bool { return h.pool.Snapshot().Role == role.Leader }, Moved: func() { h.pool.Changed() },
		Address: func() string { return h.poolDoor.Told() },
		Refused: h.refused, Clock: h.clock, Logger: h.Logger,
	}
	c.Roots = h.trusted
	h.denied = denylist.New(denylist.Config{
		Pool: h.NodePoolName, Trusted: h.trusted.List, Speakers: h.trusted.Speakers, Time: h.time,
		File: filepath.Join(h.DataDir, "denylist"), Logger: h.Logger,
	})
	c.Denied = h.denied
	h.metrics.registry.MustRegister(h.denied)
	h.late = &pki.Allowance{
		Time: h.time, Cloud: func() bool { return h.cloud.Reach() != member.CloudAway }, For: h.allowance,
		Refuse: h.denied.Refuse,
		Logger: h.Logger,
	}
	c.Late = h.late
	h.metrics.registry.MustRegister(h.late.Collector())
	if err := h.buildMember(); err != nil {
		return err
	}
	if err := h.buildBeside(); err != nil {
		return err
	}
	c.Cert = h.member
	h.coordinator = coordinator.New(c)
	return nil
}

func (h *Hub) buildRelays() error {
	h.reads = door.NewDemand(h.NodeName, h.clock)
	h.sources = &relayed.Sources{
		Feeding: h.cloud.Feeds, Cloud: h.cloud.Upstream(h.metrics.body(role.Cloud)),
		Coordinator: func() *hop.Upstream { return h.coordinator.InUse().Upstream },
	}
	if h.EnableCoordinator { // what the pool shares is signed
		if err := h.buildTrust(); err != nil {
			return err
		}
		h.buildDirectory()
		h.gate = togate.New(togate.Config{
			Cloud: h.cloud, Directory: h.directory, Sources: h.sources, Cert: h.atCloud, OnBytes: h.metrics.body(role.Cloud),
			Net: h.Net, Spread: member.GateSpread, Clock: h.clock, Logger: h.Logger,
		})
		h.wayIn = wayin.New(wayin.Config{
			Node: h.NodeName, Pool: h.NodePoolName, Leads: func() bool { return h.pool.Snapshot().Role == role.Leader },
			Directory: h.directory, Cloud: h.cloud, Cert: h.atCloud, Net: h.Net, Clock: h.clock, Logger: h.Logger,
		})
	}
	for _, res := range h.atFirst() {
		f, err := h.feeder(res, false)
		if err != nil {
			return err
		}
		h.sources.Add(f)
	}
	return nil
}

// feeder makes the relay of a resource and what feeds it. late: others are served already.
func (h *Hub) feeder(res relay.Resource, late bool) (*relayed.Feeder, error) {
	r, err := relay.New(relay.Config{Resource: res, RingAge: h.RingAge, Late: late, Clock: h.clock, Logger: h.Logger})
	if err != nil {
		return nil, err
	}
	return relayed.NewFeeder(source.Config{
		Relay: r, WatchTimeout: h.UpstreamWatchTimeout, Learned: h.learned, Judge: h.cloudAsJudge, Pulse: &h.sources.Pulse,
		Doubt: func(err error) { h.pool.Contradict(res.String(), err) },
		Feeds: func() bool { return h.pool.Snapshot().Role != role.Pending }, Clock: h.clock, Logger: h.Logger,
	}, func() { h.pool.Denied(res.String()) })
}

func (h *Hub) buildDoor() error {
	gate := access.NewGate(access.GateConfig{
		Anonymous: h.Anonymous, Rate: h.CallerRate, Burst: h.CallerRate * limit.CallerRest, Bytes: h.CallersMaxBytes,
		Cloud: h.cloud, Unproven: h.cloud.Prove(), Judge: h.judge, Called: h.own.callers.Note,
		Clock: h.clock, Count: counted(h.metrics.refusals), Logger: h.Logger,
	})
	callers := gate.Through(h.cloud.Way(uplink.ClassNode, uplink.AsCaller))
	consistency := relayed.NewConsistency(h.MaxStaleRead, h.cloud.Upstream(h.metrics.body(role.Cloud)), h.cloud, h.clock,
		func(about, outcome string) { h.metrics.questions.WithLabelValues(about, outcome).Inc() })
	review := access.Reviewer{
		AsCaller: gate.Through(h.cloud.Reviews()), AsNode: h.cloud.Way(uplink.ClassNode, uplink.AsNode), Stay: &access.Stay{},
	}
	authorizer := access.NewAuthorizer(access.AuthorizerConfig{
		Review: gate.Limited(review.Review), Cloud: h.cloud, Judge: h.judge, Clock: h.clock,
		Count: counted(h.metrics.reviews), Stay: review.Stay,
	})
	proxy := door.NewProxy(door.ProxyConfig{
		Node: h.NodeName, AsNode: h.asNode, NodePlace: h.cloud.NodePlace, AsCaller: h.discovery.Through(callers),
		Shelter: h.shelter, Judge: h.judge, Written: consistency, Demand: h.reads, Left: h.sources.Left, Clock: h.clock,
		Kubelet: ownkubelet.New(ownkubelet.Config{
			Node: h.NodeName, Address: cmp.Or(h.kubelet, ownkubelet.Address), Cert: h.atCloud, Dial: h.Net.DialContext,
			Store: h.store, Judge: h.judge, Away: h.cloud.IsAway, Learn: authorizer.Learn, Clock: h.clock, Logger: h.Logger,
		}),
		Logger: h.Logger,
	})
	beats := beat.NewBeats(beat.BeatsConfig{
		Node: h.NodeName, Cloud: h.cloud.Urgent(uplink.AsNode), Pool: h.pool.Seen(), Clock: h.clock, Logger: h.Logger,
		Count: counted(h.metrics.heartbeats), Roll: h.rollCall,
		Pass: func(w *answer.Recorder, req *http.Request, asked *request.Request) {
			w.Route = "cloud"
			proxy.Serve(w, req, door.Passage{Asked: asked, Who: access.Caller{Kind: access.ThisNode}})
		},
		Tell: h.tells(consistency), Reads: func() digest.Reads { return h.reads.Reads(h.scope.Names()) },
	})
	h.door = door.New(door.Config{
		Node: h.NodeName,
		Identifier: &access.Identifier{
			User: contract.NodeUserPrefix + h.NodeName, Roots: h.serving.callers, Own: h.own.judge(),
			Allowance: h.OfflineTokenAllowance, Now: h.time.Now,
		},
		Gate:       gate,
		Authorizer: authorizer,
		Stalls:     answer.NewStalls(h.clock, h.metrics.stalled.Inc, h.metrics.served, h.Logger),
		Sources:    h.sources, Consistency: consistency, Beats: beats, Proxy: proxy, Shelter: h.shelter, Demand: h.reads,
		Scope: h.scope, Overlay: h.overlay, Filters: h.filters, Own: h.own.filter, Answered: h.metrics.answered,
		Logger: h.Logger,
	})
	return nil
}

// tells is what the hub tells the cloud of itself with heartbeats; nil: nothing, since there is no pool.
func (h *Hub) tells(consistency *relayed.Consistency) func() digest.Digest {
	if !h.EnableCoordinator {
		return nil
	}
	return (&membership.Account{
		Version: process.Version(), Started: h.clock.Now(), Cloud: h.cloud, Sources: h.sources, Consistency: consistency,
		Served: h.metrics.served, Images: h.mirror.Sum, Edges: h.prober.Failing,
		Role: func() role.Role { return h.pool.Snapshot().Role }, Cause: func() string { return h.pool.Cause() },
	}).Digest
}

func (h *Hub) buildPool() (err error) {
	if !h.EnableCoordinator {
		h.pool = membership.Alone{Sources: h.sources}
		return nil
	}
	identity, err := membership.NewIdentity(h.NodeName)
	if err != nil {
		return err
	}
	rc, file := h.role(identity), filepath.Join(h.DataDir, "identity")
	rc.Seed, rc.Former = rand.Uint64(), membership.Former(file, h.NodeName, h.Logger)
	h.poolDoor = h.buildPoolDoor()
	h.buildNotices()
	h.buildRollCall()
	h.prober = reach.New(reach.Config{
		Node: h.NodeName, Coordinator: h.coordinator, Role: func() role.Role { return h.pool.Snapshot().Role },
		Told: h.poolDoor.Told, Clock: h.clock, Logger: h.Logger,
	})
	h.overlay = overlay.New(overlay.Config{
		Node: h.NodeName, Pool: h.NodePoolName, Dir: h.DataDir, Ways: h.poolDoor.Moved(h.coordinator),
		Boot: process.BootID(h.etc(bootID), process.BootIDFile), Statuses: h.shelter.Writes.PodStatuses,
		Pods: h.shelter.Writes.Pods, Cert: h.member, Verify: h.poolDoor.Hub, Away: h.cloud.IsAway, Unknown: h.cloud.Unknown,
		Relay: h.sources.Relay, Now: h.time.Now, Clock: h.clock, Logger: h.Logger,
	})
	h.cloud.Follow(h.overlay.Look)
	h.forwarding = beat.NewForwarding(beat.ForwardingConfig{
		Cloud: h.cloud.Urgent(uplink.AsForwarder), Coordinator: h.coordinator, Own: h.poolDoor.Desk.Leases,
		Timeout: h.limit(), Clock: h.clock, Logger: h.Logger,
		Count: func(step, outcome string) { h.metrics.forwards.WithLabelValues(step, outcome).Inc() }, Leads: h.leads,
	})
	h.pool, err = membership.New(membership.Config{
		Role: rc, IdentityFile: file, Coordinator: h.coordinator, Policy: h.policy(), Cloud: h.cloud,
		Sources: h.sources, Idle: h.scope.Idle, MaxAge: h.maxAge(), Read: h.poolDoor.Read, Overrule: h.overrule,
		Judge:        h.cloudAsJudge,
		Contradicted: counted(h.metrics.contradictions), Desk: h.poolDoor.Desk, Discovery: h.discovery,
		Mirror: beat.NewMirror(beat.MirrorConfig{
			Coordinator: h.coordinator, Node: h.NodeName, Timeout: h.limit(), Clock: h.clock, Logger: h.Logger,
			Count: counted(h.metrics.mirrored),
		}),
		Forwarding: h.forwarding, Clock: h.clock, Logger: h.Logger,
	})
	if err == nil { // what was told before a restart counts above flags
		h.pool.Follow(pooldoor.Designate(h.NodeName, h.directory.Now()))
	}
	return err
}

// buildMirror makes the mirror of registries, if there is to be one.
func (h *Hub) buildMirror() (err error) {
	c := mirror.Config{
		Options: h.Images, Node: h.NodeName, DataDir: h.DataDir, Net: h.Net, Lacks: h.lacks, Door: h.poolDoor,
		Away: func() bool { away, _ := h.cloud.IsAway(); return away }, Left: h.cloud.Left, Clock: h.clock, Logger: h.Logger,
	}
	if h.poolDoor != nil {
		c.Ways, c.Told = h.poolDoor.Images(h.coordinator), h.directory.Now
	}
	h.mirror, err = mirror.New(c)
	return err
}

// buildRollCall makes what leaves heartbeats of this node to its pool, and reports those of all while this hub leads.
func (h *Hub) buildRollCall() {
	ways := &pooldoor.RollCall{Coordinator: h.coordinator, Desk: h.poolDoor.Desk, Timeout: heartbeat.Withdraw}
	h.rollCall = beat.NewRollCall(beat.RollCallConfig{
		Node: h.NodeName, Pool: h.NodePoolName, Desk: ways, Trusted: h.trusted.Speakers, Confirm: h.poolDoor.Notices.Confirm,
		Clock: h.clock, Logger: h.Logger,
	})
	h.reporter = beat.NewReporter(beat.ReporterConfig{
		Pool: h.NodePoolName, Cloud: h.cloud.Urgent(uplink.AsForwarder), Desks: ways, Trusted: h.trusted.Speakers,
		Period: h.rollCall.Period, Clock: h.clock, Logger: h.Logger, Count: counted(h.metrics.reports),
	})
}

func (h *Hub) buildPoolDoor() *pooldoor.Door {
	c := h.coordinator
	shown := hop.NewServer(h.NodeName, h.sources.Relays, h.clock)
	shown.Scope = h.scope
	shown.Vouch = func(r *relay.Relay) bool { return h.pool.Vouch(r) }
	d := &pooldoor.Door{Config: pooldoor.Config{
		Server: shown, Node: h.NodeName, Pool: h.NodePoolName, Coordinators: h.course.Coordinators,
		Roots: c.Roots, Denied: c.Denied, Cert: h.member, Address: h.PoolAddress, Local: c.Local, Late: h.late,
		Clock: h.clock,
		Desk:  pooldoor.NewDesk(pooldoor.NewStanding(h.clock), lease.NewNodes(h.clock), h.clock),
	}}
	d.Desk.Handle(d.ServeMux)
	d.Handle(contract.DocumentsPath, h.discovery.Show(h.judge.Keys))
	h.board().Serve(d.Handle)
	if d.Listener = h.atPool; d.Address == contract.PoolAddressReverse {
		d.Listener = hop.NewListener(c.Waits, h.clock, h.Logger)
	}
	return d
}
