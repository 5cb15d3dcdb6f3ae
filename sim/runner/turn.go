package runner

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/scenario"
	"github.com/weir-edge/weir/sim/timeline"
)

const (
	askEvery    = 500 * time.Millisecond // how often a client of each node asks something while an authority is replaced
	askPatience = 15 * time.Second       // for an answer
)

// turn is what is seen while an authority is replaced.
type turn struct {
	signed        string // name of the authority that signed before
	asked, failed atomic.Int64

	mu  sync.Mutex
	end context.CancelFunc // of the one that asks; nil: nobody does
}

// askOn lets a client of each node of a pool ask for what its relays hold and for what only the cloud has, on and on,
// until the turn is over.
func (r *run) askOn(ctx context.Context, p scenario.Pool) error {
	ctx, end := context.WithCancel(ctx)
	r.turn.mu.Lock()
	r.turn.end = end
	r.turn.mu.Unlock()
	for _, node := range nodesOf(p) {
		config, err := r.config(ctx, node, string(scenario.JSON))
		if err != nil {
			end()
			return err
		}
		c, err := kubernetes.NewForConfig(config)
		if err != nil {
			end()
			return err
		}
		r.background.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				r.askOnce(ctx, c, node, []string{
					"/apis/discovery.k8s.io/v1/endpointslices?limit=1", "/api/v1/services?limit=1",
				}[i%2])
				_ = sleep(ctx, askEvery)
			}
		})
	}
	return nil
}

func (r *run) askOnce(ctx context.Context, c kubernetes.Interface, node, path string) {
	asking, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	_, err := c.Discovery().RESTClient().Get().RequestURI(path).MaxRetries(0).DoRaw(asking)
	if ctx.Err() != nil {
		return
	}
	r.turn.asked.Add(1)
	if err == nil {
		return
	}
	r.turn.failed.Add(1)
	r.Progress(fmt.Sprintf("a client on %s asks for %s: %v", node, path, err))
	r.time.Emit(timeline.Event{
		Lane: timeline.Client, Way: report.WayWeir, Node: node, Name: "a request failed",
		Strings: map[string]string{"path": path, "err": err.Error()},
	})
}

// askNoMore ends who asks.
func (t *turn) askNoMore() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end != nil {
		t.end()
	}
}
