package attack

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/testca"
)

// Patience with a busy machine; nothing is judged by it but that something comes at all.
const (
	patience = 90 * time.Second
	look     = 100 * time.Millisecond
)

// door is where something is sent.
type door string

const (
	hubDoor         door = "hub"         // TLS of the first node's hub
	secondHub       door = "hub 2"       // of the second
	plainDoor       door = "plain hub"   // plain HTTP of the first
	healthDoor      door = "health"      // plain HTTP of health and metrics of the first
	poolDoor        door = "pool port"   // of the first node's hub, for its pool
	coordinatorDoor door = "coordinator" // of the pool
	cloudDoor       door = "cloud"       // kube-apiserver itself
	gateDoor        door = "gate"        // weir-gate
)

// ground is a place that is up.
type ground struct {
	*stage
	place *place

	mu     sync.Mutex
	actors map[string]actor
}

// newGround starts what runs at a place from the beginning.
func newGround(ctx context.Context, s *stage, p *place) (*ground, error) {
	g := &ground{stage: s, place: p, actors: map[string]actor{}}
	if err := g.cast(ctx); err != nil {
		return nil, err
	}
	for id, wanted := range map[runtime.PartID]bool{runtime.Manager: p.manager, runtime.Gate: p.gate} {
		if !wanted {
			continue
		}
		if err := s.start(ctx, id); err != nil {
			return nil, err
		}
	}
	var ids []runtime.PartID
	switch {
	case p.coordinators > 1:
		for n := range p.coordinators {
			ids = append(ids, runtime.ReplicaOf(p.name, n+1))
		}
	case p.coordinators == 1:
		ids = append(ids, runtime.CoordinatorOf(p.name))
	}
	for _, n := range p.hubs {
		ids = append(ids, runtime.HubOf(g.node(n)))
	}
	if err := runtime.Start(ctx, s.site, ids...); err != nil {
		return nil, err
	}
	doors := []door{hubDoor, secondHub}
	for _, n := range p.hubs {
		q := ask{as: "reader", at: doors[n-1], path: slices1, codes: ok, has: "shop-1"}
		if err := until(ctx, "hub "+strconv.Itoa(n)+" to serve", func() bool { return g.send(ctx, q).right(q) }); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// close stops what runs, so that the machine is free for others.
func (g *ground) close(ctx context.Context) error {
	var all []error
	for _, id := range g.site.Parts() {
		part, err := g.site.Part(id)
		if err != nil {
			return err
		}
		if g.has(id) && part.Running() {
			all = append(all, part.Stop(ctx))
		}
	}
	return errors.Join(all...)
}

func (g *ground) has(id runtime.PartID) bool {
	switch id.Kind() {
	case "coordinator":
		return id.Of() == g.place.name
	case "hub":
		for n := range g.place.nodes {
			if id.Of() == g.node(n+1) {
				return true
			}
		}
	}
	return false
}

// node is the name of a node of the place, from 1.
func (g *ground) node(n int) string { return g.place.name + "-" + strconv.Itoa(n) }

// cast makes the identities that every attack may use by name.
func (g *ground) cast(ctx context.Context) error {
	for name, account := range map[string]string{
		"reader": "a/reader", "other": "c/other", "narrow": "c/narrow", "named": "c/named", "lister": "c/lister",
		"watcher": "c/watcher",
	} {
		token, err := g.token(ctx, account, nil)
		if err != nil {
			return err
		}
		g.let(name, actor{token: token})
	}
	for n := range g.place.nodes {
		suffix := ""
		if n > 0 {
			suffix = " " + strconv.Itoa(n+1)
		}
		kubelet, err := g.vault.Cloud().KubeletCertificate(g.node(n+1), 0)
		if err != nil {
			return err
		}
		hub, err := g.vault.Cloud().HubCertificate(g.place.name, g.node(n+1), 0)
		if err != nil {
			return err
		}
		if err := errors.Join(g.certify("kubelet"+suffix, kubelet), g.certify("hub"+suffix, hub)); err != nil {
			return err
		}
		if err := g.enroll(
			"member"+suffix, g.place.name, g.place.name, contract.NodeUserPrefix+g.node(n+1), contract.HubGroup,
		); err != nil {
			return err
		}
	}
	forwarder, err := g.vault.Cloud().ForwarderCertificate(g.place.name, g.node(1))
	if err != nil {
		return err
	}
	return errors.Join(g.certify("forwarder", forwarder), g.enroll(
		"viewer", g.place.name, g.place.name, "viewer", contract.ViewerGroup,
	),
		g.enroll("foreigner", foreign, foreign, contract.NodeUserPrefix+foreign+"-1", contract.HubGroup),
		g.enroll("shared foreigner", g.place.name, foreign, contract.NodeUserPrefix+foreign+"-1", contract.HubGroup))
}

// enroll makes an identity at coordinators: signed by the authority of one pool, and of another one by what its
// certificate says.
func (g *ground) enroll(name, signer, pool, user, group string) error {
	a, err := g.vault.Authority(signer)
	if err != nil {
		return err
	}
	pair, err := a.Issue(
		testca.Request{CommonName: user, Organizations: []string{contract.PoolGroupPrefix + pool, group}, Client: true},
	)
	if err != nil {
		return err
	}
	return g.certify(name, pair)
}

func (g *ground) certify(name string, pair *testca.Pair) error {
	cert, err := pair.TLS()
	if err != nil {
		return err
	}
	g.let(name, actor{cert: &cert})
	return nil
}

// let gives a name to an identity.
func (g *ground) let(name string, a actor) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.actors[name] = a
}

// who is an identity by its name; "" is nobody.
func (g *ground) who(name string) (actor, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a, ok := g.actors[name]
	if !ok && name != "" {
		return actor{}, fmt.Errorf("nobody is called %q here", name)
	}
	return a, nil
}

// address is the "host:port" of a door, and how TLS is spoken there; nil: it is not.
func (g *ground) address(d door) (string, *tls.Config, error) {
	trust := func(pool *x509.CertPool) *tls.Config { return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12} }
	authority, err := g.vault.Authority(g.place.name)
	if err != nil {
		return "", nil, err
	}
	switch d {
	case cloudDoor:
		return g.vault.Cloud().Addr(), trust(g.vault.Cloud().CA().Pool()), nil
	case coordinatorDoor:
		address, err := g.vault.Coordinator(g.place.name)
		return address, trust(authority.Pool()), err
	case gateDoor:
		address, own, err := g.vault.Gate()
		if err != nil {
			return "", nil, err
		}
		return address, trust(own.Pool()), nil
	}
	n := 1
	if d == secondHub {
		n = 2
	}
	e, err := g.site.Endpoint(g.node(n), runtime.ClassNode)
	if err != nil {
		return "", nil, err
	}
	host, port, err := net.SplitHostPort(e.URL[len("https://"):])
	if err != nil {
		return "", nil, err
	}
	switch d {
	case plainDoor:
		return net.JoinHostPort(host, strconv.Itoa(contract.HubProxyPort)), nil, nil
	case poolDoor: // its certificate names the node, which who pulls from it knows
		//nolint:gosec // see above
		return net.JoinHostPort(host, strconv.Itoa(contract.HubPoolPort)),
			&tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}, nil
	case healthDoor:
		return net.JoinHostPort(host, strconv.Itoa(contract.HubHealthPort)), nil, nil
	}
	config, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: e.Trust()})
	return net.JoinHostPort(host, port), config, err
}

