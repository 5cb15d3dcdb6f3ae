package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
	"github.com/weir-edge/weir/sim/timeline"
)

const (
	roleLeader     = "Leader"
	leaderPatience = 30 * time.Second
	markedFaults   = 12               // more would hide the plots
	healSlack      = 10 * time.Second // a fault that takes longer to heal is told: what came of it is of a longer fault
)

// episode is one fault from its beginning until it was healed, and what it cost.
type episode struct {
	deed  *deed
	began time.Time

	reached   time.Duration // from its beginning until a marker that was written then was everywhere; 0: none was written
	detect    time.Duration // of a fault of the leader: until the coordinator took the lead from it; 0: not seen
	elect     time.Duration // likewise: until another one led
	healed    time.Time
	recovered time.Duration // from its end until a marker that was written then was everywhere
	fresh     time.Duration // from its end until every cache of the pool held what was written then
	ended     time.Time
	bytes     int64 // of class pool, beyond the changes
	caughtUp  int64 // of class pool, changes and all
	changes   int64 // what the changes of the time are, uncompressed
	resync    int64 // of class pool from its end until recovered, changes and all
	// from its beginning until the first connection of class pool that was opened since; 0: none was.
	grace    time.Duration
	opened   int // connections to the cloud
	openedBy []string
	waited   int // streams that were waited for, in the end
}

// injectAll lets all faults happen, each in a goroutine of a group whose context this is. So the first thing that fails
// ends the run at once, with its own error.
func (r *run) injectAll(ctx context.Context, g *errgroup.Group) {
	began := time.Now()
	for _, f := range r.s.Faults {
		g.Go(func() error {
			if k, ok := f.Kind.(scenario.Prepared); ok {
				if err := r.Sleep(ctx, began.Add(f.At-k.Before())); err != nil {
					return err
				}
				if err := k.Prepare(ctx, r); err != nil {
					return err
				}
			}
			if err := sleep(ctx, time.Until(began.Add(f.At))); err != nil {
				return err
			}
			if err := r.inject(ctx, f); err != nil {
				return fmt.Errorf("fault %s at %v: %w", f, f.At, err)
			}
			return nil
		})
	}
}

