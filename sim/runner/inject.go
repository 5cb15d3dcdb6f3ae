package runner

import (
	"context"
	"errors"
	"fmt"
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
	reachPatience  = time.Minute             // until a marker is everywhere; longer than any grace period
	reachTick      = 20 * time.Millisecond   // of looking for it; the time itself is the recording's
	electionTick   = 25 * time.Millisecond   // of looking who leads
	truthQuiet     = 1500 * time.Millisecond // for which recorders of the truth that were cut off have to have a watch again
	markedFaults   = 12                      // more would hide the plots
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
	ended     time.Time
	bytes     int64 // of class pool, beyond the changes
	resync    int64 // of class pool from its end until recovered, changes and all
	opened    int   // connections to the cloud
	waited    int   // streams that were waited for, in the end
}

// outages are the nodes whose clients cannot be served now, or could not be until lately.
type outages struct {
	mu    sync.Mutex
	dead  map[string]time.Time // node → when its hub last began or ended to be away: connections of before are gone
	quiet map[string]int       // node → number of faults that keep it from being served
}

// down notes that clients of nodes have lost their connections.
func (r *run) down(nodes []string) {
	r.outages.mu.Lock()
	defer r.outages.mu.Unlock()
	for _, n := range nodes {
		r.outages.dead[n] = time.Now()
	}
}

func (r *run) silence(nodes []string, by int) {
	r.outages.mu.Lock()
	defer r.outages.mu.Unlock()
	for _, n := range nodes {
		r.outages.quiet[n] += by
	}
}

// served are the streams that a change can reach: not those of nodes that are cut off or whose hub is away, and not those that
// wait, as client-go does, some seconds before they come back to a hub that was away.
func (r *run) served() []*stream {
	r.outages.mu.Lock()
	defer r.outages.mu.Unlock()
	var list []*stream
	for _, s := range r.weir().streams {
		dead, was := r.outages.dead[s.node]
		opened, open := s.Recording.Opened()
		if r.outages.quiet[s.node] == 0 && (!was || open && opened.After(dead)) {
			list = append(list, s)
		}
	}
	return list
}

