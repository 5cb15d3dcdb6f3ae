package coordinator

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"
)

// homeAfter is how long the replica that a hub prefers has to be ready before the hub goes back to it. Were it for
// ever, all hubs would be at one replica once each of the others has been restarted.
const homeAfter = time.Minute

// shunFor is how long a leader hub is left alone from which nothing fresh came, though it said so, or which the cloud
// contradicted.
const shunFor = 10 * time.Minute

// staleLooks is how many probes in a row have to find that a replica serves and is not fresh before the hub goes to one
// that is.
const staleLooks = 2

// Healthz reports whether any replica serves, and goes to another one if that stands better than the one in use. The
// one in use has the first word; others are asked as soon as it fails, or takes long.
func (c *Client) Healthz(ctx context.Context) error {
	use, all := c.InUse(), c.Replicas()
	now := use.Replica
	switch {
	case len(all) == 0:
		return errNobody
	case len(all) == 1 && now.Node == "":
		_, err := now.Do(ctx, http.MethodGet, "/healthz", nil, nil)
		return err
	}
	best := c.survey(ctx, now, all)
	if best.Replica == now {
		use.stands(best.standing, c.Moved)
	}
	if best.Replica == now && best.standing == ready {
		c.stale = 0
	}
	if best.standing == down {
		return best.err
	}
	if best.Replica == now {
		best = c.home(ctx, best, all)
	}
	if best.Replica != now {
		c.move(best)
	}
	return nil
}

// survey finds the replica that stands best; of equals, the one in use.
func (c *Client) survey(ctx context.Context, now *Replica, all []*Replica) finding {
	began := c.Clock.Now()
	ctx, cancel := context.WithCancel(ctx)
	answers := make(chan finding, len(all))
	waiting := 0
	ask := func(r *Replica) {
		waiting++
		go func() { answers <- r.probe(ctx) }()
	}
	defer func() {
		cancel()
		for ; waiting > 0; waiting-- {
			<-answers
		}
	}()
	ask(now)
	hedge := c.Clock.NewTimer(c.hedge(now))
	defer hedge.Stop()
	late := hedge.C()
	own, best := finding{Replica: now, err: context.DeadlineExceeded}, finding{Replica: now}
	for waiting > 0 {
		askOthers := false
		select {
		case v := <-answers:
			waiting--
			c.Logger.Debug("probe of a replica", "server", v.URL.Host, "standing", v.standing, "err", v.err,
				"took", c.Clock.Since(began))
			v = c.trusted(v)
			if v.Replica == now {
				own = v
				askOthers = late != nil
			}
			if v.standing > best.standing || v.standing == best.standing && v.Replica == now {
				best = v
			}
		case <-late:
			askOthers = true
		}
		if own.standing == ready || own.standing == serving && c.stays(now) {
			return own
		}
		if best.standing == ready {
			return best
		}
		if askOthers {
			late = nil
			for _, r := range all {
				if r != now {
					ask(r)
				}
			}
		}
	}
	if best.standing == down {
		return own
	}
	return best
}

// hedge is for how long the one in use has the word alone.
func (c *Client) hedge(now *Replica) time.Duration {
	if now.Node != "" {
		return c.Policy.Timeout / 8 // all others are as near, and nothing is lost by a change
	}
	return c.Policy.Timeout / 2
}

// trusted is a finding as far as it may be believed: a leader hub that is shunned is not fresh, whatever it says.
func (c *Client) trusted(v finding) finding {
	if v.Node == "" || v.standing != ready {
		return v
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shunned[v.Node].After(c.Clock.Now()) {
		v.standing = serving
	}
	return v
}

// Shun leaves a leader hub alone for a while, as one that is not fresh: nothing fresh came from it though it said so,
// or the cloud contradicted it.
func (c *Client) Shun(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Clock.Now()
	maps.DeleteFunc(c.shunned, func(_ string, until time.Time) bool { return !until.After(now) })
	if c.shunned == nil {
		c.shunned = map[string]time.Time{}
	}
	c.shunned[node] = now.Add(shunFor)
}

// stays reports whether a replica is kept that serves and is not fresh. A leader makes it fresh. For others, fresh may
// be a moment away, as after a start; that they looked is counted.
func (c *Client) stays(now *Replica) bool {
	switch {
	case now.Node != "": // it said so by itself, at once
		return false
	case c.Leads():
		return true
	}
	c.stale++
	return c.stale < staleLooks
}

// home goes back to the replica that this hub prefers once that has been ready for some time. A leader stays where it
// is.
func (c *Client) home(ctx context.Context, now finding, all []*Replica) finding {
	if now.Replica == all[0] || now.Node == "" && c.Leads() {
		c.homeSeen = time.Time{}
		return now
	}
	v := c.trusted(all[0].probe(ctx))
	switch at := c.Clock.Now(); {
	case v.standing != ready:
		c.homeSeen = time.Time{}
	case c.homeSeen.IsZero():
		c.homeSeen = at
	case at.Sub(c.homeSeen) > homeAfter:
		return v
	}
	return now
}

// move uses another replica from now on: what runs at the one before ends.
func (c *Client) move(to finding) {
	c.mu.Lock()
	before := c.using
	if !slices.Contains(c.replicas, to.Replica) { // it is of the pool no more
		c.mu.Unlock()
		return
	}
	c.using = newUse(to.Replica)
	c.using.standing.Store(int32(to.standing))
	c.mu.Unlock()
	c.homeSeen, c.stale = time.Time{}, 0
	c.Logger.Info("another replica of the coordinator is used", "server", to.URL.Host, "was", before.URL.Host,
		"ready", to.standing == ready)
	before.end()
	c.Moved()
}
