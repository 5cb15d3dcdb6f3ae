package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/bench/peer"
	"github.com/weir-edge/weir/sim/client"
	"github.com/weir-edge/weir/sim/layout"
	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
	"github.com/weir-edge/weir/sim/testca"
	"github.com/weir-edge/weir/sim/workload"
)

// The sides of a comparison with a peer. The peer has the name of its profile.
const (
	sideReference = "reference" // one protobuf informer for each resource
	sideDirect    = "direct"    // every client straight to the cloud
	sideHub       = "hub"       // with Weir
)

// usage is a process that is measured.
type usage interface{ Usage() (proc.Usage, error) }

// side is one way to bring the cloud's objects to the clients of a pool. All sides are there at once and see the same
// changes.
type side struct {
	name    string
	nodes   []string
	link    *link.Pool
	hubs    []usage // one on each node; none on the sides without
	more    []usage // the coordinator
	streams []*client.Stream
	config  func(ctx context.Context, node, identity, class string) (*rest.Config, error)
	target  target // of the first node

	synced       time.Duration // from the start of the processes until all clients had everything
	startBytes   float64       // that crossed the uplink until then, both ways
	bytes, cpu   []float64     // of each round: MB, and seconds of the pool's processes
	lag50, lag99 []float64     // of each round: ms from a change at the cloud until a client saw it
	events       []float64     // that clients were shown in each round
	get50, get99 []float64     // of each round: ms
	getCPU       []float64     // ms of the node's process for each
	list50       []float64
	listCPU      []float64
}

// rival is a peer that is measured beside Weir.
type rival struct {
	Testbed
	rounds  int // of requests
	profile *peer.Profile

	scenario *scenario.Scenario
	site     runtime.Site
	admin    kubernetes.Interface
	spawner  *proc.Spawner
	peers    []*peer.Peer
	sides    []*side
	truth    map[string]*client.Stream // by what it is of
	work     *workload.Workload
	marker   *workload.Marker
	watching context.Context
	lose     context.CancelCauseFunc // ends the benchmark
	guards   sync.WaitGroup
	peaks    memoryPeaks
}

// Rival measures a peer beside Weir: the load of the traffic scenario over equal links from one kube-apiserver, at the
// same time.
func Rival(ctx context.Context, t Testbed, p *peer.Profile, rounds int) (_ []Figure, err error) {
	r := &rival{Testbed: t, rounds: rounds, profile: p, truth: map[string]*client.Stream{}}
	if r.scenario, err = t.load(trafficScenario); err != nil {
		return nil, err
	}
	if r.spawner, err = proc.New(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.spawner.Close()) }()
	logs, err := filepath.Abs(filepath.Join(t.Out, "logs"))
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.RemoveAll(logs), os.MkdirAll(logs, 0o755)); err != nil {
		return nil, err
	}
	if r.site, err = (&runtime.Local{LogDir: logs}).Up(ctx, r.topology(), t.Progress); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.site.Down(context.WithoutCancel(ctx))) }()
	ctx, lose := context.WithCancelCause(ctx)
	r.lose = lose
	watching, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		lose(nil)
		r.guards.Wait()
		for _, s := range r.streams() {
			s.Wait()
		}
	}()
	r.watching = watching
	for _, step := range []func(context.Context) error{r.fill, r.start, r.sync, r.churn, r.requests} {
		if err := step(ctx); err != nil {
			var lost *lostError
			if errors.As(context.Cause(ctx), &lost) {
				return nil, lost
			}
			return nil, err
		}
	}
	return r.figures(), nil
}

// lostError is of a peer that ended while it was measured.
type lostError struct{ how error }

func (e *lostError) Error() string { return "the peer ended while it was measured: " + e.how.Error() }

// guard ends the benchmark if a peer ends: its clients would wait for what never comes.
func (r *rival) guard(ctx context.Context) {
	for _, x := range r.peers {
		r.guards.Go(func() {
			select {
			case <-x.Done():
				r.lose(&lostError{x.Ended()})
			case <-ctx.Done():
			}
		})
	}
}

// topology has a pool for each side, each behind a link of its own.
func (r *rival) topology() runtime.Topology {
	weir := layout.WeirPool(r.scenario)
	weir.Name = "weir"
	flags := parts.Flags{"caller-rate": 100_000} // one caller asks as fast as it is answered
	maps.Copy(flags, weir.HubFlags)
	weir.HubFlags = flags
	stock := layout.Watching(r.scenario, runtime.Stock).Pools[0]
	alone, all, other := stock, stock, stock
	alone.Name, alone.Nodes, alone.Bare = sideReference, 1, true
	all.Name, all.Bare = sideDirect, true
	other.Name = r.profile.Name
	return runtime.Topology{Pools: []runtime.Pool{alone, all, weir, other}, Tools: r.profile.Needs()}
}

