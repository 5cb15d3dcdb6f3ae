package hub

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/hub/relayed"
)

const slicesURL = "/apis/discovery.k8s.io/v1/endpointslices"

// ready is the answer of a hub's readyz.
func (b *bed) ready() bool {
	resp, _ := get(b.t, b.client(nil), "http://"+b.hub.HealthAddr().String()+"/readyz")
	return resp.StatusCode == http.StatusOK
}

// resource is what a hub says of a relay.
func (b *bed) resource(name string) relayed.ResourceStatus {
	for _, r := range b.hub.Status().Resources {
		if strings.HasPrefix(r.Resource, name+".") {
			return r
		}
	}
	b.t.Fatalf("no resource %s", name)
	return relayed.ResourceStatus{}
}

// code is what a hub answers to a list of EndpointSlices.
func (b *bed) code() int {
	resp, _ := get(b.t, b.client(nil), b.url()+slicesURL, alice...)
	return resp.StatusCode
}

// deny lets the cloud refuse what by gives a code for; streams break, as those of a kube-apiserver would end.
func deny(p *poolBed, by func(user, resource string) int) {
	p.clouds[0].set(func() { p.clouds[0].denies = by })
	p.clouds[0].server.CloseClientConnections()
}

// TestPoolWithoutOneResource: what the cloud does not have takes nothing from the others. Its reads are answered as the
// cloud does, at all hubs, before it is there, once it is, and when it is gone again.
func TestPoolWithoutOneResource(t *testing.T) {
	nodes := []string{"edge-1", "edge-2", "edge-3"}
	p := newPoolBed(t, nodes...)
	p.clouds[0].put("default", "first")
	gone := func(_, resource string) int {
		if resource == "endpointslices" {
			return http.StatusNotFound
		}
		return 0
	}
	for _, n := range nodes {
		p.hubs[n].config.CoordinatorWait = time.Second
	}
	deny(p, gone)
	p.start(nodes...)
	without := func() bool {
		for _, n := range nodes {
			h := p.hubs[n]
			s := h.hub.Status()
			if !h.ready() || !s.Coordinator.Ready || s.Role != "Leader" && h.resource("endpoints").Source != "coordinator" ||
				h.code() != http.StatusNotFound {
				return false
			}
		}
		return p.settled(nodes...) != ""
	}
	with := func() bool {
		for _, n := range nodes {
			h := p.hubs[n]
			if !h.ready() || h.code() != http.StatusOK ||
				h.hub.Status().Role != "Leader" && h.resource("endpointslices").Source != "coordinator" {
				return false
			}
		}
		return p.settled(nodes...) != ""
	}
	eventually(t, "the pool to be ready without EndpointSlices", without)
	for _, n := range nodes {
		p.shows(n, "first")
	}
	deny(p, func(string, string) int { return 0 })
	for _, n := range nodes { // at once, though no relay has it yet
		eventually(t, n+" to answer as the cloud does", func() bool { return p.hubs[n].code() == http.StatusOK })
	}
	eventually(t, "EndpointSlices to be fed by the pool", with)
	deny(p, gone)
	eventually(t, "the pool to be ready without them again", without)
	deny(p, func(string, string) int { return 0 })
	eventually(t, "and with them", with)
	for _, n := range nodes {
		if strings.Contains(p.hubs[n].log.String(), "cannot feed all that the pool wants") {
			t.Errorf("%s made way for want of a resource that nobody has", n)
		}
	}
}

// TestPoolLeaderWithoutGrant: a leader that may not read one resource makes way for a hub that may. Meanwhile its
// clients are answered by the cloud.
func TestPoolLeaderWithoutGrant(t *testing.T) {
	p := newPoolBed(t, "edge-1", "edge-2")
	for _, h := range p.hubs {
		h.config.CoordinatorWait = time.Second
	}
	deny(p, func(user, resource string) int {
		if user == "weir:hub:pool-a:edge-1" && resource == "endpointslices" {
			return http.StatusForbidden
		}
		return 0
	})
	p.start("edge-1")
	eventually(t, "edge-1 to be ready", func() bool {
		return p.hubs["edge-1"].hub.Status().Role == "Leader" && p.hubs["edge-1"].ready()
	})
	p.start("edge-2")
	eventually(t, "edge-2 to lead", func() bool { return p.settled("edge-1", "edge-2") == "edge-2" })
	eventually(t, "edge-1 to be fed by the pool", func() bool {
		h := p.hubs["edge-1"]
		return h.ready() && h.code() == http.StatusOK && h.resource("endpointslices").Source == "coordinator" &&
			h.resource("endpointslices").Synced
	})
}

