package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/sim/layout"
	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/runner"
	"github.com/weir-edge/weir/sim/runtime"
)

const (
	cacheObjects  = 500 // EndpointSlices of 100 endpoints
	cacheNodes    = 2
	cachePatience = 3 * time.Minute
	cacheTick     = 20 * time.Millisecond
	askPatience   = 2 * time.Second
)

// coldPool is a pool that is started again and again.
type coldPool struct {
	Testbed

	site  runtime.Site
	link  *link.Pool
	parts []runtime.PartID
	hubs  []target
}

// started is what one start cost.
type started struct {
	answer, ready time.Duration // since the processes began
	bytes         int64         // across the uplink until all was ready, both ways
}

// Cache measures how soon a pool's cache is there: with empty disks, from disk, and after a power cut while the cloud
// is away.
func Cache(ctx context.Context, t Testbed, rounds int) (_ []Figure, err error) {
	s, err := t.load(trafficScenario)
	if err != nil {
		return nil, err
	}
	s.Topology.Pool.Nodes, s.Clients = cacheNodes, nil
	p := &coldPool{Testbed: t}
	topology := layout.Watching(s, runtime.Weir)
	for i := range topology.Pools { // shared without a client, so that what is measured is the cache alone
		topology.Pools[i].PoolScopeResources = []string{"+endpoints.v1.", "+endpointslices.v1.discovery.k8s.io"}
	}
	if p.site, err = (&runtime.Local{}).Up(ctx, topology, t.Progress); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.site.Down(context.WithoutCancel(ctx))) }()
	p.link, p.parts = p.site.Link(s.Topology.Pool.Name), []runtime.PartID{runtime.CoordinatorOf(s.Topology.Pool.Name)}
	token, err := p.site.Token(ctx, "kube-proxy")
	if err != nil {
		return nil, err
	}
	for _, node := range layout.WeirPool(s).NodeNames() {
		door, err := p.site.Endpoint(node, "node")
		if err != nil {
			return nil, err
		}
		p.parts, p.hubs = append(p.parts, runtime.HubOf(node)),
			append(p.hubs, target{name: node, url: door.URL, trust: door.Trust(), token: token})
	}
	client, err := kubernetes.NewForConfig(p.site.Admin())
	if err != nil {
		return nil, err
	}
	if err := fill(ctx, client, 0, cacheObjects, t.Progress); err != nil {
		return nil, err
	}
	return p.measure(ctx, rounds)
}

func (p *coldPool) measure(ctx context.Context, rounds int) ([]Figure, error) {
	var cold, disk, dark []started
	var fresh []float64
	size := 0.0
	for i := range rounds {
		p.Progress(fmt.Sprintf("cache: round %d of %d: empty disks", i+1, rounds))
		if err := p.each(func(part runtime.Part) error { return part.LoseDisk() }); err != nil {
			return nil, err
		}
		one, err := p.start(ctx, true)
		if err != nil {
			return nil, fmt.Errorf("with empty disks: %w", err)
		}
		cold = append(cold, one)
		if size, err = p.complete(ctx); err != nil { // the caller's rights are known now, for when the cloud is away
			return nil, err
		}
		p.Progress("cache: stopped and started again")
		if err := p.each(func(part runtime.Part) error { return part.Stop(ctx) }); err != nil {
			return nil, err
		}
		if one, err = p.start(ctx, true); err != nil {
			return nil, fmt.Errorf("from disk: %w", err)
		}
		disk = append(disk, one)
		p.Progress("cache: a power cut while the cloud is away")
		if one, err = p.dark(ctx); err != nil {
			return nil, fmt.Errorf("after a power cut: %w", err)
		}
		dark = append(dark, one)
		healed := time.Now()
		p.link.Heal(link.Both, "")
		if err := p.until(ctx, func() (bool, string) { return p.isReady(ctx, true) }); err != nil {
			return nil, err
		}
		fresh = append(fresh, time.Since(healed).Seconds())
		if err := p.each(func(part runtime.Part) error { return part.Stop(ctx) }); err != nil {
			return nil, err
		}
	}
	detail := fmt.Sprintf("%d nodes, %d EndpointSlices of 100 endpoints, %.1f MB of protobuf, uplink %.0f Mbit/s and %v",
		cacheNodes, cacheObjects, size, float64(p.link.Rate(link.Down))/1e6, p.link.RTT())
	return p.starts(detail, cold, disk, dark, fresh)
}

// dark is a start with the disks of a power cut and without the cloud.
func (p *coldPool) dark(ctx context.Context) (started, error) {
	p.link.Cut(link.Both, "")
	if err := p.each(func(part runtime.Part) error { return part.Kill() }); err != nil {
		return started{}, err
	}
	one, err := p.start(ctx, false)
	if err == nil {
		_, err = p.complete(ctx)
	}
	return one, err
}

// each does something to all parts of the pool.
func (p *coldPool) each(do func(runtime.Part) error) error {
	var g errgroup.Group
	for _, id := range p.parts {
		part, err := p.site.Part(id)
		if err != nil {
			return err
		}
		g.Go(func() error { return do(part) })
	}
	return g.Wait()
}

