package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/runtime"
)

// Config says how much is measured.
type Config struct {
	Rounds   int // of every comparison; the median counts. Default 6
	Objects  int // EndpointSlices of 100 endpoints beside kube-apiserver. Default 1000
	Large    int // EndpointSlices for the coordinator's memory and the simultaneous lists. Default 5000
	Progress func(string)
}

const (
	pool = "bench"
	node = "bench-1"
	mb   = 1e6
)

// run is one benchmark under way.
type run struct {
	Config

	site             runtime.Site
	hub, cloud       target
	hubPart, coord   runtime.Part
	client           kubernetes.Interface
	figures          []Figure
	nodePath         string
	fillHub, fillAll int
}

func (c Config) withDefaults() Config {
	if c.Rounds == 0 {
		c.Rounds = 6
	}
	if c.Objects == 0 {
		c.Objects = 1000
	}
	if c.Large == 0 {
		c.Large = 5000
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	return c
}

// Run measures lists, watches and memory of a hub and its coordinator.
func Run(ctx context.Context, c Config) ([]Figure, error) {
	return c.with(ctx, (*run).idle, (*run).withObjects, (*run).lists, (*run).watches, (*run).large)
}

// Passed measures what a get takes that a hub passes to the cloud.
func Passed(ctx context.Context, c Config) ([]Figure, error) { return c.with(ctx, (*run).passed) }

// with brings up a control plane and a pool of one node without a link to it, and takes some steps there.
func (c Config) with(ctx context.Context, steps ...func(*run, context.Context) error) (_ []Figure, err error) {
	c = c.withDefaults()
	r := &run{Config: c, fillHub: c.Objects, fillAll: c.Large, nodePath: "/api/v1/nodes/" + node}
	local := &runtime.Local{}
	topology := runtime.Topology{Pools: []runtime.Pool{{
		Name: pool, Nodes: 1, Mode: runtime.Weir, Unlinked: true, Unread: true,
		HubFlags: parts.Flags{"caller-rate": 100_000}, // one caller asks as fast as it is answered
	}}}
	if r.site, err = local.Up(ctx, topology, c.Progress); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.site.Down(context.WithoutCancel(ctx))) }()
	for _, step := range append([]func(*run, context.Context) error{(*run).start}, steps...) {
		if err := step(r, ctx); err != nil {
			return r.figures, err
		}
	}
	return r.figures, nil
}

func (r *run) start(ctx context.Context) (err error) {
	r.Progress("starting coordinator and hub")
	if err := runtime.Start(ctx, r.site, runtime.CoordinatorOf(pool), runtime.HubOf(node)); err != nil {
		return err
	}
	if r.client, err = kubernetes.NewForConfig(r.site.Admin()); err != nil {
		return err
	}
	if r.hubPart, err = r.site.Part(runtime.HubOf(node)); err != nil {
		return err
	}
	if r.coord, err = r.site.Part(runtime.CoordinatorOf(pool)); err != nil {
		return err
	}
	apiserver, err := r.site.Part(runtime.APIServer)
	if err != nil {
		return err
	}
	token, err := r.site.Token(ctx, "kube-proxy")
	if err != nil {
		return err
	}
	door, err := r.site.Endpoint(node, "node")
	if err != nil {
		return err
	}
	r.hub = target{name: "hub", url: door.URL, trust: door.Trust(), token: token, part: r.hubPart}
	r.cloud = target{
		name: "kube-apiserver", url: r.site.Admin().Host, trust: rest.TLSClientConfig{CAData: r.site.Admin().CAData},
		token: token, part: apiserver,
	}
	return r.synced(ctx)
}

// synced waits until the hub's relay shows the newest version.
func (r *run) synced(ctx context.Context) error {
	want, err := latest(ctx, r.cloud)
	if err != nil {
		return err
	}
	return waitFor(ctx, nil, func() bool {
		got, err := latest(ctx, r.hub)
		return err == nil && got >= want
	})
}

// memory reads a part when its garbage and the pages it gave back have settled: the smallest of readings over some
// seconds.
func memory(ctx context.Context, p runtime.Part, settle time.Duration) (anon, rss float64, err error) {
	end := time.Now().Add(settle)
	for {
		u, err := p.Usage()
		if err != nil {
			return 0, 0, err
		}
		if anon == 0 || float64(u.RSSAnon) < anon {
			anon, rss = float64(u.RSSAnon), float64(u.RSS)
		}
		select {
		case <-ctx.Done():
			return 0, 0, ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
		if time.Now().After(end) {
			return anon, rss, nil
		}
	}
}

// peak is the most memory that a part has while something is done.
func peak(p interface{ Usage() (proc.Usage, error) }, do func() error) (anon float64, err error) {
	done := make(chan error, 1)
	go func() { done <- do() }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		u, unread := p.Usage()
		if err == nil {
			err = unread
		}
		anon = max(anon, float64(u.RSSAnon))
		select {
		case failed := <-done:
			return anon, errors.Join(failed, err)
		case <-tick.C:
		}
	}
}