// TestPoolCoordinatorLacksResource: a resource that only hubs have is fed by each for itself, all others by the pool,
// and the hubs say so.
func TestPoolCoordinatorLacksResource(t *testing.T) {
	p := newPoolOf(t, []string{"endpoints.v1."}, "edge-1", "edge-2")
	p.start("edge-1", "edge-2")
	eventually(t, "the pool to be ready", func() bool {
		for _, h := range p.hubs {
			if !h.ready() || h.code() != http.StatusOK || h.resource("endpointslices").Source != "cloud" ||
				!strings.Contains(h.log.String(), "the coordinator does not have") {
				return false
			}
		}
		return p.settled("edge-1", "edge-2") != ""
	})
}

// TestPoolHubLacksResource: a resource that the leader does not have is fed by each other hub for itself.
func TestPoolHubLacksResource(t *testing.T) {
	p := newPoolBed(t, "edge-1", "edge-2")
	for _, h := range p.hubs {
		h.config.CoordinatorWait = time.Second
	}
	p.hubs["edge-1"].config.PoolScopeResources = []string{"endpoints.v1."}
	p.start("edge-1")
	eventually(t, "edge-1 to lead", func() bool { return p.settled("edge-1") == "edge-1" })
	p.start("edge-2")
	eventually(t, "edge-2 to have both", func() bool {
		h := p.hubs["edge-2"]
		return p.settled("edge-1", "edge-2") == "edge-1" && h.ready() && h.code() == http.StatusOK &&
			h.resource("endpoints").Source == "coordinator" &&
			h.resource("endpointslices").Source == "cloud" && p.hubs["edge-1"].code() == http.StatusOK
	})
	if lacks := p.hubs["edge-1"].hub.Status().Coordinator.Lacks; len(lacks.Hub) != 1 || len(lacks.Coordinator) != 0 {
		t.Errorf("edge-1 lacks %+v", lacks)
	}
	if _, metrics := get(t, p.client(nil), "http://"+p.hubs["edge-1"].hub.HealthAddr().String()+
		"/metrics"); !strings.Contains(metrics,
		`weir_hub_resources_differ{lacks="hub",resource="endpointslices.v1.discovery.k8s.io"} 1`) {
		t.Error("its metrics do not say so")
	}
	if !strings.Contains(p.hubs["edge-1"].log.String(), "this hub does not have") {
		t.Error("edge-1 does not say what it lacks")
	}
}

// TestExposedResources: what each node of the pool may then read is said at the start.
func TestExposedResources(t *testing.T) {
	b := newBed(t, 1)
	b.config.PoolScopeResources = []string{"endpoints.v1.", "configmaps.v1."}
	_, err := b.config.check()
	check(t, err)
	if log := b.log.String(); strings.Count(log, "level=WARN") != 1 || !strings.Contains(log, "configmaps.v1.") {
		t.Errorf("log: %s", log)
	}
}

// TestOneResourceFails: where the cloud answers lists of one resource by an error, clients are told that error, and the
// hub is ready for the others.
func TestOneResourceFails(t *testing.T) {
	b := newBed(t, 1)
	fails := func(_, resource string) int {
		if resource == "endpointslices" {
			return http.StatusInternalServerError
		}
		return 0
	}
	b.clouds[0].set(func() { b.clouds[0].denies = fails })
	b.start()
	b.fed()
	if code := b.code(); code != http.StatusInternalServerError {
		t.Errorf("a list of what fails: %d", code)
	}
	b.clouds[0].set(func() { b.clouds[0].denies = func(string, string) int { return 0 } })
	eventually(t, "the relay to be fed", func() bool {
		return b.resource("endpointslices").Synced && b.code() == http.StatusOK
	})
}
