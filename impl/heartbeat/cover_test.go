package heartbeat

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/testkit"
)

// rollWorld is a pool that is renewed by its roll call, in virtual time: kubelets, hubs, a desk, leaders, weir-manager
// and the Leases in the cloud.
type rollWorld struct {
	testkit.Loop
	rng    *rand.Rand
	nodes  []*rollNode
	desk   RollCall
	leader int // who leads: its number
	caller Caller
	liar   func(r *Report) // changes what is reported
	cut    bool            // the leader from the cloud

	report   string // what stands in the Lease of the pool
	receipts map[string]Receipt
	receipt  string
	account  *Account // nil: weir-manager is dead
	judged   string
	clock    time.Duration // of weir-manager's machine, beside the world's

	pooled, direct int
	faults         []string
}

// rollNode is a node with its hub.
type rollNode struct {
	name   string
	cover  *Cover
	every  time.Duration
	alive  bool
	died   time.Duration
	clock  time.Duration // of its machine
	anchor string        // on its Lease
	renew  time.Time
	seen   time.Duration // when weir-manager first saw that
	grew   time.Duration
}

func newRollWorld(seed uint64, nodes int) *rollWorld {
	w := &rollWorld{rng: rand.New(rand.NewPCG(seed, 3)), receipts: map[string]Receipt{}, account: NewAccount(0)}
	for i := range nodes {
		n := &rollNode{name: fmt.Sprint("edge-", i+1), every: Interval, alive: true, renew: epoch}
		n.cover = NewCover(n.name, func() (s [16]byte) { s[0], s[1] = byte(w.rng.Uint32()), byte(w.rng.Uint32()); return s })
		w.nodes = append(w.nodes, n)
		w.After(w.span(0, Interval), func() { w.beat(n) })
	}
	w.lead(0)
	return w
}

func (w *rollWorld) span(from, to time.Duration) time.Duration {
	return from + time.Duration(w.rng.Int64N(int64(to-from)+1))
}

func (w *rollWorld) fault(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf("%v ", w.Now())+fmt.Sprintf(format, args...))
}

// grow lets the Lease of a node grow.
func (w *rollWorld) grow(n *rollNode, renew time.Time) {
	if !renew.After(n.renew) {
		w.fault("the Lease of %s does not grow: %v after %v", n.name, renew, n.renew)
	}
	n.renew, n.grew, n.seen = renew, w.Now(), w.Now()
}

// beat is a heartbeat of the kubelet, as package beat deals with it.
func (w *rollWorld) beat(n *rollNode) {
	if !n.alive {
		return
	}
	w.After(n.every+time.Duration(w.rng.Int64N(int64(n.every)/25)), func() { w.beat(n) })
	n.cover.Beat(w.Now())
	for range 2 {
		notice, err := w.desk.HandIn(n.cover.Entry(true))
		if err != nil {
			w.fault("%s: %v", n.name, err)
		}
		if r, ok := w.receipts[notice.Receipt]; !ok || !n.cover.Hear(r, notice.Roster) {
			break
		}
	}
	if n.cover.Covered() {
		w.pooled++
		w.overdue(n, w.Now())
		return
	}
	w.pass(n)
}

// overdue waits for the receipt of a heartbeat that was left to the pool, and asks for it once more.
func (w *rollWorld) overdue(n *rollNode, beat time.Duration) {
	at, ok := n.cover.Lapses()
	if !ok {
		return
	}
	w.After(max(at-w.Now(), 0), func() {
		if n.cover.beat != beat {
			return
		}
		notice, _ := w.desk.HandIn(Entry{Node: n.name})
		if r, ok := w.receipts[notice.Receipt]; ok {
			n.cover.Hear(r, notice.Roster)
		}
		if at, ok = n.cover.Lapses(); ok && at <= w.Now() {
			w.pass(n)
		} else {
			w.overdue(n, beat)
		}
	})
}

// pass passes the heartbeat that came last to the cloud.
func (w *rollWorld) pass(n *rollNode) {
	w.direct++
	w.After(w.span(10*time.Millisecond, time.Second), func() {
		own := n.cover.Least(w.Now(), epoch.Add(time.Hour+w.Now()+n.clock))
		w.grow(n, Later(own, time.Time{}))
		n.anchor = n.cover.Anchor()
		n.cover.Direct(n.renew, n.anchor)
	})
}

// lead lets another hub lead.
func (w *rollWorld) lead(who int) {
	w.leader, w.caller = who, Caller{}
	w.caller.Lead(w.Now())
	w.call(who)
}

