package pulls

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/weir-edge/weir/sim/runner"
	"github.com/weir-edge/weir/sim/runtime"
)

// How long a kubelet waits until it asks for an image again (kubelet.go, imageBackOffPeriod and MaxImageBackOff).
const (
	firstBackoff = 10 * time.Second
	maxBackoff   = 300 * time.Second
)

// backoff is how long a kubelet waits after a pull that failed, if it waited so long before.
func backoff(before time.Duration) time.Duration {
	return min(max(2*before, firstBackoff), maxBackoff)
}

// kubelet pulls the image on a node until the node has it or ctx ends. After a restart of containerd it asks at once.
func (c *column) kubelet(ctx context.Context, node string) {
	part, err := c.Site.Part(runtime.ContainerdOf(node))
	if err != nil {
		c.Note(err.Error())
		return
	}
	var wait time.Duration
	for ctx.Err() == nil {
		starts := c.started(node)
		err := c.pulls.Pull(ctx, node, c.image)
		if err == nil {
			c.mu.Lock()
			c.o.got[node] = time.Now()
			c.mu.Unlock()
			c.Note(node + " has the image")
			return
		}
		if ctx.Err() != nil {
			c.Note(node + " is given up: it has no image")
			return
		}
		runner.Slept(ctx, lookEvery) // until the end of a process that was killed is known
		died := !part.Running()
		if !died {
			first, _, _ := strings.Cut(err.Error(), "\n")
			wait = backoff(wait)
			c.Note(fmt.Sprintf("%s asks again in %v: %s", node, wait, first))
		}
		for deadline := time.Now().Add(wait); ctx.Err() == nil && c.started(node) == starts &&
			(died || time.Now().Before(deadline)); {
			runner.Slept(ctx, lookEvery)
		}
		if c.started(node) != starts {
			wait = 0
		}
	}
}

// started is how often the containerd of a node was started again.
func (c *column) started(node string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.starts[node]
}
