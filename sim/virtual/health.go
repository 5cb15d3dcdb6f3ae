package virtual

import "time"

// health judges a server by probes, as the hub's checker does: some failures in a row make it unhealthy, some answers healthy.
type health struct {
	h       *Hub
	l       *link
	changed func()
	known   bool
	ok      bool
	fails   int
	oks     int
	run     int
	asked   time.Duration
}

const (
	probeInterval = 10 * time.Second
	probeTimeout  = 2 * time.Second
	probeFailures = 3
	probeHealthy  = 2
)

func (c *health) probe() {
	c.run++
	run := c.run
	c.asked = c.h.loop.Now()
	c.l.ask(probeTimeout, func() {}, func(err error) {
		if c.run != run {
			return
		}
		before := c.known && c.ok
		c.observe(err == nil)
		c.due(c.wait())
		if before != c.ok {
			c.changed()
		}
	})
}

func (c *health) observe(good bool) {
	if good {
		c.oks, c.fails = c.oks+1, 0
	} else {
		c.fails, c.oks = c.fails+1, 0
	}
	switch {
	case !c.known:
		c.known, c.ok = true, good
	case c.ok && c.fails >= probeFailures:
		c.ok = false
	case !c.ok && c.oks >= probeHealthy:
		c.ok = true
	}
}

func (c *health) wait() time.Duration {
	switch {
	case c.ok && c.fails == 0:
		return probeInterval
	case c.ok || c.oks > 0:
		return probeTimeout / 2
	}
	pause := min(probeInterval/2, probeTimeout/8<<min(c.fails-1, 10))
	return c.h.loop.jitter(pause)
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
	if c.known && c.ok && c.fails == 0 {
		c.due(max(0, c.asked+probeTimeout/2-c.h.loop.Now()))
	}
}
