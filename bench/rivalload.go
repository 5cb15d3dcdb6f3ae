package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-edge/weir/sim/client"
	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/runner"
	"github.com/weir-edge/weir/sim/runtime"
)

const (
	rivalTick     = 200 * time.Millisecond
	rivalPatience = 5 * time.Minute
	rivalGets     = 200 // in a row, at one side, in each round
	rivalLists    = 40
)

// streams are those of all sides and of the truth.
func (r *rival) streams() (all []*client.Stream) {
	for _, s := range r.sides {
		all = append(all, s.streams...)
	}
	for _, s := range r.truth {
		all = append(all, s)
	}
	return all
}

// crossed is what went over a side's uplink so far, in MB.
func (s *side) crossed() float64 {
	return float64(link.Sum(s.link.Counters(), func(link.Counter) bool { return true })) / mb
}

// processes are all that the pool runs.
func (s *side) processes() []usage { return slices.Concat(s.hubs, s.more) }

// used is the CPU time of processes so far, in seconds.
func used(all []usage) (sum float64, err error) {
	for _, p := range all {
		u, err := p.Usage()
		if err != nil {
			return 0, err
		}
		sum += u.CPU.Seconds()
	}
	return sum, nil
}

// sync opens the clients of all sides and waits until each has everything.
func (r *rival) sync(ctx context.Context) error {
	r.Progress("clients begin to list and watch, on all sides")
	began := time.Now()
	for _, s := range r.sides {
		kinds := r.kinds()
		if s.name == sideReference {
			kinds = []string{"reference"}
		}
		for _, node := range s.nodes {
			for _, kind := range kinds {
				identity := map[string]string{"json": "json-client", "reference": "coredns"}[kind]
				if identity == "" {
					identity = kind
				}
				c, err := s.config(ctx, node, identity, runtime.ClassPool)
				if err != nil {
					return err
				}
				opened, err := client.Open(r.watching, c, client.Specs(kind)...)
				if err != nil {
					return err
				}
				s.streams = append(s.streams, opened...)
			}
		}
	}
	if err := r.caughtUp(ctx); err != nil {
		return err
	}
	return r.delivered(ctx, func(s *side) error {
		s.synced, s.startBytes = time.Since(began), s.crossed()
		return nil
	})
}

// delivered waits until the clients of each side show what the cloud has, and calls done for each side as soon as its
// clients do.
func (r *rival) delivered(ctx context.Context, done func(*side) error) error {
	open := slices.Clone(r.sides)
	return runner.Until(ctx, rivalTick, rivalPatience, r.Progress, func() (bool, string) {
		var err error
		waiting := ""
		want := map[string]map[string]uint64{}
		for name, s := range r.truth {
			want[name] = shown(s.Recording.Ops())
		}
		open = slices.DeleteFunc(open, func(s *side) bool {
			n, last := behind(s, want)
			if n > 0 {
				waiting += fmt.Sprintf("; %s: %d of %d%s", s.name, n, len(s.streams), last)
				return false
			}
			err = done(s)
			return err == nil
		})
		if err != nil {
			return false, err.Error()
		}
		return len(open) == 0, "waiting for clients that do not show what the cloud has" + waiting
	})
}

// behind counts the streams of a side that do not show what the cloud has, and tells the last error of one.
func behind(s *side, want map[string]map[string]uint64) (n int, last string) {
	for _, x := range s.streams {
		ops := x.Recording.Ops()
		if x.Recording.Synced() && equal(shown(ops), want[content(x.Spec)]) {
			continue
		}
		n++
		for _, op := range slices.Backward(ops) {
			if op.What == client.OpError && last == "" {
				last = fmt.Sprintf(", the last error of %s: %.200s", x.Spec.Client, op)
				break
			}
		}
	}
	return n, last
}

