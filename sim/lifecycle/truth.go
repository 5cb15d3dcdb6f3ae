package lifecycle

import (
	"slices"
	"time"
)

// truth is what is known of a node by looking at all of the world. A way is open while a heartbeat of the node could
// reach the cloud, straight or through its pool.
type truth struct {
	open  bool
	since time.Duration // as it is
	mute  time.Duration // how long it was not open before that
	grew  time.Duration // when its Lease in the cloud grew last

	alone   time.Duration // for how long it was not open while another node of its pool was, up to the last look
	givenUp bool          // its pool was silent meanwhile, for longer than its policy says
	before  *truth        // while it is open: what was before
}

// opens reports whether the way of a node is open.
func (n *node) opens() bool {
	if !n.lives() || !n.works() {
		return false
	}
	return n.toCloud() || n.toPool() && slices.ContainsFunc(n.pool.nodes, func(o *node) bool { return o != n && o.fit() })
}

// look notes what is open now. It is called after each change; the World's lock is held.
func (j *judge) look() {
	now := j.w.now()
	for _, n := range j.w.nodes {
		t := j.of(n)
		if _, dead := j.dead[n]; n.lives() && n.works() {
			delete(j.dead, n)
		} else if !dead {
			j.dead[n] = now
		}
		if n.pool != nil && !t.open {
			t.alone = j.alone(n)
			t.givenUp = t.givenUp || j.pools[n.pool].mayEvict(now)
		}
		if open := n.opens(); open != t.open {
			before := *t
			switch {
			case open:
				before.before = nil
				*t = truth{open: true, since: now, mute: now - t.since, grew: t.grew, before: &before}
			case t.before != nil && t.grew < t.since: // not for long enough that the cloud could have heard it
				grew := t.grew
				*t = *t.before
				t.grew = grew
			default:
				*t = truth{since: now, grew: t.grew}
			}
			j.w.trace("%s open %t", n.name, open)
		}
	}
	for _, p := range j.w.pools {
		voice := slices.ContainsFunc(p.nodes, func(n *node) bool { return j.of(n).open })
		if s := j.pools[p]; voice != s.voice {
			s.voice, s.since = voice, now
		}
	}
	j.looked = now
}

func (j *judge) of(n *node) *truth { return j.nodes[n] }

// alone is for how long a node has been mute while peers were not: longer than the grace period means that it is dead.
func (j *judge) alone(n *node) time.Duration {
	t := j.of(n)
	if !j.pools[n.pool].voice {
		return t.alone
	}
	return t.alone + j.w.now() - j.looked
}

// poolTruth is of a pool.
type poolTruth struct {
	voice   bool // a node of it is open
	since   time.Duration
	lost    []time.Duration // when a leader was
	policy  []policyAt
	changed time.Duration // of its policy
}

type policyAt struct {
	at    time.Duration
	evict bool
	after time.Duration
}

// mayEvict reports whether a policy that was in force within the last slack allowed to evict a silent pool.
func (p *poolTruth) mayEvict(now time.Duration) bool {
	if p.voice {
		return false
	}
	for i, x := range p.policy {
		over := i+1 < len(p.policy) && p.policy[i+1].at < now-slack
		if !over && x.evict && now-p.since >= x.after-slack {
			return true
		}
	}
	return false
}

// mustEvict is since when the policy in force demands that a silent pool is evicted; false: it does not.
func (p *poolTruth) mustEvict() (time.Duration, bool) {
	if p.voice || len(p.policy) == 0 {
		return 0, false
	}
	x := p.policy[len(p.policy)-1]
	return max(x.at, p.since+x.after), x.evict
}
