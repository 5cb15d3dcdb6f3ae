package virtual

import (
	"time"

	"github.com/weir-edge/weir/impl/member"
)

// probing is how servers are judged by default; see weir-hub's flags.
var probing = member.Probing{
	Interval: 10 * time.Second, Timeout: 2 * time.Second, Failures: 3, Healthy: 2, Away: 5 * time.Second,
	Confirm: time.Second,
}

// health probes a server over a link, and lets member.Health judge the answers.
type health struct {
	member.Health
	policy  member.Probing
	h       *Hub
	ask     func(limit time.Duration, done func(error))
	changed func()
	run     int
	asked   time.Duration
}

func (c *health) probe() {
	c.run++
	run := c.run
	c.asked = c.h.loop.Now()
	c.ask(c.policy.Timeout, func(err error) {
		if c.run != run {
			return
		}
		before := c.Health
		c.Observe(c.policy, err == nil)
		next := c.Next(c.policy)
		if err != nil {
			next = c.h.loop.jitter(next)
		}
		c.due(next)
		if before.Known != c.Known || before.OK != c.OK {
			c.changed()
		}
	})
}

func (c *health) due(d time.Duration) {
	run := c.run
	c.h.after(d, func() {
		if c.run == run {
			c.probe()
		}
	})
}

// kick makes the next probe due soon: something failed.
func (c *health) kick() {
	if c.Known && c.OK && c.Fails == 0 {
		c.due(max(0, c.asked+c.policy.Timeout/2-c.h.loop.Now()))
	}
}
