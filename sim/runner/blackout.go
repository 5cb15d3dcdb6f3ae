package runner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/client"
	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
	"github.com/weir-edge/weir/sim/timeline"
)

const (
	lightsOut = 2 * time.Second        // from the cut of the uplink until the machines lose power
	askTick   = 500 * time.Millisecond // of asking hubs for their age
)

// offline is what clients saw in blackouts.
type offline struct {
	mu          sync.Mutex
	streams     []*stream // started meanwhile
	lists       int       // of them that got a state
	missing     int
	refilled    int // parts that lost their disks and had all caches before the cloud was back
	notRefilled int
	refill      time.Duration // from the power until the last of them had
	asked       int           // answers that told an age
	younger     time.Duration // what was told was less than the truth by so much, most
	older       time.Duration // or more
}

func (o *offline) report(m report.Values) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m["offline_lists"], m["offline_lists_missing"] = float64(o.lists), float64(o.missing)
	m["offline_refills"], m["offline_refills_missing"] = float64(o.refilled), float64(o.notRefilled)
	if o.refilled > 0 {
		m["offline_refill_seconds_max"] = o.refill.Seconds()
	}
	if o.asked > 0 {
		m["offline_age_understated_seconds_max"], m["offline_age_overstated_seconds_max"] = o.younger.Seconds(),
			o.older.Seconds()
	}
}

// BlackOut implements scenario.Grid. What clients then see is noted until the cut is over.
func (r *run) BlackOut(ctx context.Context, at *scenario.Aim, k *scenario.Blackout) error {
	if err := sleep(ctx, lightsOut); err != nil {
		return err
	}
	var ids, lost []runtime.PartID
	var kept []string // nodes whose hubs keep their disks
	for _, id := range r.site.Parts() {
		if id.Kind() == "coordinator" && id.Of() == at.Pool.Name {
			ids = append(ids, id)
			if k.Loses(scenario.Coordinator) {
				lost = append(lost, id)
			}
		}
	}
	for n, node := range nodesOf(at.Pool) {
		ids = append(ids, runtime.HubOf(node))
		if k.Loses(scenario.Hub(n + 1)) {
			lost = append(lost, runtime.HubOf(node))
		} else {
			kept = append(kept, node)
		}
	}
	if err := r.powerCycle(ctx, at, k.Off, ids, lost); err != nil {
		return err
	}
	until, cancel := context.WithDeadline(ctx, at.Began.Add(at.Fault.For))
	defer cancel()
	var looking sync.WaitGroup
	defer looking.Wait()
	looking.Go(func() { r.watchAges(until, kept, at.Began) })
	looking.Go(func() { r.watchRefills(until, lost) })
	if err := r.clientsOffline(ctx, until, kept); err != nil {
		return err
	}
	<-until.Done()
	return ctx.Err()
}

// powerCycle kills parts at once and starts them all again later, some with an empty disk.
func (r *run) powerCycle(ctx context.Context, at *scenario.Aim, off time.Duration, ids, lost []runtime.PartID) error {
	r.Lost(at.Silent)
	parts := map[runtime.PartID]runtime.Part{}
	var errs []error
	for _, id := range ids {
		p, err := r.site.Part(id)
		if err != nil {
			return err
		}
		parts[id] = p
		errs = append(errs, p.Kill())
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := sleep(ctx, off); err != nil {
		return err
	}
	for _, id := range lost {
		if err := parts[id].LoseDisk(); err != nil {
			return err
		}
	}
	r.Lost(at.Silent)
	return runtime.Start(ctx, r.site, ids...)
}

// clientsOffline starts clients again on nodes, as they would be when their machine has power again, and counts those
// that got a state in time.
func (r *run) clientsOffline(ctx, until context.Context, nodes []string) error {
	var streams []*stream
	for _, node := range nodes {
		for _, kind := range r.s.Clients {
			specs := client.Specs(string(kind))
			if len(specs) == 0 {
				continue
			}
			config, err := r.config(ctx, node, string(kind))
			if err != nil {
				return err
			}
			opened, err := client.Open(r.watching, config, specs...)
			if err != nil {
				return fmt.Errorf("client %s on %s, offline: %w", kind, node, err)
			}
			for _, s := range opened {
				streams = append(streams, &stream{Stream: s, node: node})
				r.background.Go(s.Wait)
			}
		}
	}
	synced := func() (n int) {
		for _, s := range streams {
			if s.Recording.Synced() {
				n++
			}
		}
		return n
	}
	for until.Err() == nil && synced() < len(streams) {
		_ = sleep(until, tick)
	}
	n := synced()
	r.time.Emit(timeline.Event{
		Lane: timeline.Client, Way: report.WayWeir, Name: "offline",
		Numbers: map[string]float64{"started": float64(len(streams)), "synced": float64(n)},
	})
	r.Progress(fmt.Sprintf("the cloud is away: %d of %d clients that were started have a full state", n, len(streams)))
	r.offline.mu.Lock()
	defer r.offline.mu.Unlock()
	r.offline.streams = append(r.offline.streams, streams...)
	r.offline.lists += n
	r.offline.missing += len(streams) - n
	return nil
}

// watchAges asks the hubs of nodes again and again how old their state is. It cannot be younger than the cut.
func (r *run) watchAges(ctx context.Context, nodes []string, cut time.Time) {
	for ctx.Err() == nil {
		for _, node := range nodes {
			told, err := r.ageAt(ctx, node)
			if err != nil {
				continue
			}
			r.offline.mu.Lock()
			r.offline.asked++
			late := told - time.Since(cut)
			r.offline.older, r.offline.younger = max(r.offline.older, late), max(r.offline.younger, -late)
			r.offline.mu.Unlock()
		}
		_ = sleep(ctx, askTick)
	}
}

// ageAt opens a watch at a node's hub and returns the age that its answer tells.
func (r *run) ageAt(ctx context.Context, node string) (time.Duration, error) {
	config, err := r.config(ctx, node, string(r.s.Clients[0]))
	if err != nil {
		return 0, err
	}
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	spec := client.Specs(string(r.s.Clients[0]))[0]
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+spec.WatchPath(), nil)
	if err != nil {
		return 0, err
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	seconds, err := strconv.Atoi(resp.Header.Get(contract.AgeHeader))
	if err != nil || resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: no age told: %w", resp.Status, err)
	}
	return time.Duration(seconds) * time.Second, nil
}

// watchRefills counts the parts without a disk that hold all caches again before ctx ends.
func (r *run) watchRefills(ctx context.Context, ids []runtime.PartID) {
	began, last := time.Now(), time.Duration(0)
	waiting := map[runtime.PartID]bool{}
	for _, id := range ids {
		waiting[id] = true
	}
	for ctx.Err() == nil && len(waiting) > 0 {
		for _, id := range ids {
			var s status
			if !waiting[id] || r.ask(ctx, id, &s) != nil || len(s.Resources)+len(s.Idle) == 0 {
				continue
			}
			there := true
			for _, res := range s.Resources {
				there = there && res.Synced
			}
			if there {
				delete(waiting, id)
				last = time.Since(began)
				r.time.Emit(timeline.Event{Lane: timeline.Fault, Way: report.WayWeir, Node: string(id), Name: "refilled"})
			}
		}
		_ = sleep(ctx, tick)
	}
	r.offline.mu.Lock()
	defer r.offline.mu.Unlock()
	r.offline.refilled, r.offline.refill = r.offline.refilled+len(ids)-len(waiting), max(r.offline.refill, last)
	r.offline.notRefilled += len(waiting)
}
