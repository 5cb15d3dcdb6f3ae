package autonomy

import (
	"context"
	"sync"
	"time"

	"github.com/weir-edge/weir/sim/runner"
	"github.com/weir-edge/weir/sim/runtime"
)

// diskMeter adds up what hubs write, over the lives of their processes.
type diskMeter struct {
	column *column

	mu   sync.Mutex
	past int64            // of processes that ended
	now  map[string]int64 // of those that run, by node
}

// writtenMetrics are what a hub says it wrote.
var writtenMetrics = [...]string{"weir_store_bytes_written_total", "weir_queue_bytes_written_total"}

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
	var sum int64
	for _, name := range writtenMetrics {
		sum += int64(m.Sum(name))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if sum < d.now[node] { // another process
		d.past += d.now[node]
	}
	d.now[node] = sum
}

// written is what all hubs wrote, up to a second ago.
func (c *column) written() int64 {
	c.disk.mu.Lock()
	defer c.disk.mu.Unlock()
	sum := c.disk.past
	for _, n := range c.disk.now {
		sum += n
	}
	return sum
}
