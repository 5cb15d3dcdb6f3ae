package hub

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/lease"
	"github.com/weir-edge/weir/impl/pki"
)

// enrolling prepares a pool whose hubs hold nothing but the certificates of their nodes.
func enrolling(t *testing.T, nodes ...string) *poolBed {
	t.Helper()
	p := newPoolBed(t, nodes...)
	for _, h := range p.hubs {
		check(t, os.RemoveAll(h.config.DataDir))
	}
	p.clouds[0].signer.signs(nil, nil)
	return p
}

// TestEnrol: hubs that hold the certificates of their nodes get all others themselves. The leader gets that of a
// forwarder, of its own node. What they got is there after a restart.
func TestEnrol(t *testing.T) {
	p := enrolling(t, "edge-1", "edge-2")
	signer := p.clouds[0].signer
	link := p.linked("edge-2")
	p.start("edge-1")
	eventually(t, "a request", func() bool { return len(signer.requests()) > 0 })
	if s := p.hubs["edge-1"].hub.Status(); s.Coordinator.Healthy {
		t.Fatal("it is in the pool without a certificate")
	}
	signer.signs(p.ca, p.local)
	eventually(t, "edge-1 to lead", func() bool { return p.hubs["edge-1"].hub.Status().Role == "Leader" })
	p.start("edge-2")
	eventually(t, "edge-2 to follow", func() bool { return p.settled("edge-1", "edge-2") == "edge-1" })
	far := p.hubs["edge-2"].kubelet()
	far.beats(http.StatusNotFound, http.StatusCreated)
	link.set(true)
	far.beats(http.StatusOK)
	eventually(t, "the heartbeat of edge-2 in the cloud", func() bool {
		l := p.clouds[0].leases.get("edge-2")
		return lease.IsDelegated(l) && lease.RenewTime(l).Equal(far.now)
	})
	for _, w := range p.clouds[0].leases.written() {
		if w.delegated && w.user != "weir:forwarder:pool-a:edge-1" {
			t.Errorf("delegated by %s", w.user)
		}
	}
	link.set(false)
	asked := signer.requests()
	slices.Sort(asked)
	if want := []string{
		"system:node:edge-1 forwarder edge-1", "system:node:edge-1 hub edge-1", "system:node:edge-1 hub-at-cloud edge-1",
		"system:node:edge-2 hub edge-2", "system:node:edge-2 hub-at-cloud edge-2",
	}; !slices.Equal(asked, want) {
		t.Errorf("asked for %q", asked)
	}
	_, metrics := get(t, p.client(nil), "http://"+p.hubs["edge-1"].hub.HealthAddr().String()+"/metrics")
	for _, want := range []string{
		`weir_certificate_expiry_timestamp_seconds{kind="hub"}`,
		`weir_certificate_expiry_timestamp_seconds{kind="forwarder"}`,
		`weir_certificate_expiry_timestamp_seconds{kind="door"}`,
		`weir_certificate_expiry_timestamp_seconds{kind="kubelet"}`,
		`weir_certificate_expiry_timestamp_seconds{kind="hub-at-cloud"}`, `weir_certificate_renewals_total{kind="hub"} 1`,
		`weir_hub_own_user 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no metric %s", want)
		}
	}
	kept := filepath.Join(p.hubs["edge-1"].config.DataDir, "pki", "hub.pem")
	if f, err := os.Stat(kept); err != nil || f.Mode() != 0o600 {
		t.Errorf("%v, %v", f, err)
	}
	p.stops["edge-1"]()
	p.start("edge-1")
	eventually(t, "edge-1 to be back", func() bool { return p.settled("edge-1", "edge-2") != "" })
	if n := slices.Index(signer.requests()[5:], "system:node:edge-1 hub edge-1"); n >= 0 {
		t.Errorf("asked again after a restart: %q", signer.requests())
	}
}

// TestRenewInUse: certificates of seconds are renewed again and again, and no stream notices.
func TestRenewInUse(t *testing.T) {
	p := enrolling(t, "edge-1", "edge-2")
	signer := p.clouds[0].signer
	signer.life = map[pki.Kind]time.Duration{
		pki.Hub: 4 * time.Second, pki.HubAtCloud: 4 * time.Second, pki.Forwarder: 4 * time.Second,
	}
	signer.signs(p.ca, p.local)
	p.start("edge-1", "edge-2")
	eventually(t, "one to lead, one to follow", func() bool { return p.settled("edge-1", "edge-2") != "" })
	p.clouds[0].put("default", "first")
	streams := func() (n []int) {
		for _, node := range []string{"edge-1", "edge-2"} {
			for _, r := range p.hubs[node].hub.Status().Resources {
				n = append(n, r.Lists.Total())
			}
		}
		return n
	}
	for _, node := range []string{"edge-1", "edge-2"} {
		p.shows(node, "first")
	}
	began, leader := streams(), p.settled("edge-1", "edge-2")
	n := len(signer.requests())
	eventually(t, "three more of each", func() bool { return len(signer.requests()) > n+15 })
	p.clouds[0].put("default", "second")
	for _, node := range []string{"edge-1", "edge-2"} {
		p.shows(node, "second")
	}
	if now := streams(); !slices.Equal(now, began) || p.settled("edge-1", "edge-2") != leader {
		t.Errorf("lists %v, were %v; %s leads, it was %s", now, began, p.settled("edge-1", "edge-2"), leader)
	}
}

// TestToken: a node joins by a bootstrap token, and renews as itself. A token is needed no more once there is a
// certificate.
func TestToken(t *testing.T) {
	p := enrolling(t, "edge-1")
	signer, h := p.clouds[0].signer, p.hubs["edge-1"]
	const token = "abcdef.0123456789abcdef"
	write(t, h.dir, map[string][]byte{bootstrapToken: []byte("abcdef.0123456789ABCDEF")})
	if _, err := New(h.config); err == nil || !strings.Contains(err.Error(), "one bootstrap token") ||
		!strings.Contains(err.Error(), h.config.etc(bootstrapToken)) || strings.Contains(err.Error(), "ABCDEF") {
		t.Errorf("a file of something else: %v", err)
	}
	write(t, h.dir, map[string][]byte{bootstrapToken: []byte(token + "\n")})
	signer.life = map[pki.Kind]time.Duration{pki.Hub: 3 * time.Second}
	signer.signs(p.ca, p.local)
	p.start("edge-1")
	eventually(t, "it to lead", func() bool { return h.hub.Status().Role == "Leader" })
	eventually(t, "a renewal", func() bool { return slices.Contains(signer.requests(), "system:node:edge-1 hub edge-1") })
	by := signer.requests()
	first := slices.Sorted(slices.Values(by[:2]))
	if want := []string{token + " hub edge-1", token + " hub-at-cloud edge-1"}; !slices.Equal(first, want) ||
		slices.ContainsFunc(by[2:], func(s string) bool { return strings.HasPrefix(s, token) }) {
		t.Errorf("asked for by %q", by)
	}
	if strings.Contains(h.log.String(), token) {
		t.Error("the log has the token")
	}
	p.stops["edge-1"]()
	check(t, os.Remove(h.config.etc(bootstrapToken)))
	p.start("edge-1")
}
