// Package notices is a hub's part in what its pool holds in common: the denylist and the authorities. It reads them in the cloud, exchanges them with the coordinator, gives
// back to the cloud what that has forgotten, and tells on the Node what this hub holds.
//
// Run has one goroutine for each, which end with its context.
package notices

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/denylist"
	"github.com/weir-edge/weir/impl/holding"
	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/notice"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/trust"
)

// Config of Notices. All fields are required.
type Config struct {
	Pool, Node   string
	Trusted      *trust.Held
	Denied       *denylist.Held
	Coordinator  *coordinator.Client
	AsHub        http.RoundTripper // to the cloud
	AsNode       http.RoundTripper
	Certificates func() []Certificate
	Clock        clock.WithTicker
	Logger       *slog.Logger
}

// Certificate is one that the hub has.
type Certificate struct {
	Kind   pki.Kind
	Cert   *tls.Certificate
	Renews bool // by itself
}

// Notices are what a hub holds in common with its pool.
type Notices struct {
	Config
	shared atomic.Uint64 // the number of the authorities that the coordinator in use holds, too
}

// New returns what does nothing yet.
func New(c Config) *Notices { return &Notices{Config: c} }

// Run keeps all up to date until ctx ends.
func (n *Notices) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for _, run := range []func(){
		func() { _ = n.Coordinator.ShareDenied(ctx) },
		func() { n.Trusted.Share(ctx, n.Clock, func() { n.exchange(ctx) }) },
		func() { n.Trusted.Follow(ctx, n.AsHub, n.Clock) },
		func() { n.Denied.Follow(ctx, n.AsHub, n.Clock) },
		func() {
			notice.Returner{
				Pool: n.Pool, Cloud: n.AsHub, Clock: n.Clock, Logger: n.Logger,
				Lacks: map[string]func(time.Time) []byte{contract.TrustKey: n.Trusted.Lacking, contract.DenylistKey: n.Denied.Lacking},
			}.Run(ctx)
		},
		func() {
			holding.Teller{Node: n.Node, Cloud: n.AsNode, Read: n.holds, Clock: n.Clock, Logger: n.Logger}.Run(ctx)
		},
	} {
		all.Go(run)
	}
	all.Wait()
	return nil
}

// exchange lets this hub and the replica in use know the same authorities, whoever heard of them first.
func (n *Notices) exchange(ctx context.Context) {
	r, asking, cancel := n.Coordinator.With(ctx)
	defer cancel()
	number := n.Trusted.Number()
	if err := n.Trusted.Exchange(asking, r.Transport, r.URL.JoinPath(contract.TrustPath)); err != nil {
		n.Logger.Debug("the coordinator does not take or show the authorities of the pool", "err", err)
		return
	}
	if n.Trusted.Number() == number { // else it is looked again at once
		n.shared.Store(number)
	}
}

// holds is what the Node says. A trust bundle is held when the coordinator holds it, too.
func (n *Notices) holds() holding.Holding {
	all := holding.Holding{Trust: n.shared.Load(), Certificates: map[string]holding.Life{}}
	for _, c := range n.Certificates() {
		switch c.Kind {
		case pki.Hub, pki.HubAtCloud, pki.Coordinator, pki.Replica: // others are the node's own, or live for an hour
			all.Certificates[string(c.Kind)] = holding.Life{Begin: c.Cert.Leaf.NotBefore.UTC(), End: c.Cert.Leaf.NotAfter.UTC(), Renews: c.Renews}
		}
	}
	return all
}