// inject does a fault as often as it says.
func (r *run) inject(ctx context.Context, f scenario.Fault) error {
	for i := range f.Repeat {
		if i > 0 {
			if err := sleep(ctx, f.Every); err != nil {
				return err
			}
			if err := r.until(ctx, settlePatience, func() (bool, string) {
				if served, all := len(r.served()), len(r.weir().streams); 2*served < all { // so few prove nothing
					return false, fmt.Sprintf("waiting for clients to come back: %d of %d are there", served, all)
				}
				return r.steady(ctx)
			}); err != nil {
				return fmt.Errorf("before repetition %d: %w", i+1, err)
			}
			r.Progress(fmt.Sprintf("fault %s: %d of %d", f, i+1, f.Repeat))
		}
		targets := []scenario.Target{f.Target}
		if f.Target == scenario.Each {
			targets = r.each(r.s.PoolOf(f))
		}
		for _, t := range targets {
			one := f
			one.Target = t
			d, err := r.find(ctx, one)
			if err != nil {
				return err
			}
			if f.Target == scenario.Each {
				if err := r.until(ctx, settlePatience, func() (bool, string) { return r.steady(ctx) }); err != nil {
					return fmt.Errorf("before the restart of %s: %w", d.name(), err)
				}
				if node := r.heldBy(ctx, d.Pool); d.part() == runtime.HubOf(node) {
					d.Leader = node
				}
			}
			if err := r.once(ctx, d); err != nil {
				return err
			}
			if f.Target == scenario.Each { // the next one waits, as an upgrade does, until nobody is missing
				if err := r.until(ctx, settlePatience, func() (bool, string) {
					n := len(r.weir().streams) - len(r.served())
					return n == 0, fmt.Sprintf("waiting for %d clients to come back to %s", n, d.name())
				}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// once lets one fault happen, from its beginning until all is as before.
func (r *run) once(ctx context.Context, d *deed) error {
	defer r.alone(d.part())()
	if d.part() == runtime.APIServer { // nothing can be written then
		r.writing.Lock()
		unlock := sync.OnceFunc(r.writing.Unlock)
		defer unlock()
		if err := r.truth().hold(ctx, r.admin); err != nil {
			return err
		}
		var err error
		if d.Back, err = r.reach.away(ctx); err != nil {
			return err
		}
		return r.episode(ctx, d, unlock)
	}
	return r.episode(ctx, d, func() {})
}

// alone waits until nothing else is done to a part: on a busy machine it may take longer than it should until the fault
// before is healed.
func (r *run) alone(id runtime.PartID) (over func()) {
	if id == "" {
		return func() {}
	}
	r.outages.mu.Lock()
	m := r.outages.parts[id]
	if m == nil {
		m = &sync.Mutex{}
		r.outages.parts[id] = m
	}
	r.outages.mu.Unlock()
	m.Lock()
	return m.Unlock
}

func (r *run) episode(ctx context.Context, d *deed, writable func()) (err error) {
	e := episode{deed: d, began: time.Now()}
	before := r.account()
	r.note(e, "begin")
	r.silence(d.Silent, 1)
	d.Began = e.began
	if d.Going, err = d.Fault.Kind.Begin(ctx, r, &d.Aim); err != nil {
		return err
	}
	// Beside the fault: who leads, and when what is written now is everywhere.
	electing, elected := context.WithCancel(ctx)
	defer elected()
	var votes, marks errgroup.Group
	defer func() {
		elected()
		_ = votes.Wait()
		err = errors.Join(err, marks.Wait())
	}()
	if d.Leader != "" {
		votes.Go(func() error { e.detect, e.elect = r.watchElection(electing, d, e.began); return nil })
	}
	if !d.CutOff {
		marks.Go(func() (err error) { e.reached, e.waited, err = r.mark(ctx, e.began); return err })
	}
	if d.Hold != nil {
		err = d.Hold(ctx)
	} else {
		err = sleep(ctx, d.Fault.For)
	}
	if err != nil {
		return err
	}
	if d.CutOff {
		before.resync = r.poolBytes()
	}
	if err := d.heal(ctx); err != nil {
		return err
	}
	e.healed = time.Now()
	if lasted := e.healed.Sub(e.began); d.Fault.For > 0 && lasted > d.Fault.For+healSlack {
		r.Progress(fmt.Sprintf("%s lasted %.0f s instead of %v: so long it took to heal", d.Fault, lasted.Seconds(),
			d.Fault.For))
	}
	r.silence(d.Silent, -1)
	r.note(e, "healed")
	if d.part() == runtime.APIServer && d.Ends {
		if err := r.truth().back(ctx, e.began); err != nil {
			return err
		}
	}
	writable()
	marks.Go(func() (err error) { e.fresh, err = r.fresh(ctx, e.healed); return err })
	if e.recovered, _, err = r.mark(ctx, e.healed); err != nil {
		return err
	}
	if err := marks.Wait(); err != nil {
		return err
	}
	elected()
	_ = votes.Wait()
	if err := r.until(ctx, settlePatience, func() (bool, string) { return r.hubsBack(ctx, d) }); err != nil {
		return err
	}
	e.ended = time.Now()
	r.settleAccount(&e, before)
	r.note(e, "recovered")
	r.outages.mu.Lock()
	r.faults = append(r.faults, e)
	r.outages.mu.Unlock()
	return nil
}

// heal undoes it, and lets requests of the testbed go on, unless the target could not be brought back.
func (d *deed) heal(ctx context.Context) error {
	if d.Heal != nil {
		if err := d.Heal(ctx); err != nil {
			return err
		}
	}
	if d.Back != nil {
		d.Back()
	}
	return nil
}

// hubsBack reports whether the part that was the target has its caches again.
func (r *run) hubsBack(ctx context.Context, d *deed) (bool, string) {
	if d.Part == "" || d.harms() == nil {
		return true, ""
	}
	var s status
	if err := r.ask(ctx, d.part(), &s); err != nil {
		return false, fmt.Sprintf("waiting for %s: %v", d.Part, err)
	}
	for _, res := range s.Resources {
		if !res.Synced || d.part().Kind() == "coordinator" && !res.Ready {
			return false, fmt.Sprintf("waiting for %s of %s", res.Resource, d.Part)
		}
	}
	return true, ""
}

// fresh waits until all caches of the pool hold what is written now; it returns how long after a time that was. Caches
// that are late are told and count as long as they were waited for: settle does not end before they are there.
func (r *run) fresh(ctx context.Context, from time.Time) (time.Duration, error) {
	r.writing.Lock()
	versions, err := r.marker.Write(ctx)
	r.writing.Unlock()
	if err != nil {
		return 0, err
	}
	late := ""
	err = r.until(ctx, settlePatience, func() (bool, string) {
		late = r.lacks(ctx, versions)
		return late == "", late
	})
	if err != nil && ctx.Err() == nil {
		r.Progress("the pool's caches do not catch up: " + late)
		err = nil
	}
	return time.Since(from), err
}

// lacks names a cache of the pool that is not at some versions, "" if there is none.
func (r *run) lacks(ctx context.Context, versions map[string]uint64) string {
	for _, id := range r.site.Parts() {
		if id.Kind() != "hub" && (id.Kind() != "coordinator" || r.unfed(id.Of())) {
			continue
		}
		var s status
		if err := r.ask(ctx, id, &s); err != nil {
			return fmt.Sprintf("waiting for %s: %v", id, err)
		}
		for _, res := range s.Resources {
			name, _, _ := strings.Cut(res.Resource, ".")
			if res.Version < versions[name] {
				return fmt.Sprintf("%s of %s is at version %d of %d", name, id, res.Version, versions[name])
			}
		}
	}
	return ""
}

// note writes what happened to the timeline and the plots.
func (r *run) note(e episode, what string) {
	numbers := map[string]float64{}
	if what == "recovered" {
		for name, v := range map[string]time.Duration{
			"reached": e.reached, "detect": e.detect, "elect": e.elect, "recovered": e.recovered,
		} {
			numbers[name] = v.Seconds()
		}
		numbers["cloud_bytes"], numbers["connections"], numbers["streams"] = float64(e.bytes), float64(e.opened),
			float64(e.waited)
	}
	words := map[string]string{"fault": e.deed.Fault.String()}
	if e.opened > 0 {
		words["opened"] = strings.Join(e.openedBy, ", ")
	}
	r.time.Emit(timeline.Event{
		Lane: timeline.Fault, Way: report.WayWeir, Node: e.deed.name(), Name: what, Numbers: numbers, Strings: words,
	})
	if what == "recovered" {
		return
	}
	r.outages.mu.Lock()
	defer r.outages.mu.Unlock()
	if len(r.faults) < markedFaults {
		label := "healed"
		if what == "begin" {
			label = string(e.deed.Fault.Action()) + " " + e.deed.name()
		}
		r.marks = append(r.marks, report.Mark{
			Way: report.WayWeir, Seconds: time.Since(r.began).Seconds(), Label: label, Fault: true,
		})
	}
}