// call reports, while this one leads.
func (w *rollWorld) call(who int) {
	if w.leader != who {
		return
	}
	all := w.desk.Collect()
	w.caller.Heard(w.nodes[who].cover.Period())
	r, _ := w.caller.Report(w.Now(), all)
	if w.liar != nil {
		w.liar(&r)
	}
	w.After(w.span(10*time.Millisecond, 500*time.Millisecond), func() {
		switch text := w.receipt; {
		case w.cut || w.leader != who:
			w.caller.Unanswered(w.Now())
		default:
			w.report = r.String()
			w.After(w.span(10*time.Millisecond, 500*time.Millisecond), w.judge)
			if c, ok := w.receipts[text]; ok {
				n, _ := w.caller.Answered(w.Now(), c, text)
				_ = w.desk.Post(n)
			} else {
				w.caller.Unanswered(w.Now())
			}
		}
		w.After(max(w.caller.Due()-w.Now(), 0), func() { w.call(who) })
	})
}

// judge is weir-manager, which looks at what stands in the Lease of the pool.
func (w *rollWorld) judge() {
	if w.account == nil || w.judged == w.report {
		return
	}
	w.judged = w.report
	r, err := ParseReport(w.report)
	if err != nil {
		w.fault("report: %v", err)
		return
	}
	node := func(name string) *rollNode {
		return w.nodes[slices.IndexFunc(w.nodes, func(n *rollNode) bool { return n.name == name })]
	}
	renewed := make([]bool, len(r.Entries))
	for i, v := range w.account.Judge(w.Now(), r, func(name string) (Anchor, bool) {
		a, err := ParseAnchor(node(name).anchor)
		return a, err == nil
	}) {
		if renewed[i] = v == Renew; renewed[i] {
			n := node(r.Entries[i].Node)
			w.grow(n, Onward(n.renew, w.Now()-n.seen))
		}
	}
	c := w.account.Receipt(w.Now(), epoch.Add(w.Now()+w.clock), r, renewed)
	w.receipt = strconv.Itoa(len(w.receipts))
	w.receipts[w.receipt] = c
}

// run runs until a time, and judges each second how long Leases of living nodes have stood still.
func (w *rollWorld) run(until, most, dead time.Duration) {
	for at := w.Now(); at < until; at += time.Second {
		w.Run(at)
		for _, n := range w.nodes {
			if n.alive && w.Now()-n.grew > most && w.Now() > most {
				w.fault("the Lease of %s stands still for %v, and its kubelet lives", n.name, w.Now()-n.grew)
				n.grew = w.Now()
			}
			if !n.alive && n.grew > n.died+dead {
				w.fault("the Lease of %s grew %v after its kubelet had died", n.name, n.grew-n.died)
				n.died = w.Now()
			}
		}
	}
}

func (w *rollWorld) verdict(t *testing.T, seed uint64) {
	t.Helper()
	if len(w.faults) > 0 {
		t.Fatalf("seed %d: %q", seed, w.faults[:min(len(w.faults), 5)])
	}
}

// rollBudget is that of these worlds.
var rollBudget = Budget{Request: time.Second}

// TestCoveredBudget: the longest time in which the Lease of a covered node does not grow is below the grace of every
// Kubernetes that is supported.
func TestCoveredBudget(t *testing.T) {
	for request, want := range map[time.Duration]time.Duration{
		time.Second:           34 * time.Second,
		Stagger + time.Second: 35500 * time.Millisecond, // the first of three servers is dead
	} {
		if got := (Budget{Request: request}).Covered(); got != want || got+4*time.Second > GraceBefore {
			t.Errorf("got %v, want %v, and four seconds to spare of %v", got, want, GraceBefore)
		}
	}
	for request, want := range map[time.Duration]time.Duration{
		time.Second: 42400 * time.Millisecond, Stagger + time.Second: 46900 * time.Millisecond,
	} {
		if got := (Budget{Pool: time.Second, Request: request}).CoveredAndCut(); got != want || got+3*time.Second > Grace {
			t.Errorf("its way is cut as well: got %v, want %v, and three seconds to spare of %v", got, want, Grace)
		}
	}
}

// TestQuietPool: of a pool in which nothing happens hardly a heartbeat goes to the cloud by itself, and no Lease stands
// still for longer than two reports.
func TestQuietPool(t *testing.T) {
	for _, seed := range seeds(4) {
		w := newRollWorld(seed, 5)
		w.run(2*time.Minute, rollBudget.Covered(), 0)
		w.pooled, w.direct = 0, 0
		w.run(2*time.Hour, 2*Slowest+RollEvery+2*time.Second, 0)
		w.verdict(t, seed)
		if all := w.pooled + w.direct; w.direct*100 > all*2 {
			t.Errorf("seed %d: %d of %d heartbeats go to the cloud by themselves, want one in half an hour, and few that are "+
				"overdue", seed, w.direct, all)
		}
	}
}

