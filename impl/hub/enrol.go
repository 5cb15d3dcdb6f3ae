package hub

import (
	"net/http"
	"path/filepath"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/credential"
	"github.com/weir-edge/weir/impl/enrol"
	"github.com/weir-edge/weir/impl/hub/pooldoor"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/pki"
)

// buildMember gets the hub's certificate in its pool.
func (h *Hub) buildMember() (err error) {
	h.member, err = h.byToken(enrol.Config{
		Identity: pki.Must(pki.Hub), Trusted: h.trusted.List, Signs: h.trusted.Signer, Changed: h.enrolled,
		Refused: h.takenBack,
	})
	return err
}

// byToken makes what asks for a certificate of the hub and keeps it. The first one is asked for by the bootstrap token,
// if there is one.
func (h *Hub) byToken(c enrol.Config) (*enrol.Keeper, error) {
	token := ""
	c.Dir = filepath.Join(h.DataDir, "pki")
	k, err := h.keeper(c, func(k *enrol.Keeper) http.RoundTripper {
		if token != "" && k.Get() == nil {
			return credential.Bearer{With: token, RoundTripper: h.cloud.Way(uplink.ClassControl, uplink.AsCaller)}
		}
		return h.asks()
	})
	if err == nil && k.Get() == nil && h.given(bootstrapToken) {
		token, err = credential.BootstrapToken(h.etc(bootstrapToken))
	}
	return k, err
}

// buildForwarder gets the certificate of a leader that forwards heartbeats. The hub asks for it while it leads. It
// lives for an hour, so it is kept nowhere.
func (h *Hub) buildForwarder() (err error) {
	if !h.EnableCoordinator {
		return nil
	}
	h.forward, err = h.keeper(enrol.Config{Identity: pki.Must(pki.Forwarder), Idle: true, Changed: func() {
		h.cloud.RenewAs(uplink.AsForwarder)
		h.forwarding.Look()
	}}, func(*enrol.Keeper) http.RoundTripper { return h.asks() })
	return err
}

// keeper makes what asks for a certificate of this node. way is by whom it asks.
func (h *Hub) keeper(c enrol.Config, way func(*enrol.Keeper) http.RoundTripper) (k *enrol.Keeper, err error) {
	if c.Subject.Pool == "" && c.Subject.Node == "" {
		c.Subject = pki.Subject{Pool: h.NodePoolName, Node: h.NodeName}
	}
	c.Cloud = roundTripper(func(req *http.Request) (*http.Response, error) { return way(k).RoundTrip(req) })
	c.Clock, c.Metrics, c.Logger = provenClock{h.clock, h.time}, h.asking, h.Logger
	if k, err = enrol.Open(c); err != nil {
		return nil, err
	}
	h.keepers = append(h.keepers, k)
	return k, nil
}

// provenClock runs as this machine's and shows the time by which certificates are judged: a machine that starts in 1970
// would take each for one that has not begun.
type provenClock struct {
	clock.WithTicker
	time *pki.Proven
}

func (c provenClock) Now() time.Time { return c.time.Now() }

func (c provenClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// leads follows who leads: only a leader needs the certificate of a forwarder, and reports whom the pool has heard.
func (h *Hub) leads(yes bool) {
	if k, ok := h.forward.(*enrol.Keeper); ok {
		k.Want(yes)
	}
	h.reporter.Lead(yes)
}

// certificates are all that the hub has and needs.
func (h *Hub) certificates() (all []pooldoor.Certificate) {
	add := func(k pki.Kind, c uplink.Certificate) {
		if now := c.Get(); now != nil && now.Leaf != nil {
			_, renews := c.(*enrol.Keeper)
			all = append(all, pooldoor.Certificate{Kind: k, Cert: now, Renews: renews})
		}
	}
	if u, ok := h.node.(*uplink.User); ok {
		add(pki.Kubelet, u.Own)
	} else {
		add(pki.Kubelet, h.node)
	}
	if h.atCloud.Own != nil {
		add(pki.HubAtCloud, h.atCloud.Own)
	}
	add(pki.Door, h.serving.cert)
	if h.member != nil {
		add(pki.Hub, h.member)
	}
	for _, k := range h.beside {
		add(k.Identity.Kind, k)
	}
	if k, asked := h.forward.(*enrol.Keeper); h.forward != nil && (!asked || k.Wanted()) {
		add(pki.Forwarder, h.forward)
	}
	return all
}

// roundTripper is a function that is one.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