func (r *run) measureMemory(ctx context.Context, name string, p runtime.Part, limit *Limit) error {
	anon, rss, err := memory(ctx, p, 15*time.Second)
	if err != nil {
		return err
	}
	r.add(Figure{
		Name: name + ", RssAnon", Unit: "MB", Samples: []float64{anon / mb}, Limit: limit,
		Detail: fmt.Sprintf("VmRSS %.1f MB", rss/mb),
	})
	return nil
}

func (r *run) add(f Figure) {
	r.figures = append(r.figures, f)
	r.Progress(f.String())
}

func (r *run) idle(ctx context.Context) error {
	if err := r.measureMemory(ctx, "coordinator memory, idle", r.coord, coordinatorIdle); err != nil {
		return err
	}
	return r.measureMemory(ctx, "hub memory, idle", r.hubPart, hubIdle)
}

func (r *run) withObjects(ctx context.Context) error {
	if err := fill(ctx, r.client, 0, r.fillHub, r.Progress); err != nil {
		return err
	}
	if err := r.synced(ctx); err != nil {
		return err
	}
	return r.measureMemory(ctx, fmt.Sprintf("hub memory, %d slices of 100 endpoints", r.fillHub), r.hubPart, hubFilled)
}

// compare measures some targets in turn, over some rounds.
func (r *run) compare(ctx context.Context, name string, f func(context.Context, target) (float64, error),
	targets ...target) ([][]float64, error) {
	got := make([][]float64, len(targets))
	for i := range r.Rounds {
		r.Progress(fmt.Sprintf("%s: round %d of %d", name, i+1, r.Rounds))
		for k, t := range targets {
			v, err := f(ctx, t)
			if err != nil {
				return nil, err
			}
			got[k] = append(got[k], v)
		}
	}
	return got, nil
}

// ratio adds the figure of a comparison: the ratio of each round.
func (r *run) ratio(name, unit string, limit *Limit, ours, theirs []float64) {
	f := Figure{
		Name: name, Unit: "ratio", Limit: limit, Detail: fmt.Sprintf("%.3g ÷ %.3g %s", median(ours), median(theirs), unit),
	}
	for i := range ours {
		f.Samples = append(f.Samples, ours[i]/theirs[i])
	}
	r.add(f)
}

func (r *run) lists(ctx context.Context) (err error) {
	bare, stop, err := r.bare(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	bare1 := bare
	bare1.http1 = true
	const name, unit = "server CPU per GB listed", "s/GB"
	got, err := r.compare(ctx, name, listing(listBytes), r.cloud, r.hub, bare, bare1)
	if err != nil {
		return err
	}
	r.ratio(name+", hub ÷ bare net/http over HTTP/2 of the same bytes", unit, listCost, got[1], got[2])
	r.ratio(name+", hub ÷ kube-apiserver", unit, nil, got[1], got[0])
	r.ratio(name+", bare net/http over HTTP/1.1, which is TLS and little else, ÷ the same over HTTP/2", unit, nil, got[3],
		got[2])
	return nil
}

func (r *run) watches(ctx context.Context) error {
	change := changer(r.client, r.fillHub)
	for _, p := range paces() {
		name := fmt.Sprintf("server CPU per watch event at %d watchers and %s", watchers, p.name)
		got, err := r.compare(ctx, name, func(ctx context.Context, t target) (float64, error) {
			d, err := watchCPU(ctx, t, func(ctx context.Context, n int) error { return change(ctx, n, p.every) })
			return float64(d.Nanoseconds()) / 1e3, err
		}, r.cloud, r.hub)
		if err != nil {
			return err
		}
		r.ratio(name+", hub ÷ kube-apiserver", "µs", watchCost, got[1], got[0])
	}
	return nil
}

func (r *run) large(ctx context.Context) error {
	if err := fill(ctx, r.client, r.fillHub, r.fillAll, r.Progress); err != nil {
		return err
	}
	if err := r.synced(ctx); err != nil {
		return err
	}
	if err := r.measureMemory(ctx, fmt.Sprintf("coordinator memory, %d slices of 100 endpoints", r.fillAll), r.coord,
		coordinatorFilled); err != nil {
		return err
	}
	before, _, err := memory(ctx, r.hubPart, 10*time.Second)
	if err != nil {
		return err
	}
	const clients = 20
	peak, err := peak(r.hubPart, func() error {
		var g errgroup.Group
		for range clients {
			g.Go(func() error {
				c := r.hub.client()
				defer c.CloseIdleConnections()
				_, err := r.hub.discard(ctx, c, slicesPath+"?resourceVersion=0")
				return err
			})
		}
		return g.Wait()
	})
	if err != nil {
		return err
	}
	r.add(Figure{
		Name:    fmt.Sprintf("memory that %d simultaneous lists of %d slices add to a hub, RssAnon", clients, r.fillAll),
		Unit:    "MB",
		Samples: []float64{(peak - before) / mb}, Limit: simultaneousLists,
		Detail: fmt.Sprintf("from %.1f MB to a peak of %.1f MB", before/mb, peak/mb),
	})
	return nil
}
