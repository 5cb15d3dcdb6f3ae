package eviction

import (
	"context"
	"iter"

	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/runtime"
)

// alone is what each hub has done without the cloud since its start: reads from its store, and heartbeats that it kept.
type alone map[runtime.PartID]struct{ reads, kept float64 }

// alone asks the hubs that run.
func (c *column) alone(ctx context.Context) alone {
	all := alone{}
	c.eachHub(ctx, func(id runtime.PartID, m parts.Metrics) {
		x := all[id]
		x.reads = m.Sum("weir_hub_requests_total", `route="store"`)
		x.kept = m.Sum("weir_hub_heartbeats_total", `outcome="kept"`)
		all[id] = x
	})
	return all
}

// eachHub reads the metrics of the hubs that run.
func (c *column) eachHub(ctx context.Context, has func(runtime.PartID, parts.Metrics)) {
	for id, p := range c.hubs() {
		m, err := p.Metrics(ctx)
		if err != nil {
			c.Note("no metrics of " + string(id) + ": " + err.Error())
			continue
		}
		has(id, m)
	}
}

// weigh notes the memory of the largest hub.
func (c *column) weigh() {
	for _, p := range c.hubs() {
		if u, err := p.Usage(); err == nil {
			c.heaviest = max(c.heaviest, u.RSSAnon)
		}
	}
}

// hubs are those that run.
func (c *column) hubs() iter.Seq2[runtime.PartID, runtime.Part] {
	return func(yield func(runtime.PartID, runtime.Part) bool) {
		for _, id := range c.Site.Parts() {
			if id.Kind() != "hub" {
				continue
			}
			if p, err := c.Site.Part(id); err == nil && p.Running() && !yield(id, p) {
				return
			}
		}
	}
}

// since sums what came since an earlier look. A hub that has started since counts from its start.
func (a alone) since(before alone) (reads, kept float64) {
	for id, x := range a {
		was := before[id]
		if x.reads < was.reads || x.kept < was.kept {
			was = alone{}[id]
		}
		reads, kept = reads+x.reads-was.reads, kept+x.kept-was.kept
	}
	return reads, kept
}
