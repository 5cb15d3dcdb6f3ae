package runner

import (
	"context"
	"slices"
	"sync"

	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

// leaderHubs are the nodes that are named to lead a pool without a coordinator.
func leaderHubs(p scenario.Pool) []string { return nodesOf(p)[:p.LeaderHubs] }

// ofLeaderHubs is what a coordinator would say of the pool, by the word of its hubs: who leads is the leader hub that
// most of the others read. While others still read one that leads no more, or nobody, nobody leads.
func (r *run) ofLeaderHubs(ctx context.Context, p scenario.Pool) (s status) {
	var mu sync.Mutex
	var all sync.WaitGroup
	named, read, lost := leaderHubs(p), map[string]int{}, 0
	for _, n := range nodesOf(p) {
		if slices.Contains(named, n) {
			continue
		}
		all.Go(func() {
			var of status
			if part, err := r.site.Part(runtime.HubOf(n)); err != nil || !part.Running() ||
				r.ask(ctx, runtime.HubOf(n), &of) != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if of.Leader == "" {
				lost++
			} else {
				read[of.Leader]++
			}
		})
	}
	all.Wait()
	if lost > 0 {
		return status{}
	}
	for _, n := range named {
		if read[n] > 0 && read[n] > read[s.Leader] {
			s.Leader = n
		}
	}
	return s
}
