package pooldoor

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/bulletin"
	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/trust"
)

// NoticesConfig is what Notices are made of. All fields are required.
type NoticesConfig struct {
	Pool, Node   string
	Trusted      *trust.Held
	Board        bulletin.Board // Trusted, and what its authorities sign
	Coordinator  *coordinator.Client
	AsHub        http.RoundTripper // to the cloud
	AsNode       http.RoundTripper
	Certificates func() []Certificate
	Follows      func() bool // another hub of the pool watches the cloud for it
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
	NoticesConfig
	shared atomic.Uint64 // the number of the authorities that the coordinator in use holds, too
}

// NewNotices returns what does nothing yet.
func NewNotices(c NoticesConfig) *Notices { return &Notices{NoticesConfig: c} }

// Run keeps all up to date until ctx ends.
func (n *Notices) Run(ctx context.Context) error {
	n.Board[0].Agreed = func(tag string) {
		number := n.Trusted.Number()
		if _, now := n.Trusted.Text(); now == tag { // else it is exchanged once more at once
			n.shared.Store(number)
		}
	}
	for _, d := range n.Board {
		d.Follows = n.Follows
	}
	var all sync.WaitGroup
	all.Go(func() { n.Board.Run(ctx, n.Clock, n.Coordinator.Meet, n.AsHub) })
	all.Go(func() {
		bulletin.Returner{Pool: n.Pool, Cloud: n.AsHub, Board: n.Board, Clock: n.Clock, Logger: n.Logger}.Run(ctx)
	})
	all.Go(func() {
		digest.Teller{Node: n.Node, Cloud: n.AsNode, Read: n.holds, Clock: n.Clock, Logger: n.Logger}.Run(ctx)
	})
	all.Wait()
	return nil
}

// Confirm takes the sum of all documents of the pool, as weir-manager has signed it after a time.
func (n *Notices) Confirm(documents string, after time.Time) {
	if n.Follows() {
		n.Board.Confirm(documents, after, n.Clock.Now())
	}
}

// holds is what the Node says. A trust bundle is held when the coordinator holds it, too.
func (n *Notices) holds() digest.Holding {
	all := digest.Holding{Trust: n.shared.Load(), Certificates: map[string]digest.Life{}}
	for _, c := range n.Certificates() {
		switch c.Kind {
		case pki.Hub, pki.HubAtCloud, pki.Coordinator, pki.Replica: // others are the node's own, or live for an hour
			all.Certificates[string(c.Kind)] = digest.Life{
				Begin: c.Cert.Leaf.NotBefore.UTC(), End: c.Cert.Leaf.NotAfter.UTC(), Renews: c.Renews,
			}
		}
	}
	return all
}