// fill writes the workload and follows it at the cloud.
func (r *rival) fill(ctx context.Context) (err error) {
	if r.admin, err = workload.NewClient(r.site.Admin()); err != nil {
		return err
	}
	if err := r.sideways(ctx); err != nil {
		return err
	}
	w := r.scenario.Workload
	r.work = workload.New(workload.Config{
		Seed: r.scenario.Seed, Services: w.Services, Endpoints: w.Endpoints, Nodes: r.side(sideHub).nodes,
	})
	if err := r.work.Fill(ctx, r.admin, nil); err != nil {
		return err
	}
	if r.marker, err = workload.NewMarker(ctx, r.admin); err != nil {
		return err
	}
	for _, kind := range r.kinds() {
		for _, spec := range client.Specs(kind) {
			if r.truth[content(spec)] != nil {
				continue
			}
			spec.JSON = false
			if r.truth[content(spec)], err = client.Start(r.watching, r.site.Admin(), spec); err != nil {
				return err
			}
		}
	}
	return nil
}

// kinds of clients that have streams.
func (r *rival) kinds() (kinds []string) {
	for _, k := range r.scenario.Clients {
		if len(client.Specs(string(k))) > 0 {
			kinds = append(kinds, string(k))
		}
	}
	return kinds
}

// content is what a stream is of, whatever form it comes in.
func content(s client.Spec) string { return s.Resource + " " + s.Selector }

// sideways makes the sides, with no process yet.
func (r *rival) sideways(ctx context.Context) error {
	for _, p := range r.topology().Pools {
		s := &side{name: p.Name, nodes: p.NodeNames(), link: r.site.Link(p.Name)}
		if p.Mode == runtime.Weir {
			s.name = sideHub
		}
		s.config = func(ctx context.Context, node, identity, class string) (*rest.Config, error) {
			e, err := r.site.Endpoint(node, class)
			if err != nil {
				return nil, err
			}
			token, err := r.site.Token(ctx, identity)
			if err != nil {
				return nil, err
			}
			return e.RESTConfig(token), nil
		}
		r.sides = append(r.sides, s)
	}
	return r.prepare(ctx, r.side(r.profile.Name))
}

func (r *rival) side(name string) *side {
	for _, s := range r.sides {
		if s.name == name {
			return s
		}
	}
	panic("no side " + name)
}

// prepare gives each node of the peer's side what a profile may ask for.
func (r *rival) prepare(ctx context.Context, s *side) error {
	var pool []peer.Neighbour
	for _, name := range s.nodes {
		n, err := r.admin.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, a := range n.Status.Addresses {
			if a.Type == corev1.NodeInternalIP {
				pool = append(pool, peer.Neighbour{Node: name, Address: a.Address})
				break
			}
		}
	}
	if len(pool) != len(s.nodes) {
		return fmt.Errorf("%d of %d nodes have an address", len(pool), len(s.nodes))
	}
	for i := range pool {
		m, err := r.machine(ctx, s, pool, i)
		if err != nil {
			return err
		}
		r.peers = append(r.peers, &peer.Peer{Machine: m})
	}
	return r.apply(ctx, r.peers[0].Machine)
}

