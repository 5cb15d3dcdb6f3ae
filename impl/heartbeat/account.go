package heartbeat

import "time"

const (
	// RollEvery is between two reports of a leader.
	RollEvery = 10 * time.Second
	// atLeast is between two periods that are opened, however many reports come.
	atLeast = 8 * time.Second
	// RollLate is how long after a period was opened its links are taken. An honest one comes within three reports.
	RollLate = 35 * time.Second
)

// Verdict is what a report says of one node is worth.
type Verdict uint8

// Verdicts.
const (
	Renew   Verdict = iota // its Lease may be renewed
	CutOff                 // it was heard, and does not reach the cloud: the leader forwards its heartbeats
	Unknown                // there is no anchor, or it is no node of the pool
	Expired                // its period is not open, or was opened too long ago
	Again                  // its link, or a later one, was taken before
	Wrong                  // its link is not in the chain
)

func (v Verdict) String() string {
	return [...]string{"renew", "cut-off", "unknown", "expired", "again", "wrong"}[v]
}

// opening is a period that was opened.
type opening struct {
	period uint64
	at     time.Duration
}

// used is the last link that was taken of a node.
type used struct {
	anchor Anchor
	period uint64
	link   Link
}

// Account is what weir-manager knows of the roll call of one pool. It is not safe for concurrent use. Time is a
// duration by its own monotonic clock. One that has just begun knows no period: it renews nobody until it has opened
// one.
type Account struct {
	last   uint64
	opened []opening
	nodes  map[string]used
}

// NewAccount begins after the period of the last receipt that is known; 0: none is.
func NewAccount(last uint64) *Account { return &Account{last: last, nodes: map[string]used{}} }

// Judge judges each entry of a report, in their order, and takes the links that are right. anchor is that of a node of
// the pool, as its own Lease has it; false: there is none.
func (a *Account) Judge(now time.Duration, r Report, anchor func(node string) (Anchor, bool)) []Verdict {
	all := make([]Verdict, len(r.Entries))
	for i, e := range r.Entries {
		if root, ok := anchor(e.Node); ok {
			all[i] = a.judge(now, e, root)
		} else {
			all[i] = Unknown
			delete(a.nodes, e.Node)
		}
	}
	return all
}

func (a *Account) judge(now time.Duration, e Entry, root Anchor) Verdict {
	before := a.nodes[e.Node]
	if e.Period <= before.period {
		return Again
	}
	if !a.takes(now, e.Period) {
		return Expired
	}
	from := root
	if before.anchor == root && before.period > root.Begin {
		from = Anchor{Begin: before.period, Link: before.link}
	}
	if e.Period-min(root.Begin, e.Period) > ChainLength || !from.Proves(e.Node, e.Period, e.Link) {
		return Wrong
	}
	a.nodes[e.Node] = used{root, e.Period, e.Link}
	if !e.Reaches {
		return CutOff
	}
	return Renew
}

// takes reports whether links of a period are taken.
func (a *Account) takes(now time.Duration, period uint64) bool {
	for _, o := range a.opened {
		if o.period == period {
			return now-o.at <= RollLate
		}
	}
	return false
}

// Forget forgets a node that is not in the pool any more.
func (a *Account) Forget(node string) { delete(a.nodes, node) }

// Receipt is that of a report. renewed says of each of its entries whether the node's Lease was written. It opens
// another period, unless the last one is too young. clock is the time of day.
func (a *Account) Receipt(now time.Duration, clock time.Time, r Report, renewed []bool) Receipt {
	if n := len(a.opened); n == 0 || now-a.opened[n-1].at >= atLeast {
		a.last = next(a.last, clock)
		for n > 0 && now-a.opened[0].at > RollLate {
			a.opened, n = a.opened[1:], n-1
		}
		a.opened = append(a.opened, opening{a.last, now})
	}
	return newReceipt(a.last, r, renewed)
}

// next is the number of a period after another one: it grows with the time of day, and never faster. So numbers of
// before a restart do not come again, though nobody remembers them.
func next(last uint64, clock time.Time) uint64 {
	return max(last+1, uint64(max(clock.Unix(), 1))/uint64(atLeast/time.Second))
}