// injectAll lets all faults happen and returns when the last one is healed.
func (r *run) injectAll(ctx context.Context) error {
	began := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for _, f := range r.s.Faults {
		g.Go(func() error {
			if err := sleep(ctx, time.Until(began.Add(f.At))); err != nil {
				return err
			}
			if err := r.inject(ctx, f); err != nil {
				return fmt.Errorf("fault %s at %v: %w", f, f.At, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// inject does a fault as often as it says.
func (r *run) inject(ctx context.Context, f scenario.Fault) error {
	for i := range f.Repeat {
		if i > 0 {
			if err := sleep(ctx, f.Every); err != nil {
				return err
			}
			if err := r.until(ctx, settlePatience, func() (bool, string) { return r.steady(ctx) }); err != nil {
				return fmt.Errorf("before repetition %d: %w", i+1, err)
			}
			r.Progress(fmt.Sprintf("fault %s: %d of %d", f, i+1, f.Repeat))
		}
		targets := []scenario.Target{f.Target}
		if f.Target == scenario.Each {
			targets = []scenario.Target{scenario.Coordinator}
			for n := range r.weir().nodes {
				targets = append(targets, scenario.Target(fmt.Sprintf("hub/%d", n+1)))
			}
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
				if node := r.heldBy(ctx); d.part == runtime.HubOf(node) {
					d.leader = node
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
	if d.part == runtime.APIServer { // nothing can be written then
		r.writing.Lock()
		unlock := sync.OnceFunc(r.writing.Unlock)
		defer unlock()
		if err := r.truth.hold(ctx, r.admin); err != nil {
			return err
		}
		return r.episode(ctx, d, unlock)
	}
	return r.episode(ctx, d, func() {})
}

func (r *run) episode(ctx context.Context, d *deed, writable func()) (err error) {
	e := episode{deed: d, began: time.Now()}
	before := r.account()
	r.note(e, "begin")
	r.silence(d.hubs, 1)
	if err := r.begin(ctx, d); err != nil {
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
	if d.leader != "" {
		votes.Go(func() error { e.detect, e.elect = r.watchElection(electing, d.leader, e.began); return nil })
	}
	if !d.cutOff {
		marks.Go(func() (err error) { e.reached, e.waited, err = r.mark(ctx, e.began); return err })
	}
	if d.fault.Action == scenario.Flap {
		err = r.flap(ctx, d)
	} else {
		err = sleep(ctx, d.fault.For)
	}
	if err != nil {
		return err
	}
	if d.part == runtime.APIServer || d.cutOff {
		before.resync = r.poolBytes()
	}
	if err := r.heal(ctx, d); err != nil {
		return err
	}
	e.healed = time.Now()
	r.silence(d.hubs, -1)
	r.note(e, "healed")
	if d.part == runtime.APIServer && d.ends() {
		if err := r.truth.back(ctx, e.began); err != nil {
			return err
		}
	}
	writable()
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

// hubsBack tells whether the part that was the target has its caches again.
func (r *run) hubsBack(ctx context.Context, d *deed) (bool, string) {
	if d.part == "" || d.part == runtime.APIServer {
		return true, ""
	}
	var s status
	if err := r.ask(ctx, d.part, &s); err != nil {
		return false, fmt.Sprintf("waiting for %s: %v", d.part, err)
	}
	for _, res := range s.Resources {
		if !res.Synced || d.part.Kind() == "coordinator" && !res.Ready {
			return false, fmt.Sprintf("waiting for %s of %s", res.Resource, d.part)
		}
	}
	return true, ""
}

// mark writes the marker and waits until all clients that can be served have it; it returns how long after a time that was, and how
// many streams that were. A marker that is late is told and counts as long as it was waited for.
func (r *run) mark(ctx context.Context, from time.Time) (took time.Duration, waited int, err error) {
	r.writing.Lock()
	written := time.Now()
	versions, err := r.marker.Write(ctx)
	r.writing.Unlock()
	if err != nil {
		return 0, 0, err
	}
	poll := time.NewTicker(reachTick)
	defer poll.Stop()
	for {
		last, missing := written, ""
		streams := r.served()
		for _, s := range streams {
			at, ok := s.Recording.Reached(versions[s.Spec.Resource], written)
			if !ok {
				missing = fmt.Sprintf("%s of %s on %s", s.Spec.Resource, s.Spec.Client, s.node)
				break
			}
			if at.After(last) {
				last = at
			}
		}
		switch {
		case len(streams) == 0: // nobody could tell
			return 0, 0, nil
		case missing == "":
			return last.Sub(from), len(streams), nil
		case time.Since(written) > reachPatience:
			r.time.Emit(timeline.Event{Lane: timeline.Fault, Way: report.WayWeir, Name: "late", Strings: map[string]string{"missing": missing}})
			r.Progress(fmt.Sprintf("a marker has not reached everybody in %v: not %s", reachPatience, missing))
			return time.Since(from), len(streams), nil
		}
		select {
		case <-ctx.Done():
			return 0, 0, ctx.Err()
		case <-poll.C:
		}
	}
}

// watchElection follows, at the coordinator, how the lead goes from one node to another.
func (r *run) watchElection(ctx context.Context, from string, began time.Time) (detect, elect time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, reachPatience)
	defer cancel()
	poll := time.NewTicker(electionTick)
	defer poll.Stop()
	for {
		var s status
		if r.ask(ctx, runtime.CoordinatorOf(r.weir().pool), &s) == nil && s.Leader != from {
			if detect == 0 {
				detect = time.Since(began)
			}
			if s.Leader != "" {
				r.time.Emit(timeline.Event{Lane: timeline.Leader, Way: report.WayWeir, Node: s.Leader, Name: "elected", Strings: map[string]string{"after": from, "term": s.Term}})
				return detect, time.Since(began)
			}
		}
		select {
		case <-ctx.Done():
			return detect, 0
		case <-poll.C:
		}
	}
}

// back waits until recorders that may have lost their watch have one again. Nothing is written meanwhile.
func (t *truth) back(ctx context.Context, since time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, syncPatience)
	defer cancel()
	poll := time.NewTicker(tick)
	defer poll.Stop()
	for {
		back := 0
		for _, s := range t.streams {
			if opened, open := s.Recording.Opened(); open && opened.After(since) && time.Since(opened) > truthQuiet {
				back++
			}
		}
		if back == len(t.streams) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the recorders of the truth do not come back: %w", ctx.Err())
		case <-poll.C:
		}
	}
}

// note writes what happened to the timeline and the plots.
func (r *run) note(e episode, what string) {
	numbers := map[string]float64{}
	if what == "recovered" {
		for name, v := range map[string]time.Duration{"reached": e.reached, "detect": e.detect, "elect": e.elect, "recovered": e.recovered} {
			numbers[name] = v.Seconds()
		}
		numbers["cloud_bytes"], numbers["connections"], numbers["streams"] = float64(e.bytes), float64(e.opened), float64(e.waited)
	}
	r.time.Emit(timeline.Event{Lane: timeline.Fault, Way: report.WayWeir, Node: e.deed.name(), Name: what, Numbers: numbers, Strings: map[string]string{"fault": e.deed.fault.String()}})
	if what == "recovered" {
		return
	}
	r.outages.mu.Lock()
	defer r.outages.mu.Unlock()
	if len(r.faults) < markedFaults {
		label := "healed"
		if what == "begin" {
			label = string(e.deed.fault.Action) + " " + e.deed.name()
		}
		r.marks = append(r.marks, report.Mark{Way: report.WayWeir, Seconds: time.Since(r.began).Seconds(), Label: label, Fault: true})
	}
}
