package autonomy

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/weir-edge/weir/impl/store/queue"
	"github.com/weir-edge/weir/sim/runner"
	"github.com/weir-edge/weir/sim/runtime"
)

// diskMeter adds up what hubs say of their disks, over the lives of their processes.
type diskMeter struct {
	column *column

	mu       sync.Mutex
	past     disk            // of processes that ended
	now      map[string]disk // of those that run, by node
	complete map[string]int  // collections that can be served without the cloud, by node
}

// disk is what a process wrote, in bytes, and what it found damaged.
type disk struct{ written, damaged int64 }

func (d disk) plus(o disk) disk { return disk{d.written + o.written, d.damaged + o.damaged} }

func (d *diskMeter) run(ctx context.Context) {
	if !d.column.weir {
		return
	}
	for runner.Slept(ctx, time.Second) {
		for _, n := range d.column.nodes {
			d.look(ctx, n)
		}
	}
}

func (d *diskMeter) look(ctx context.Context, node string) {
	p, err := d.column.Site.Part(runtime.HubOf(node))
	if err != nil || !p.Running() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	m, err := p.Metrics(ctx)
	if err != nil {
		return
	}
	now := disk{
		written: int64(m.Sum("weir_store_bytes_written_total") + m.Sum("weir_queue_bytes_written_total")),
		damaged: int64(m.Sum("weir_store_damaged_rows_total") + m.Sum("weir_store_set_aside_total") +
			m.Sum("weir_queue_dropped_total", "why", string(queue.Unusable))),
	}
	if m.Sum("weir_queue_damaged_bytes") > 0 {
		now.damaged++
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.written < d.now[node].written { // another process
		d.past = d.past.plus(d.now[node])
	}
	d.now[node], d.complete[node] = now, int(m.Sum("weir_store_complete_collections"))
}

// sum is what all hubs wrote and found, up to a second ago.
func (d *diskMeter) sum() disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	sum := d.past
	for _, n := range d.now {
		sum = sum.plus(n)
	}
	return sum
}

// collections are what hubs can serve without the cloud, up to a second ago, by node.
func (d *diskMeter) collections() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.complete)
}
