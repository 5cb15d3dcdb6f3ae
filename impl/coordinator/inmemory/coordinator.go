package inmemory

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/lead"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/exchange"
	"github.com/weir-edge/weir/impl/lease"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/scope"
	"github.com/weir-edge/weir/impl/source/hop"
)

// FreshWithin is for how long a relay is ready after the last sign of its source.
const FreshWithin = 30 * time.Second

// Config is what a Coordinator is made of. All is needed but Trusted.
type Config struct {
	Pool   string
	Relays []*relay.Relay // run by the caller that made them
	Leases *lease.Store
	Line   func(node, address string) *hop.Line // leads to a hub, see Lines
	Clock  clock.WithTicker
	// Trusted are the authorities of the pool, by which it knows what the pool is told about itself; nil: it takes and
	// shows nothing of it.
	Trusted func() []*x509.Certificate
}

// Coordinator is the API of a pool. It serves anyone who shows a certificate that its server has verified.
type Coordinator struct {
	http.Handler
	Documents lead.Documents
	relays    []*relay.Relay
	vote      *lead.Election
	puller    *lead.Puller
}

// New starts nothing. The Leases obey the new Coordinator from now on.
func New(c Config) (*Coordinator, error) {
	logger := slog.New(slog.DiscardHandler)
	x := &Coordinator{relays: c.Relays}
	x.vote = &lead.Election{
		Store: c.Leases, Fence: &member.Fence{Incarnation: c.Leases.Life()}, Bars: &lead.Bars{}, Clock: c.Clock,
		Logger: logger,
	}
	ready := lead.Readiness{FreshWithin: FreshWithin, Floor: func(string) uint64 { return 0 }, Clock: c.Clock}
	relays := scope.NewSet(c.Relays...)
	x.puller = lead.NewPuller(lead.PullConfig{
		Relays: relays.All, Fence: x.vote.Fence, Bars: x.vote.Bars, Line: c.Line, Leases: x.vote, Unready: ready.Unready,
		Majority: func() error { return nil },
		Beside:   func(ctx context.Context, up *hop.Upstream) { x.Documents.Keep(ctx, up, c.Clock) },
		Freed:    func(string) {}, Refilled: func(_, _ string) {}, Clock: c.Clock, Logger: logger,
	})
	x.vote.Fence.Moved, x.vote.Held = x.puller.Moved, x.puller.Held
	Obey(c.Leases, x.vote)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		for _, r := range c.Relays {
			if err := ready.Waits(r); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
	})
	none := func() []string { return nil }
	mux.Handle("GET "+contract.StatusPath, &lead.Reporter{
		Pool: c.Pool, Fence: x.vote.Fence, Relays: relays.All, Unknown: none, Idle: none, Ready: ready, Puller: x.puller,
		Doubt: func() *contract.Doubt { return nil }, Clock: c.Clock,
	})
	if c.Trusted != nil {
		mux.Handle(contract.DirectoryPath, directory.New(directory.Config{
			Pool: c.Pool, Trusted: c.Trusted, Speakers: c.Trusted, Clock: c.Clock, Logger: logger,
		}))
	}
	leads := func(node string) bool { return x.Leader().Node == node }
	mux.Handle(contract.RollPath, new(exchange.RollCall).Handler(nodeOf, leads))
	mux.Handle(contract.ImagesPath, (&exchange.Images{Clock: c.Clock}).Handler(nodeOf))
	mux.Handle(contract.MovedPath, (&exchange.Moved{Clock: c.Clock}).Handler(nodeOf))
	mux.Handle("GET "+contract.DocumentsPath, x.Documents.Serve(x.puller.Upstream))
	mux.Handle("/apis/coordination.k8s.io/v1/namespaces/", c.Leases.Handler(userOf))
	for _, r := range c.Relays {
		h := &rest.Handler{Source: r}
		mux.HandleFunc("GET "+r.Resource().Path()+"/"+r.Resource().Resource, func(w http.ResponseWriter, req *http.Request) {
			if s := r.Status(); s.Synced {
				age, _ := s.Age(c.Clock.Now())
				w.Header().Set(contract.AgeHeader, strconv.FormatInt(int64(age.Seconds()), 10))
			}
			h.ServeHTTP(w, req)
		})
	}
	x.Handler = mux
	return x, nil
}

// Obey lets an election decide who may write Leases, and shows it each write. Nobody may use the Leases meanwhile.
func Obey(leases *lease.Store, e *lead.Election) {
	leases.Policy = lease.Policy{
		Write: func(ctx context.Context, user string, l, old *coordinationv1.Lease) error {
			return e.Check(ctx, lead.LeaseCaller{Near: true, Node: ofHub(user)}, l, old)
		},
		Applied: func(l *coordinationv1.Lease) { e.Wrote(l, false) },
	}
}

// Run pulls and follows the election until ctx ends.
func (x *Coordinator) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return x.vote.Run(ctx) })
	g.Go(func() error { return x.puller.Run(ctx) })
	for _, r := range x.relays {
		g.Go(func() error { return x.puller.Feed(ctx, r) })
	}
	return g.Wait()
}

// Leader is who holds the election Lease.
func (x *Coordinator) Leader() member.Leader { return x.vote.Fence.Leader() }

// ofHub is the node whose hub a user is, "" if it is none.
func ofHub(user string) string {
	if node, hub := strings.CutPrefix(user, contract.NodeUserPrefix); hub {
		return node
	}
	return ""
}

// nodeOf is the node whose hub asks.
func nodeOf(req *http.Request) string { return ofHub(userOf(req)) }

// userOf is the user of a client's certificate.
func userOf(req *http.Request) string {
	if certs := req.TLS.PeerCertificates; len(certs) > 0 {
		return certs[0].Subject.CommonName
	}
	return ""
}

// Lines makes the lines of a coordinator to hubs, which it knows by the nodes of their certificates. It trusts any
// authority.
func Lines(cert tls.Certificate, dial func(ctx context.Context, node, address string) (net.Conn, error)) func(
	node, address string) *hop.Line {
	return func(node, address string) *hop.Line {
		return hop.NewLine(hop.LineConfig{
			Name: node, Clock: clock.RealClock{},
			Dial: func(ctx context.Context) (net.Conn, error) { return dial(ctx, node, address) },
			TLS: &tls.Config{
				//nolint:gosec // hubs are known by their nodes
				MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, InsecureSkipVerify: true,
				VerifyConnection: func(s tls.ConnectionState) error {
					if name := s.PeerCertificates[0].Subject.CommonName; name != contract.NodeUserPrefix+node {
						return errors.New("it is " + name)
					}
					return nil
				},
			},
		})
	}
}