// hub is a hub of the place, from 1.
func (g *ground) hub(n int) runtime.Part {
	part, err := g.site.Part(runtime.HubOf(g.node(n)))
	if err != nil {
		panic(err) // the place has fewer nodes: a mistake of the table
	}
	return part
}

func (g *ground) metrics(ctx context.Context, n int) parts.Metrics {
	m, err := g.hub(n).Metrics(ctx)
	if err != nil {
		return nil
	}
	return m
}

// cut cuts the uplink, and waits until the hubs that run know.
func (g *ground) cut(ctx context.Context) error {
	g.site.Link(g.place.name).Cut(link.Both, "")
	return g.untilCloud(ctx, 0)
}

// heal undoes cut.
func (g *ground) heal(ctx context.Context) error {
	g.site.Link(g.place.name).Heal(link.Both, "")
	return g.untilCloud(ctx, 1)
}

func (g *ground) untilCloud(ctx context.Context, healthy float64) error {
	for n := range g.place.nodes {
		if !g.hub(n + 1).Running() {
			continue
		}
		if err := until(ctx, fmt.Sprintf("hub %d to see the cloud come or go", n+1), func() bool {
			m := g.metrics(ctx, n+1)
			return m != nil && m.Sum("weir_hub_cloud_server_healthy") == healthy
		}); err != nil {
			return err
		}
	}
	return nil
}

// until waits for something that has to come.
func until(ctx context.Context, what string, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("not within %v: %s", patience, what)
		}
	}
	return nil
}

// within reports whether something comes in a time.
func within(ctx context.Context, d time.Duration, holds func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return holds()
		}
	}
	return true
}

// connections counts the TCP connections that crossed the uplink so far.
func (g *ground) connections() int { return len(g.site.Link(g.place.name).Connections()) }

// crossed counts the bytes that crossed the uplink so far.
func (g *ground) crossed() int64 {
	return link.Sum(g.site.Link(g.place.name).Counters(), func(link.Counter) bool { return true })
}

// coordinator is the coordinator of the place.
func (g *ground) coordinator() runtime.Part {
	part, err := g.site.Part(runtime.CoordinatorOf(g.place.name))
	if err != nil {
		panic(err) // the place has none: a mistake of the table
	}
	return part
}

// poolStatus is what attacks look at in a coordinator's status.
type poolStatus struct {
	Incarnation string `json:"incarnation"`
	Leader      string `json:"leader"`
	Term        string `json:"term"`
	Ready       bool   `json:"ready"`
}

func (g *ground) poolStatus(ctx context.Context) (s poolStatus) {
	_ = g.coordinator().Status(ctx, &s)
	return s
}

// untilLed waits for a leader that feeds the pool.
func (g *ground) untilLed(ctx context.Context) error {
	return until(ctx, "a leader that feeds the coordinator",
		func() bool { s := g.poolStatus(ctx); return s.Leader != "" && s.Ready })
}
