package bench

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/credential"
	weirpki "github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/trust"
	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/runner"
	"github.com/weir-edge/weir/sim/runtime"
)

const (
	certifiedPool = "certified"
	wirePool      = "wire" // whose link is counted
	wireClass     = "certificates"
	certPatience  = 2 * time.Minute
	still         = 500 * time.Millisecond // without a byte: what was asked for has crossed
	// of the denylist, and of the pool's authorities, which costs the same: each lasts twelve hours.
	watchesADay = 4
	halfLife    = 0.75 // of a life, on the average, after which a certificate is renewed
	certPoll    = 50 * time.Millisecond
)

// certified is that benchmark under way: a control plane, weir-manager, and what a hub runs for its certificates behind
// a link of its own.
type certified struct {
	site     runtime.Site
	admin    kubernetes.Interface
	roots    []*x509.Certificate
	asNode   tls.Certificate
	told     uint64 // times that a Node has said what its hub holds
	progress func(string)
}

// Certificates measures what certificates cost the uplink: asking for one, and the watch of what is revoked. From that
// follows what a year of them costs a node each day.
func Certificates(ctx context.Context, rounds int, progress func(string)) (_ []Figure, err error) {
	c := &certified{progress: progress}
	c.site, err = (&runtime.Local{}).Up(ctx, runtime.Topology{Manager: true, Pools: []runtime.Pool{
		{Name: certifiedPool, Nodes: 2, Mode: runtime.Weir, Enrols: true},
		{Name: wirePool, Nodes: 1, Mode: runtime.Stock, Bare: true},
	}}, progress)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.site.Down(context.WithoutCancel(ctx))) }()
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	return c.measure(ctx, rounds)
}

func (c *certified) start(ctx context.Context) (err error) {
	if c.admin, err = kubernetes.NewForConfig(c.site.Admin()); err != nil {
		return err
	}
	if err := runtime.Start(ctx, c.site, runtime.Manager); err != nil {
		return err
	}
	vault := c.site.(runtime.Vault)
	pair, err := vault.Cloud().KubeletCertificate(certifiedPool+"-1", 0)
	if err != nil {
		return err
	}
	if c.asNode, err = pair.TLS(); err != nil {
		return err
	}
	authority, err := vault.Authority(certifiedPool)
	if err != nil {
		return err
	}
	c.roots, err = weirpki.ParseCertificates(authority.CertPEM())
	return err
}

// wire is a connection of its own to the cloud, over the link.
func (c *certified) wire() (by http.RoundTripper, idle func(), err error) {
	e, err := c.site.Endpoint(wirePool+"-1", wireClass)
	if err != nil {
		return nil, nil, err
	}
	at, err := url.Parse(e.URL)
	if err != nil {
		return nil, nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(e.CAPEM)
	t := &http.Transport{
		ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{
			RootCAs: roots, Certificates: []tls.Certificate{c.asNode}, MinVersion: tls.VersionTLS13,
		},
	}
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		req = req.Clone(req.Context())
		req.URL.Scheme, req.URL.Host = at.Scheme, at.Host
		return t.RoundTrip(req)
	}), t.CloseIdleConnections, nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// cost is how many bytes cross the link, both ways, until something is done and nothing crosses any more.
func (c *certified) cost(ctx context.Context, do func() error) (float64, error) {
	sum := func() int64 {
		return link.Sum(c.site.Link(wirePool).Counters(), func(x link.Counter) bool { return x.Class == wireClass })
	}
	before := sum()
	if err := do(); err != nil {
		return 0, err
	}
	last, since := sum(), time.Now()
	err := runner.Until(ctx, certPoll, certPatience, c.progress, func() (bool, string) {
		if now := sum(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > still, "waiting until nothing crosses the link"
	})
	return float64(sum() - before), err
}

// ask gets a certificate over a connection, as a hub does.
func (c *certified) ask(ctx context.Context, by http.RoundTripper, k weirpki.Kind) error {
	cfg := credential.KeeperConfig{
		Identity: weirpki.Must(k), Subject: weirpki.Subject{Pool: certifiedPool, Node: certifiedPool + "-1"},
		Clock: clock.RealClock{}, Metrics: credential.NewKeeperMetrics(), Logger: slog.New(slog.DiscardHandler),
	}
	if k == weirpki.Hub {
		cfg.Trusted = func() []*x509.Certificate { return c.roots }
	}
	keeper, err := credential.OpenKeeper(cfg)
	if err != nil {
		return err
	}
	return c.during(ctx, func(ctx context.Context) { _ = keeper.Run(ctx, by) }, string(k),
		func() bool { return keeper.Get() != nil })
}

// during runs something until a condition holds.
func (c *certified) during(ctx context.Context, run func(context.Context), what string, holds func() bool) error {
	running, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(running)
	}()
	err := runner.Until(ctx, certPoll, certPatience, c.progress,
		func() (bool, string) { return holds(), "waiting for " + what })
	stop()
	<-done
	return err
}

