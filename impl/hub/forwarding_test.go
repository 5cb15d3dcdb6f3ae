package hub

import (
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/lease"
)

// TestForward: the leader forwards heartbeats of a node that is cut off, as the forwarder of its pool, and nothing
// else; when the kubelet ends, so does that; and a node that returns speaks for itself.
func TestForward(t *testing.T) {
	p := newPoolBed(t, "edge-1", "edge-2")
	link := p.linked("edge-2")
	p.start("edge-1")
	eventually(t, "edge-1 to lead", func() bool { return p.hubs["edge-1"].hub.Status().Role == "Leader" })
	p.start("edge-2")
	eventually(t, "edge-2 to follow", func() bool { return p.settled("edge-1", "edge-2") == "edge-1" })
	near, far := p.hubs["edge-1"].kubelet(), p.hubs["edge-2"].kubelet()
	near.beats(http.StatusNotFound, http.StatusCreated)
	far.beats(http.StatusNotFound, http.StatusCreated)
	p.mirrored(far, false)

	link.set(true)
	cloud, leader := p.clouds[0].leases, p.hubs["edge-1"].hub
	forwarded := func() {
		t.Helper()
		eventually(t, "the heartbeat of edge-2 in the cloud", func() bool {
			l := cloud.get("edge-2")
			return lease.IsDelegated(l) && lease.RenewTime(l).Equal(far.now)
		})
	}
	for range 5 {
		far.beats(http.StatusOK)
		forwarded()
	}
	far.now = far.now.Add(-time.Minute) // its clock is set back
	before := lease.RenewTime(cloud.get("edge-2"))
	far.beats(http.StatusOK)
	eventually(t, "a heartbeat of a clock that was set back",
		func() bool { return lease.RenewTime(cloud.get("edge-2")).After(before) })
	far.now = before

	eventually(t, "six heartbeats in the status", func() bool {
		s := leader.Status().Delegation
		return s.Nodes == 1 && s.Forwarded == 6 && s.Expired == 0 && !s.Last.IsZero()
	})
	if s := leader.Status().Bytes[uplink.ClassHeartbeat]; s.Connections != 2 {
		t.Errorf("connections of class heartbeat: %+v; want one of the node and one of the forwarder", s)
	}
	var users []string
	for _, w := range cloud.written() {
		if w.delegated && !slices.Contains(users, w.user) {
			users = append(users, w.user)
		}
		if w.delegated && w.lease.Name != "edge-2" {
			t.Errorf("%s was delegated", w.lease.Name)
		}
	}
	if !slices.Equal(users, []string{"weir:forwarder:pool-a:edge-1"}) {
		t.Errorf("delegated by %v", users)
	}

	link.set(false)
	eventually(t, "the cloud to be healthy at edge-2", p.hubs["edge-2"].hub.cloud.Healthy)
	far.beats(http.StatusConflict, http.StatusOK, http.StatusOK)
	p.mirrored(far, false)
	near.beats(http.StatusOK)
	if l := cloud.get("edge-2"); lease.IsDelegated(l) {
		t.Error("returned and still delegated")
	}
	eventually(t, "nobody to be delegated", func() bool { return leader.Status().Delegation.Nodes == 0 })
}

// TestForwardAfterChange: a hub that followed when heartbeats came goes on as a leader with the last one, without
// waiting for the next.
func TestForwardAfterChange(t *testing.T) {
	p := newPoolBed(t, "edge-1", "edge-2", "edge-3")
	links := map[string]*cut{"edge-1": p.linked("edge-1"), "edge-3": p.linked("edge-3")}
	p.start("edge-1")
	eventually(t, "edge-1 to lead", func() bool { return p.hubs["edge-1"].hub.Status().Role == "Leader" })
	p.start("edge-2", "edge-3")
	eventually(t, "the others to follow", func() bool { return p.settled("edge-1", "edge-2", "edge-3") == "edge-1" })
	far := p.hubs["edge-3"].kubelet()
	far.beats(http.StatusNotFound, http.StatusCreated)
	links["edge-1"].set(true) // the leader cannot forward, and does not know yet
	links["edge-3"].set(true)
	far.beats(http.StatusOK)
	eventually(t, "edge-2 to forward the only heartbeat", func() bool {
		l := p.clouds[0].leases.get("edge-3")
		return lease.IsDelegated(l) && lease.RenewTime(l).Equal(far.now)
	})
	if s := p.hubs["edge-2"].hub.Status(); s.Role != "Leader" {
		t.Errorf("edge-2 is %s", s.Role)
	}
}

// TestForwardWithoutCertificate: a leader that nobody has given one forwards nothing.
func TestForwardWithoutCertificate(t *testing.T) {
	p := newPoolBed(t, "edge-1", "edge-2")
	link := p.linked("edge-2")
	lead := p.hubs["edge-1"]
	signer := p.clouds[0].signer
	signer.signs(nil, nil)
	p.start("edge-1")
	eventually(t, "edge-1 to lead", func() bool { return lead.hub.Status().Role == "Leader" })
	link.set(true)
	p.start("edge-2")
	p.hubs["edge-2"].kubelet().beats(http.StatusNotFound, http.StatusCreated)
	eventually(t, "edge-1 to ask, and to hear of edge-2", func() bool {
		return lead.hub.Status().Delegation.Nodes == 1 &&
			slices.Contains(signer.requests(), "system:node:edge-1 forwarder edge-1")
	})
	if w := p.clouds[0].leases.written(); len(w) != 0 {
		t.Errorf("written in the cloud: %+v", w)
	}
}

// TestDeadServer: a heartbeat finds a server that lives behind one that takes connections and never answers.
func TestDeadServer(t *testing.T) {
	b := newBed(t, 1)
	hole, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { _ = hole.Close() })
	b.config.CloudServers = append([]string{"https://" + hole.Addr().String()}, b.config.CloudServers...)
	b.config.HeartbeatInterval, b.config.HeartbeatTimeout = time.Minute, 30*time.Second // probes will not help
	b.start()
	k := b.kubelet()
	k.beats(http.StatusNotFound, http.StatusCreated)
	if s := b.hub.Status().Heartbeat; s.CutOff || b.clouds[0].leases.get("edge-1") == nil {
		t.Errorf("status: %+v", s)
	}
}
