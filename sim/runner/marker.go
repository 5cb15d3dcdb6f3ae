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
	reachPatience = 2 * time.Minute       // until a marker is everywhere; longer than any grace period and its spread
	votePatience  = time.Minute           // until another one leads
	reachTick     = 20 * time.Millisecond // of looking for it; the time itself is the recording's
	electionTick  = 25 * time.Millisecond // of looking who leads
)

// outages are the nodes whose clients cannot be served now, or could not be until lately.
type outages struct {
	mu sync.Mutex
	// node → when its hub last began or ended to be away: connections of before are gone.
	dead  map[string]time.Time
	quiet map[string]int                 // node → number of faults that keep it from being served
	parts map[runtime.PartID]*sync.Mutex // held while something is done to the part
}

// Lost implements scenario.Lab: clients of nodes have lost their connections.
func (r *run) Lost(nodes []string) {
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

// served are the streams that a change can reach: not those of nodes that are cut off or whose hub is away, and not
// those that wait, as client-go does, some seconds before they come back to a hub that was away.
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

// mark writes the marker and waits until all clients that can be served have it; it returns how long after a time that
// was, and how many streams that were. One that does not come is told, ~is valid as long as it was waited for, and
// fails the run.
func (r *run) mark(ctx context.Context, from time.Time) (took time.Duration, waited int, err error) {
	r.writing.Lock()
	written, gone := time.Now(), r.reach.gone()
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
			version, marked := versions[s.Spec.Resource]
			if !marked { // nothing is written of it
				continue
			}
			at, ok := s.Recording.Reached(version, written)
			if !ok || !r.truth().listed(s.Stream) {
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
		case time.Since(written)-(r.reach.gone()-gone) > reachPatience:
			r.time.Emit(timeline.Event{
				Lane: timeline.Fault, Way: report.WayWeir, Name: "late", Strings: map[string]string{"missing": missing},
			})
			r.outages.mu.Lock()
			r.late++
			r.outages.mu.Unlock()
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

// watchElection follows, at the pool's coordinator, how the lead goes from the node of a deed to another.
func (r *run) watchElection(ctx context.Context, d *deed, began time.Time) (detect, elect time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, votePatience)
	defer cancel()
	poll := time.NewTicker(electionTick)
	defer poll.Stop()
	for {
		if s, err := r.poolStatus(ctx, d.Pool); err == nil && s.Leader != d.Leader &&
			(d.Pool.Coordinators > 0 || detect > 0 || s.Leader != "") {
			if detect == 0 {
				detect = time.Since(began)
			}
			if s.Leader != "" {
				r.time.Emit(timeline.Event{
					Lane: timeline.Leader, Way: report.WayWeir, Node: s.Leader, Name: "elected",
					Strings: map[string]string{"after": d.Leader, "term": s.Term},
				})
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