func (c *certified) denylist(ctx context.Context, by http.RoundTripper) error {
	h := trust.NewDenylist(trust.DenylistConfig{
		Pool: certifiedPool, Trusted: func() []*x509.Certificate { return c.roots }, Logger: slog.New(slog.DiscardHandler),
	})
	return c.during(ctx, func(ctx context.Context) { h.Follow(ctx, by, clock.RealClock{}) }, "the denylist",
		func() bool { return h.Number() > 0 })
}

// measured is one thing whose bytes are counted.
type measured struct {
	name, detail string
	fresh        bool // over a connection of its own
	do           func(context.Context, http.RoundTripper) error
	perDay       float64 // times a day, of each node
	perDayLeader float64 // beside that, of the one that leads
	samples      []float64
}

func (c *certified) things() []*measured {
	asked := func(k weirpki.Kind) func(context.Context, http.RoundTripper) error {
		return func(ctx context.Context, by http.RoundTripper) error { return c.ask(ctx, by, k) }
	}
	often := func(k weirpki.Kind) float64 { return 24 / (halfLife * weirpki.Must(k).Life.Usual.Hours()) }
	return []*measured{
		{
			name: "a node's first certificate", detail: "with the handshake of a connection of its own", fresh: true,
			do: asked(weirpki.Hub),
		},
		{name: "renewal of the hub's certificate in its pool", do: asked(weirpki.Hub), perDay: often(weirpki.Hub)},
		{
			name: "renewal of the hub's certificate for the cloud", do: asked(weirpki.HubAtCloud),
			perDay: often(weirpki.HubAtCloud),
		},
		{
			name: "renewal of a leader's certificate of a forwarder", do: asked(weirpki.Forwarder),
			perDayLeader: often(weirpki.Forwarder),
		},
		{
			name: "a watch of the denylist, until it is idle", detail: "one entry; nothing crosses then for twelve hours",
			do: c.denylist, perDay: watchesADay,
		},
		{
			name: "the Node says what its hub holds", detail: "after each renewal", do: c.tell, perDay: often(weirpki.Hub) +
				often(weirpki.HubAtCloud),
		},
	}
}

func (c *certified) measure(ctx context.Context, rounds int) ([]Figure, error) {
	by, idle, err := c.wire()
	if err != nil {
		return nil, err
	}
	defer idle()
	if err := c.ask(ctx, by, weirpki.Hub); err != nil { // from now on the pool has an authority and a roster
		return nil, err
	}
	roster := func() bool {
		m, err := c.admin.CoreV1().ConfigMaps(contract.KeyNamespace).Get(ctx, contract.RosterPrefix+certifiedPool,
			metav1.GetOptions{})
		return err == nil && len(m.Data) == 2
	}
	if err := runner.Until(ctx, certPoll, certPatience, c.progress,
		func() (bool, string) { return roster(), "waiting for the roster" }); err != nil {
		return nil, err
	}
	if err := c.admin.CoreV1().Nodes().Delete(ctx, certifiedPool+"-2", metav1.DeleteOptions{}); err != nil {
		return nil, err
	}
	all := c.things()
	for _, m := range all[1:] { // once for nothing: the grants have come, and the connection knows the headers
		if err := m.do(ctx, by); err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
	}
	for range rounds {
		for _, m := range all {
			n, err := c.once(ctx, m, by)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.name, err)
			}
			m.samples = append(m.samples, n)
		}
	}
	return figuresOf(all, rounds), nil
}

// once is what a thing costs, over the connection that is there or over its own.
func (c *certified) once(ctx context.Context, m *measured, by http.RoundTripper) (float64, error) {
	if m.fresh {
		own, idle, err := c.wire()
		if err != nil {
			return 0, err
		}
		defer idle()
		by = own
	}
	return c.cost(ctx, func() error { return m.do(ctx, by) })
}

// figuresOf are those of single things, and what they come to each day.
func figuresOf(all []*measured, rounds int) []Figure {
	node := Figure{
		Name: "certificates of a node, a day of a year", Unit: "B", Samples: make([]float64, rounds),
		Detail: "both ways, TLS and all: renewals at three quarters of 90 days, what the Node says after each, two " +
			"watches, of the denylist and of whom to trust, that are opened again every twelve hours",
	}
	leader := Figure{
		Name: "certificates of a leader beside that, a day", Unit: "B", Samples: make([]float64, rounds),
		Detail: "a forwarder's lives for an hour, and is renewed while its hub leads",
	}
	var figures []Figure
	for _, m := range all {
		figures = append(figures, Figure{Name: m.name, Unit: "B", Samples: m.samples, Detail: m.detail})
		for i, n := range m.samples {
			node.Samples[i] += n * m.perDay
			leader.Samples[i] += n * m.perDayLeader
		}
	}
	return append(figures, node, leader)
}
