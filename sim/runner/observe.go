package runner

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/timeline"
)

const (
	lookEvery    = 500 * time.Millisecond
	lookPatience = time.Second // a frozen part does not answer
)

// watchParts reads memory and notes roles, sources, ages and parts that end, until ctx ends.
func (r *run) watchParts(ctx context.Context) {
	var looking sync.WaitGroup
	defer looking.Wait()
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	ended := map[runtime.PartID]<-chan struct{}{}
	eyes := map[runtime.PartID]*eye{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		for _, id := range r.site.Parts() {
			p, err := r.site.Part(id)
			if err != nil {
				continue
			}
			r.peaks.read(id, p)
			if done := p.Done(); done != nil && ended[id] != done {
				select {
				case <-done:
					ended[id] = done
					r.time.Emit(timeline.Event{
						Lane: timeline.Proc, Node: id.Of(), Name: "ended",
						Strings: map[string]string{"part": string(id), "err": fmt.Sprint(p.Err())},
					})
				default:
				}
			}
			if id.Kind() != "hub" && id.Kind() != "coordinator" || !p.Running() {
				continue
			}
			if eyes[id] == nil {
				eyes[id] = &eye{id: id, part: p}
			}
			if e := eyes[id]; e.busy.TryLock() {
				looking.Go(func() {
					defer e.busy.Unlock()
					e.look(ctx, r)
				})
			}
		}
	}
}

// eye watches the status of one part.
type eye struct {
	id   runtime.PartID
	part runtime.Part

	busy         sync.Mutex
	role, source string
}

func (e *eye) look(ctx context.Context, r *run) {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	var s status
	if e.part.Status(ctx, &s) != nil {
		return
	}
	node := e.id.Of()
	if e.id.Kind() == "coordinator" {
		node, s.Role, s.Source = "", s.Leader, s.Term
	}
	if s.Role != e.role || s.Source != e.source {
		e.role, e.source = s.Role, s.Source
		strings := map[string]string{"role": s.Role, "source": s.Source, "reason": s.Reason}
		if node == "" {
			strings = map[string]string{"leader": s.Leader, "term": s.Term}
		}
		r.time.Emit(timeline.Event{
			Lane: timeline.Leader, Way: report.WayWeir, Node: node, Name: e.id.Kind(), Strings: strings,
		})
	}
	if e.id.Kind() == "hub" {
		for _, res := range s.Resources {
			r.stale.read(node, res)
		}
	}
}

// staleness keeps the largest age of a hub's relay.
type staleness struct {
	mu       sync.Mutex
	watching bool
	worst    float64
	node     string
}

func (s *staleness) watch() { s.set(true) }
func (s *staleness) end()   { s.set(false) }

func (s *staleness) set(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watching = on
}

func (s *staleness) read(node string, res resourceStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watching && res.Synced && res.AgeSeconds > s.worst {
		s.worst, s.node = res.AgeSeconds, node
	}
}

func (s *staleness) max() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.worst
}

// sleep waits, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
