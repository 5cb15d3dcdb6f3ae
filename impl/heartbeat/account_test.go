package heartbeat

import (
	"math/rand/v2"
	"testing"
	"time"
)

// hub is one that releases links as it should.
type hub struct {
	chain Chain
	links map[uint64]Link
	last  time.Duration // when its kubelet last renewed
}

// TestLiar: whatever a leader does with the links that hubs have released, and however often weir-manager starts again,
// no node is renewed that gave no sign of life within RollLate, or twice for one; and who has sent nothing is never.
func TestLiar(t *testing.T) {
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 2))
		a := NewAccount(0)
		nodes, hubs := []string{"a", "b", "dead"}, map[string]*hub{}
		known := uint64(0)
		anchors := func(n string) (Anchor, bool) {
			if h := hubs[n]; h != nil {
				return h.chain.Anchor(), true
			}
			return Anchor{}, false
		}
		renewed, beats := map[string]int{}, map[string]int{}
		clock, period := time.Duration(0), known
		for now := time.Duration(0); now < 15*time.Minute; now += time.Duration(1+rng.IntN(9000)) * time.Millisecond {
			switch rng.IntN(40) {
			case 0: // weir-manager starts again, and knows of no receipt: a liar has taken it away
				a = NewAccount(0)
			case 1: // the time of day goes forward
				clock += time.Duration(rng.IntN(3600)) * time.Second
			}
			n := nodes[rng.IntN(len(nodes))]
			if h := hubs[n]; known > 0 && (h == nil || h.chain.Ends(known)) {
				hubs[n] = &hub{chain: NewChain(n, [16]byte{byte(rng.Uint32())}, known), links: map[uint64]Link{}, last: -time.Hour}
			} else if h != nil && (n != "dead" || now < 10*time.Minute) {
				if l, ok := h.chain.Link(known); ok && h.links[known] != l {
					h.links[known] = l
					beats[n]++
				}
				h.last = now
			}
			// any link that there is, as any period, of any node
			var all []Entry
			for _, n := range nodes {
				from := hubs[nodes[rng.IntN(len(nodes))]]
				if rng.IntN(3) > 0 {
					from = hubs[n]
				}
				if from == nil {
					continue
				}
				for p, l := range from.links {
					if p+12 < known {
						continue // costs time: the account has forgotten these periods
					}
					e := Entry{Node: n, Period: p, Link: l, Reaches: rng.IntN(10) > 0}
					if rng.IntN(4) == 0 {
						e.Period += uint64(rng.IntN(3))
					}
					if rng.IntN(4) == 0 {
						e.Link = l.after(n, 1)
					}
					if rng.IntN(2) == 0 {
						all = append(all, e)
					}
				}
			}
			r, _ := NewReport(period, all)
			verdicts := a.Judge(now, r, anchors)
			taken := make([]bool, len(verdicts))
			for i, v := range verdicts {
				e := r.Entries[i]
				if taken[i] = v == Renew; !taken[i] {
					continue
				}
				renewed[e.Node]++
				if h := hubs[e.Node]; now-h.last > RollLate || h.links[e.Period] != e.Link {
					t.Fatalf("seed %d at %v: %s was renewed, and last heard at %v", seed, now, e.Node, h.last)
				}
			}
			c := a.Receipt(now, rollEpoch.Add(now+clock), r, taken)
			if c.Period < period {
				t.Fatalf("seed %d at %v: period %d after %d", seed, now, c.Period, period)
			}
			if period = c.Period; rng.IntN(3) > 0 {
				known = c.Period
			}
		}
		for _, n := range nodes {
			if renewed[n] > beats[n] || renewed[n] == 0 {
				t.Errorf("seed %d: %s was renewed %d times for %d links", seed, n, renewed[n], beats[n])
			}
		}
	}
}

// TestJudge: each verdict.
func TestJudge(t *testing.T) {
	a, c := NewAccount(0), NewChain("n", [16]byte{3}, 0)
	anchors := func(n string) (Anchor, bool) { return c.Anchor(), n == "n" }
	judge := func(now time.Duration, period uint64, change func(*Entry)) Verdict {
		l, _ := c.Link(period)
		e := Entry{Node: "n", Period: period, Link: l, Reaches: true}
		if change != nil {
			change(&e)
		}
		return a.Judge(now, Report{Period: period, Entries: []Entry{e}}, anchors)[0]
	}
	want := func(why string, got, want Verdict) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v, want %v", why, got, want)
		}
	}
	open := func(now time.Duration) uint64 {
		return a.Receipt(now, time.Unix(0, 0), Report{}, nil).Period
	}
	want("before any period", judge(0, 1, nil), Expired)
	first := open(time.Second)
	if again := open(2 * time.Second); again != first {
		t.Errorf("period %d is opened a second after %d", again, first)
	}
	want("no node of the pool", judge(3*time.Second, first, func(e *Entry) { e.Node = "other" }), Unknown)
	want("another link", judge(3*time.Second, first, func(e *Entry) { e.Link[0]++ }), Wrong)
	want("open", judge(4*time.Second, first, nil), Renew)
	want("the same", judge(5*time.Second, first, nil), Again)
	want("not opened", judge(5*time.Second, first+1, nil), Expired)
	second := open(11 * time.Second)
	want("of a node that is cut off", judge(12*time.Second, second, func(e *Entry) { e.Reaches = false }), CutOff)
	third := open(21 * time.Second)
	want("too late", judge(21*time.Second+RollLate+time.Second, third, nil), Expired)
	fourth := open(80 * time.Second)
	want("with links left out", judge(81*time.Second, fourth, nil), Renew)
	c = NewChain("n", [16]byte{4}, fourth)
	fifth := open(90 * time.Second)
	want("of another chain", judge(91*time.Second, fifth, nil), Renew)
	c = NewChain("n", [16]byte{5}, 0)
	want("of a chain that begins before", judge(91*time.Second, fifth, nil), Again)
}
