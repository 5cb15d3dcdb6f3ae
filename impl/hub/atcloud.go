package hub

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"path/filepath"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/enrol"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/pki"
)

// atCloudEvery is how often it is looked whether the hub's own certificate for the cloud has come or ended.
const atCloudEvery = time.Minute

// atCloud is who the hub is at the cloud: a user of its own, and its node while it has no certificate of that user which still lives. The node's has no right to
// what relays hold, unless somebody granted it; what a relay may not read is the cloud's to answer.
type atCloud struct {
	user, nodeUser string
	own            uplink.Certificate // nil: there is none, and none comes
	node           uplink.Certificate
	now            func() time.Time
	changed        func() // another user from now on, or another certificate
	swept          func() // at every look
	clock          clock.WithTicker
	logger         *slog.Logger
	look           chan struct{}
	said           string // of Run alone
}

// buildAtCloud gets the certificate of the hub's own user: from files, or one that the hub asks for itself. Where certificates in the pool come from files and this
// one does not, the hub is its node.
func (h *Hub) buildAtCloud() (*atCloud, error) {
	a := &atCloud{
		user:     contract.HubUserPrefix + h.NodePoolName + ":" + h.NodeName,
		nodeUser: contract.NodeUserPrefix + h.NodeName, node: h.node, now: h.now, clock: h.clock, logger: h.Logger, look: make(chan struct{}, 1),
		changed: func() { h.cloud.RenewAs(uplink.AsHub) }, swept: func() { h.cloud.Sweep() },
	}
	switch {
	case h.CloudHubCertFile != "":
		p, err := h.reload.Pair("--cloud-hub-cert-file", h.CloudHubCertFile, "--cloud-hub-key-file", h.CloudHubKeyFile)
		if err != nil {
			return nil, err
		}
		if got := p.Get().Leaf.Subject.CommonName; got != a.user {
			return nil, cli.Usage("--cloud-hub-cert-file", h.CloudHubCertFile, "a certificate of the user "+a.user+", and not of "+got)
		}
		a.own = p
	case h.asksAtCloud():
		token := ""
		k, err := h.keeper(enrol.Config{Identity: pki.Must(pki.HubAtCloud), Dir: filepath.Join(h.DataDir, "pki"), Changed: a.poke}, func(k *enrol.Keeper) http.RoundTripper {
			if token != "" && k.Get() == nil {
				return bearer{token, h.cloud.Way(uplink.ClassControl, uplink.AsCaller)}
			}
			return h.asks()
		})
		if err != nil {
			return nil, err
		}
		if a.own = k; k.Get() == nil {
			if token, err = readToken(h.BootstrapTokenFile); err != nil {
				return nil, err
			}
		}
	}
	return a, nil
}

// asksAtCloud tells whether the hub asks for the certificate of its own user.
func (s *settings) asksAtCloud() bool {
	return s.CloudHubCertFile == "" && s.CoordinatorClientCertFile == "" && s.CoordinatorClientKeyFile == ""
}

// retry asks again for what failed because the cloud was away.
func (h *Hub) retry() {
	if h.cloud.Healthy() {
		for _, k := range h.keepers {
			k.Retry()
		}
	}
}

// asks is the way of requests for certificates: as the node. The hub's own user may only read.
func (h *Hub) asks() http.RoundTripper { return h.cloud.Way(uplink.ClassNode, uplink.AsNode) }

// Get implements uplink.Certificate.
func (a *atCloud) Get() *tls.Certificate {
	if own, _ := a.usable(); own != nil {
		return own
	}
	return a.node.Get()
}

// usable is the own certificate, or why it cannot be used.
func (a *atCloud) usable() (own *tls.Certificate, why string) {
	if a.own == nil {
		return nil, "it has none of its own, see --cloud-hub-cert-file"
	}
	own = a.own.Get()
	switch {
	case own == nil:
		return nil, "its own is not there yet"
	case own.Leaf != nil && a.now().After(own.Leaf.NotAfter):
		return nil, "its own has ended"
	}
	return own, ""
}

// User is who the hub is now, and why not itself.
func (a *atCloud) User() (user, why string) {
	if _, why := a.usable(); why != "" {
		return a.nodeUser, why
	}
	return a.user, ""
}

// poke says that there is another certificate. It never blocks.
func (a *atCloud) poke() {
	a.changed()
	select {
	case a.look <- struct{}{}:
	default:
	}
}

// Run follows what the hub is until ctx ends, and tells of it.
func (a *atCloud) Run(ctx context.Context) error {
	tick := a.clock.NewTicker(atCloudEvery)
	defer tick.Stop()
	for {
		a.tell()
		a.swept()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C():
		case <-a.look:
		}
	}
}

// tell logs who the hub is, once for each change. Connections that were opened as somebody else take no new requests then.
func (a *atCloud) tell() {
	user, why := a.User()
	former := a.said
	a.said = user + why
	switch {
	case former == user+why:
		return
	case why == "":
		a.logger.Info("the hub is a user of its own at the cloud", "user", user)
	default:
		a.logger.Warn("the hub is its node at the cloud, which may not read what relays hold unless that was granted", "user", user, "why", why)
	}
	if former != "" {
		a.changed()
	}
}