// start starts all parts and waits until everything is ready.
func (p *coldPool) start(ctx context.Context, cloud bool) (s started, err error) {
	crossed := func() int64 { return link.Sum(p.link.Counters(), func(link.Counter) bool { return true }) }
	before, began := crossed(), time.Now()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return runtime.Start(ctx, p.site, p.parts...) })
	g.Go(func() error {
		c := p.hubs[0].client()
		defer c.CloseIdleConnections()
		return p.until(ctx, func() (bool, string) {
			ctx, cancel := context.WithTimeout(ctx, askPatience)
			defer cancel()
			// kube-proxy may list, but not get
			if _, err := p.hubs[0].discard(ctx, c, "/apis/discovery.k8s.io/v1/namespaces/"+namespace+
				"/endpointslices?fieldSelector=metadata.name="+slice(0, 0).Name); err != nil {
				return false, err.Error()
			}
			s.answer = time.Since(began)
			return true, ""
		})
	})
	g.Go(func() error {
		return p.until(ctx, func() (bool, string) {
			ok, why := p.isReady(ctx, cloud)
			s.ready = time.Since(began)
			return ok, why
		})
	})
	err = g.Wait()
	s.bytes = crossed() - before
	return s, err
}

func (p *coldPool) until(ctx context.Context, ok func() (bool, string)) error {
	return runner.Until(ctx, cacheTick, cachePatience, p.Progress, ok)
}

// isReady reports whether the caches of all hubs hold everything, and with the cloud there, whether the coordinator is
// fed.
func (p *coldPool) isReady(ctx context.Context, cloud bool) (bool, string) {
	for _, id := range p.parts {
		if id.Kind() == "coordinator" && !cloud {
			continue
		}
		part, err := p.site.Part(id)
		if err != nil {
			return false, err.Error()
		}
		var s struct {
			Resources []struct{ Synced, Ready bool }
		}
		asking, cancel := context.WithTimeout(ctx, askPatience)
		err = part.Status(asking, &s)
		cancel()
		if err != nil || len(s.Resources) == 0 {
			return false, fmt.Sprintf("waiting for %s: %v", id, err)
		}
		for _, r := range s.Resources {
			if !r.Synced || id.Kind() == "coordinator" && !r.Ready {
				return false, fmt.Sprintf("waiting for the cache of %s", id)
			}
		}
	}
	return true, ""
}

// complete lists everything at each hub, which has to be all of it; it returns its size in MB.
func (p *coldPool) complete(ctx context.Context) (size float64, err error) {
	for _, h := range p.hubs {
		n, err := listed(ctx, h)
		switch {
		case err != nil:
			return 0, err
		case n.items < cacheObjects:
			return 0, fmt.Errorf("%s lists %d EndpointSlices, want %d", h.name, n.items, cacheObjects)
		}
		size = float64(n.bytes) / mb
	}
	return size, nil
}

// starts makes the figures of the three kinds of start. detail says of what size the cache was.
func (t Testbed) starts(detail string, cold, disk, dark []started, fresh []float64) ([]Figure, error) {
	coldLimit, err := t.target(trafficScenario, "cache_ready_seconds")
	if err != nil {
		return nil, err
	}
	offline, err := t.target("autonomy/offline-machine-restart", "first_offline_answer_seconds")
	if err != nil {
		return nil, err
	}
	var figures []Figure
	for _, c := range []struct {
		name          string
		starts        []started
		answer, ready *Limit
	}{
		{"empty disks", cold, nil, coldLimit}, {
			"from disk", disk, nil, nil,
		}, {"after a power cut, without the cloud", dark, offline, nil},
	} {
		answer := Figure{
			Name: c.name + ": first answer", Unit: "s", Limit: c.answer,
			Detail: "from the start of the processes, a get at a hub",
		}
		ready := Figure{
			Name: c.name + ": ready", Unit: "s", Limit: c.ready, Detail: "until all caches hold everything; " + detail,
		}
		bytes := Figure{Name: c.name + ": bytes until then", Unit: "MB", Detail: "across the uplink, both ways"}
		for _, s := range c.starts {
			answer.Samples, ready.Samples = append(answer.Samples, s.answer.Seconds()), append(ready.Samples, s.ready.Seconds())
			bytes.Samples = append(bytes.Samples, float64(s.bytes)/mb)
		}
		figures = append(figures, answer, ready, bytes)
	}
	return append(figures, Figure{
		Name: "after a power cut: fresh again", Unit: "s", Samples: fresh,
		Detail: "from the return of the cloud until the coordinator was fed",
	}), nil
}

// wholeList is a complete list as it came.
type wholeList struct {
	items int
	bytes int64
}

func listed(ctx context.Context, t target) (n wholeList, err error) {
	c := t.client()
	defer c.CloseIdleConnections()
	body, err := t.get(ctx, c, slicesPath+"?resourceVersion=0")
	if err != nil {
		return n, err
	}
	counted := &counter{r: body}
	_, err = readList(counted, func() { n.items++ })
	n.bytes = counted.n
	return n, errors.Join(err, body.Close())
}

// counter counts what is read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