func equal(a, b map[string]uint64) bool {
	if len(a) != len(b) || len(a) == 0 {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

// shown is what a client holds after what happened: a hash for each object. It needs no resourceVersions, which a peer
// may have of its own.
func shown(ops []client.Op) map[string]uint64 {
	now, next := map[string]uint64{}, map[string]uint64(nil) // next: of a streaming list that is not complete
	for _, op := range ops {
		into := now
		if next != nil {
			into = next
		}
		switch op.What {
		case client.OpOpen:
			if next = nil; op.Initial {
				next = map[string]uint64{}
			}
		case client.OpList:
			now, next = map[string]uint64{}, nil
			for _, it := range op.Items {
				now[it.Key] = it.Hash
			}
		case client.OpInitialEnd:
			if next != nil {
				now, next = next, nil
			}
		case client.OpEvent:
			if op.Type == watch.Deleted {
				delete(into, op.Item.Key)
			} else {
				into[op.Item.Key] = op.Item.Hash
			}
		}
	}
	return now
}

// churn makes the changes of the scenario, in rounds, and measures what each side carries until its clients show them.
func (r *rival) churn(ctx context.Context) error {
	stop := r.peaks.follow(ctx, r.measured())
	defer stop()
	w := r.scenario.Workload
	each := max(w.Changes/r.Rounds, 1)
	for i := range r.Rounds {
		r.Progress(fmt.Sprintf("changes: round %d of %d, %d of them", i+1, r.Rounds, each))
		began, bytes, cpu := time.Now(), map[*side]float64{}, map[*side]float64{}
		for _, s := range r.sides {
			var err error
			if bytes[s] = s.crossed(); len(s.hubs) > 0 {
				if cpu[s], err = used(s.processes()); err != nil {
					return err
				}
			}
		}
		if err := r.work.Churn(ctx, r.admin, each, w.ChangesPerSecond, nil, nil); err != nil {
			return err
		}
		if err := r.caughtUp(ctx); err != nil {
			return err
		}
		if err := r.delivered(ctx, func(s *side) error {
			s.bytes = append(s.bytes, s.crossed()-bytes[s])
			now, err := used(s.processes())
			s.cpu = append(s.cpu, now-cpu[s])
			return err
		}); err != nil {
			return err
		}
		for _, s := range r.sides {
			lags := r.lags(s, began)
			if len(lags) == 0 {
				return fmt.Errorf("clients of %s were shown no change", s.name)
			}
			s.events = append(s.events, float64(len(lags)))
			s.lag50, s.lag99 = append(s.lag50, milliseconds(quantile(lags, 0.5))),
				append(s.lag99, milliseconds(quantile(lags, 0.99)))
		}
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// caughtUp waits until the recorders at the cloud have had all that is in it.
func (r *rival) caughtUp(ctx context.Context) error {
	marks, err := r.marker.Write(ctx)
	if err != nil {
		return err
	}
	return runner.Until(ctx, rivalTick, rivalPatience, r.Progress, func() (bool, string) {
		for _, s := range r.truth {
			if s.Recording.Version() < marks[s.Spec.Resource] {
				return false, "waiting for the recorder of " + content(s.Spec)
			}
		}
		return true, ""
	})
}

// lags are the times from when the recorder at the cloud saw a change until a client of a side did, since a moment.
func (r *rival) lags(s *side, since time.Time) (all []time.Duration) {
	type change struct {
		key  string
		hash uint64
	}
	at := map[string]map[change][]time.Time{}
	for name, t := range r.truth {
		at[name] = map[change][]time.Time{}
		for _, op := range t.Recording.Ops() {
			if op.What == client.OpEvent && op.Type == watch.Modified && op.At.After(since) {
				c := change{op.Item.Key, op.Item.Hash}
				at[name][c] = append(at[name][c], op.At)
			}
		}
	}
	for _, x := range s.streams {
		for _, op := range x.Recording.Ops() {
			if op.What != client.OpEvent || op.Type != watch.Modified || op.At.Before(since) {
				continue
			}
			seen := at[content(x.Spec)][change{op.Item.Key, op.Item.Hash}]
			for _, t := range slices.Backward(seen) { // the same content may come twice
				if t.Before(op.At) || len(seen) == 1 {
					all = append(all, max(op.At.Sub(t), 0))
					break
				}
			}
		}
	}
	return all
}

// requests asks each side in turn, without a thin link in between, which would hide what a hub takes.
func (r *rival) requests(ctx context.Context) error {
	for _, s := range r.sides {
		s.link.SetRate(link.Both, 0)
		s.link.SetRTT(0)
	}
	path := "/api/v1/nodes/" + r.side(sideHub).nodes[0]
	for i := range r.rounds {
		r.Progress(fmt.Sprintf("requests: round %d of %d", i+1, r.rounds))
		sides := r.measured()
		for k := range sides { // each is first as often as the others
			s := sides[(i+k)%len(sides)]
			gets, cpu, err := s.ask(ctx, path, rivalGets)
			if err != nil {
				return err
			}
			s.get50, s.get99 = append(s.get50, milliseconds(quantile(gets, 0.5))),
				append(s.get99, milliseconds(quantile(gets, 0.99)))
			s.getCPU = append(s.getCPU, cpu)
			lists, cpu, err := s.ask(ctx, slicesPath+"?resourceVersion=0", rivalLists)
			if err != nil {
				return err
			}
			s.list50, s.listCPU = append(s.list50, milliseconds(quantile(lists, 0.5))), append(s.listCPU, cpu)
		}
	}
	return nil
}

// ask sends n requests one after the other, and tells how long each took, and the CPU time of the first node's process
// for one, in ms.
func (s *side) ask(ctx context.Context, path string, n int) (took []time.Duration, cpu float64, err error) {
	c := s.target.client()
	defer c.CloseIdleConnections()
	if _, err := s.target.discard(ctx, c, path); err != nil { // connections are warm
		return nil, 0, err
	}
	hub := s.hubs[:min(len(s.hubs), 1)]
	before, err := used(hub)
	if err != nil {
		return nil, 0, err
	}
	for range n {
		began := time.Now()
		if _, err := s.target.discard(ctx, c, path); err != nil {
			return nil, 0, err
		}
		took = append(took, time.Since(began))
	}
	after, err := used(hub)
	return took, (after - before) * 1e3 / float64(n), err
}

// memoryPeaks are the largest readings of processes, in MB.
type memoryPeaks struct {
	mu      sync.Mutex
	hub     map[*side]float64 // of one on a node
	further map[*side]float64 // of the coordinator
}

// follow reads until stop.
func (m *memoryPeaks) follow(ctx context.Context, sides []*side) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	m.hub, m.further = map[*side]float64{}, map[*side]float64{}
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(rivalTick)
		defer tick.Stop()
		for {
			for _, s := range sides {
				m.read(s)
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

func (m *memoryPeaks) read(s *side) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for into, all := range map[*map[*side]float64][]usage{&m.hub: s.hubs, &m.further: s.more} {
		for _, p := range all {
			if u, err := p.Usage(); err == nil {
				(*into)[s] = max((*into)[s], float64(u.RSSAnon)/mb)
			}
		}
	}
}