func (r *rival) machine(ctx context.Context, s *side, pool []peer.Neighbour, i int) (m peer.Machine, err error) {
	m = peer.Machine{Node: pool[i].Node, Address: pool[i].Address, Pool: s.name, Nodes: pool}
	e, err := r.site.Endpoint(m.Node, s.name)
	if err != nil {
		return m, err
	}
	m.Cloud = e.URL
	if m.Port, err = freePort(ctx, m.Address); err != nil {
		return m, err
	}
	dir, err := r.spawner.Scratch(m.Node)
	if err != nil {
		return m, err
	}
	if m.Data, err = r.spawner.Scratch(m.Node, "data"); err != nil {
		return m, err
	}
	if m.CA, err = testca.WriteFile(dir, "ca.crt", e.CAPEM); err != nil {
		return m, err
	}
	signer, ok := r.site.(runtime.Signer)
	if !ok {
		return m, errors.New("the site signs no certificates")
	}
	user, groups, err := r.profile.User(m)
	if err != nil {
		return m, err
	}
	pair, err := signer.Sign(testca.Request{CommonName: user, Organizations: groups, Client: true})
	if err != nil {
		return m, err
	}
	if m.Cert, m.Key, err = pair.Write(dir, "client"); err != nil {
		return m, err
	}
	config, err := testca.Kubeconfig(m.Cloud, e.CAPEM, pair, "")
	if err != nil {
		return m, err
	}
	if m.Kubeconfig, err = testca.WriteFile(dir, "kubeconfig", config); err != nil {
		return m, err
	}
	serving, err := signer.Sign(testca.Request{CommonName: user, Organizations: groups, Client: true,
		Hosts: []string{
			m.Address, m.Node, "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local",
		}})
	if err != nil {
		return m, err
	}
	m.ServingCert, m.ServingKey, err = serving.Write(dir, "serving")
	return m, err
}

// freePort is a port of an address that nobody listens at.
func freePort(ctx context.Context, address string) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// apply writes the profile's objects at the cloud.
func (r *rival) apply(ctx context.Context, m peer.Machine) error {
	manifests, err := r.profile.Manifests(m)
	if err != nil || len(manifests) == 0 {
		return err
	}
	kubectl, err := r.site.Tool("kubectl")
	if err != nil {
		return err
	}
	home, err := r.spawner.Scratch("kubectl")
	if err != nil {
		return err
	}
	for i, text := range manifests {
		file, err := testca.WriteFile(home, fmt.Sprintf("objects-%d.yaml", i), []byte(text))
		if err != nil {
			return err
		}
		if _, err := client.Kubectl(ctx, kubectl, r.site.Admin(), home, "apply", "--server-side", "-f", file); err != nil {
			return fmt.Errorf("%s: %s is not taken by the cloud: %w", r.profile.Path(), r.profile.Objects[i], err)
		}
	}
	return nil
}

// start starts the processes of both pools at once.
func (r *rival) start(ctx context.Context) error {
	ours, theirs := r.side(sideHub), r.side(r.profile.Name)
	r.Progress(fmt.Sprintf("starting %d hubs, a coordinator, and %s on %d nodes", len(ours.nodes), r.profile.Name,
		len(theirs.nodes)))
	began := time.Now()
	token, err := r.site.Token(ctx, "kube-proxy")
	if err != nil {
		return err
	}
	ids := []runtime.PartID{runtime.CoordinatorOf("weir")}
	for _, n := range ours.nodes {
		ids = append(ids, runtime.HubOf(n))
	}
	g, inner := errgroup.WithContext(ctx)
	g.Go(func() error { return runtime.Start(inner, r.site, ids...) })
	for i, prepared := range r.peers {
		x, err := r.profile.Start(r.spawner, prepared.Machine, filepath.Join(r.Out, "logs", prepared.Machine.Node+".log"))
		if err != nil {
			return errors.Join(err, g.Wait())
		}
		r.peers[i] = x
		theirs.hubs = append(theirs.hubs, x)
		g.Go(func() error { return x.Ready(inner, token) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	r.guard(ctx)
	r.Progress(fmt.Sprintf("all are ready after %v", time.Since(began).Round(100*time.Millisecond)))
	for i, id := range ids {
		p, err := r.site.Part(id)
		if err != nil {
			return err
		}
		if i == 0 {
			ours.more = append(ours.more, p)
		} else {
			ours.hubs = append(ours.hubs, p)
		}
	}
	byNode := map[string]*peer.Peer{}
	for _, x := range r.peers {
		byNode[x.Machine.Node] = x
	}
	theirs.config = func(ctx context.Context, node, identity, _ string) (*rest.Config, error) {
		token, err := r.site.Token(ctx, identity)
		if err != nil {
			return nil, err
		}
		return byNode[node].Config(token), nil
	}
	return r.aim(ctx)
}

// aim makes each side the target of requests.
func (r *rival) aim(ctx context.Context) error {
	for _, s := range r.measured() {
		c, err := s.config(ctx, s.nodes[0], "kube-proxy", runtime.ClassNode)
		if err != nil {
			return err
		}
		s.target = target{name: s.name, url: c.Host, trust: c.TLSClientConfig, token: c.BearerToken}
	}
	return nil
}

// measured are the sides that clients of a pool can have.
func (r *rival) measured() []*side { return r.sides[1:] }