// TestDisturbedPool: whatever happens to weir-manager, to leaders and to clocks, in whatever order, the Lease of a node
// that lives never stands still for longer than the budget, and that of a dead one soon does.
func TestDisturbedPool(t *testing.T) {
	pooled := 0
	for _, seed := range seeds(20) {
		w := newRollWorld(seed, 4)
		for w.Now() < 40*time.Minute {
			w.run(w.Now()+w.span(time.Second, time.Minute), rollBudget.Covered(), RollEvery+3*time.Second)
			n := w.nodes[w.rng.IntN(len(w.nodes))]
			switch w.rng.IntN(8) {
			case 0:
				w.account = nil
			case 1, 2: // it starts, and may have lost what it was
				w.account, w.judged = NewAccount(0), ""
				w.After(w.span(0, time.Second), w.judge)
			case 3: // another leads, perhaps at once, perhaps not
				w.leader = -1
				who := w.rng.IntN(len(w.nodes))
				w.After(w.span(0, 20*time.Second), func() { w.lead(who) })
			case 4:
				w.cut = !w.cut
			case 5:
				n.clock += w.span(-time.Minute, time.Minute)
			case 6:
				w.clock += w.span(0, time.Hour)
			case 7:
				if n.alive = !n.alive; n.alive {
					n.grew = w.Now()
					w.beat(n)
				}
				n.died = w.Now()
			}
		}
		w.verdict(t, seed)
		pooled += w.pooled
	}
	if *seedFlag == 0 && pooled < 2000 {
		t.Errorf("only %d heartbeats were left to the pool: the test shows nothing", pooled)
	}
}

// TestLiarLeads: a leader that keeps back, repeats, mixes up and leaves out what it has heard costs no living node its
// readiness, and shows no dead one for longer than RollLate.
func TestLiarLeads(t *testing.T) {
	for _, seed := range seeds(20) {
		w := newRollWorld(seed, 4)
		var hoard []Entry
		w.liar = func(r *Report) {
			hoard = append(hoard, r.Entries...)
			period := w.nodes[0].cover.Period() + uint64(w.rng.IntN(2))
			var all []Entry
			for _, e := range hoard[max(0, len(hoard)-40):] {
				if w.rng.IntN(3) == 0 {
					e.Period += uint64(w.rng.IntN(4)) - 1
				}
				if w.rng.IntN(4) > 0 {
					all = append(all, e)
				}
			}
			w.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			*r, _ = NewReport(period, all)
		}
		w.run(3*time.Minute, rollBudget.Covered(), 0)
		w.nodes[1].alive, w.nodes[1].died = false, w.Now()
		w.run(30*time.Minute, rollBudget.Covered(), RollLate+2*time.Second)
		w.verdict(t, seed)
	}
}

// TestLeast: what a node writes whose clock was set back is more than what weir-manager wrote, which may have seen the
// heartbeat before long before the hub had the answer.
func TestLeast(t *testing.T) {
	c := NewCover("edge-1", func() (s [16]byte) { return s })
	c.Hear(NewAccount(0).Receipt(0, epoch, Report{}, nil), "")
	c.Direct(c.Least(time.Second, epoch), "")
	for _, since := range []time.Duration{Interval, Prove} {
		if least, wrote := c.Least(time.Second+since, time.Time{}), Onward(epoch, since); !least.After(wrote) {
			t.Errorf("after %v the node writes %v, and weir-manager wrote %v", since, least, wrote)
		}
	}
}

// TestSlowKubelet: a kubelet that renews each thirty seconds is left to nobody, and one that renews each five is.
func TestSlowKubelet(t *testing.T) {
	for every, covered := range map[time.Duration]bool{30 * time.Second: false, 5 * time.Second: true} {
		w := newRollWorld(1, 3)
		for _, n := range w.nodes {
			n.every = every
		}
		w.run(10*time.Minute, time.Minute, 0)
		w.verdict(t, 1)
		if (w.pooled > 0) != covered {
			t.Errorf("each %v: %d heartbeats were left to the pool", every, w.pooled)
		}
	}
}

// TestCalm: only what is passed within Lapse, even after it has waited for a way that is dead, may try that first.
func TestCalm(t *testing.T) {
	c := &Cover{anchored: true, ever: true, renewed: time.Hour}
	for age, want := range map[time.Duration]bool{
		0: true, 2 * Slowest: true, Lapse - Stagger: true, Lapse - Stagger + 1: false, Lapse: false,
	} {
		if c.beat = c.renewed + age; c.Calm() != want {
			t.Errorf("%v after the last heartbeat of which there is a receipt: %v", age, c.Calm())
		}
	}
}
