package hub

import (
	"context"
	"crypto/tls"
	"log/slog"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/hub/uplink"
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
