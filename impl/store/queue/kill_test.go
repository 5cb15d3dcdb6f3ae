package queue

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/testkit"
)

// TestKillPoints: a node writes and drains, others write in the cloud, the link breaks, answers are lost, the disk
// fills up; in every run the power is cut in one random operation of the disk or behind one random call of the cloud,
// often several times. At the end everything that was answered is in the cloud, once, in order.
func TestKillPoints(t *testing.T) {
	runs := 600
	if testing.Short() {
		runs = 150
	}
	var total killTally
	for seed := range uint64(runs) {
		total.add(killed(t, seed))
	}
	t.Logf("%d runs: %d kill points, %d answered writes, %d pushes, lost_writes = %d, doubled_writes = %d", runs,
		total.kills, total.answered, total.pushes, total.lost, total.doubled)
	if total.kills < 500 || total.lost > 0 || total.doubled > 0 {
		t.Error("want at least 500 kill points, nothing lost, nothing doubled")
	}
}

type killTally struct{ kills, answered, pushes, lost, doubled int }

func (a *killTally) add(b killTally) {
	a.kills += b.kills
	a.answered += b.answered
	a.pushes += b.pushes
	a.lost += b.lost
	a.doubled += b.doubled
}

// killed is one run.
func killed(t *testing.T, seed uint64) (sum killTally) {
	rnd := rand.New(rand.NewPCG(seed, 6))
	d := testkit.NewFlash(rnd)
	c := newCloud(t)
	targets := []Target{node(), pod(0), pod(1), pod(2)}
	for _, x := range targets {
		c.add(x)
	}
	gone := map[Target]bool{}
	answered := map[Target][]string{} // values of answered writes, in order
	maybe := map[string]bool{}        // of writes that were not answered: they may or may not arrive
	local := map[Target][]byte{}      // what the client believes
	counts := map[Target]int{}
	number, full := 0, rnd.IntN(4) == 0

	others := []string{"theirs", "message", "a"} // what somebody else writes
	cut := errors.New("killed")
	var write func(*Queue)
	var current *Queue
	c.before = func() error {
		if rnd.IntN(5) == 0 {
			write(current) // while it is drained
		}
		if d.Down {
			return cut
		}
		if rnd.IntN(12) == 0 {
			return errLink
		}
		if rnd.IntN(6) == 0 { // somebody else is faster
			c.touch(targets[rnd.IntN(len(targets))], others[rnd.IntN(len(others))], fmt.Sprint("cloud-", c.version))
		}
		return nil
	}
	c.after = func() error {
		switch rnd.IntN(10) {
		case 0:
			return errLink
		case 1: // the machine dies before it hears the answer
			d.Down = true
			return cut
		}
		return nil
	}
	write = func(q *Queue) {
		number++
		x := targets[rnd.IntN(len(targets))]
		w := Write{Target: x}
		value := fmt.Sprint("w", number)
		if rnd.IntN(4) == 0 {
			w.Target = eventOf(rnd.IntN(5))
			counts[w.Target]++
			w.Ours = fmt.Appendf(nil, `{"metadata":{"name":%q},"count":%d}`, w.Name, counts[w.Target])
		} else {
			w.Ours, w.Base = status(value), local[x]
			if w.Base == nil {
				w.Base = status("")
			}
		}
		err := q.Put(w)
		switch {
		case err != nil && w.Kind.event():
			counts[w.Target]-- // the client tries again, or not
		case err != nil:
			maybe[value] = true
		case w.Kind.event():
		default:
			answered[x] = append(answered[x], value)
			local[x] = w.Ours
			sum.answered++
		}
	}
	for life := 0; life < 6; life++ {
		d.CutAt = 0
		if life < 5 {
			d.CutAt = d.Ops + 1 + rnd.IntN(60)
		}
		d.Fail = func(string) bool { return full && life < 5 && rnd.IntN(8) == 0 }
		q, err := Open(Config{Disk: d, Logger: quiet, PushedPerSecond: 1e9, EventBurst: 1 << 20})
		if err != nil && !d.Down && !full {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for step := 0; err == nil && step < 30 && !d.Down; step++ {
			switch rnd.IntN(8) {
			case 0:
				current = q
				_ = q.Drain(t.Context(), c)
			case 1:
				c.touch(targets[rnd.IntN(4)], others[rnd.IntN(len(others))], fmt.Sprint("cloud-", c.version))
			case 2:
				if x := pod(2); rnd.IntN(10) == 0 && !gone[x] {
					gone[x] = true
					delete(c.objects, c.name(x))
					if rnd.IntN(2) == 0 {
						c.add(Target{PodStatus, x.Namespace, x.Name, "another"})
					}
				}
			default:
				write(q)
			}
		}
		if d.Down {
			sum.kills++
			after := d.Restart()
			after.Ops = 0
			d = after
		}
	}
	// The link is back and nothing breaks any more.
	d.Fail = func(string) bool { return false }
	quietBefore := func() error { return nil }
	c.before, c.after = quietBefore, quietBefore
	q, err := Open(Config{Disk: d, Logger: quiet, PushedPerSecond: 1e9})
	check(t, err)
	check(t, q.Drain(t.Context(), c))
	check(t, q.Drain(t.Context(), c))
	if n := q.Len(); n > 0 {
		t.Fatalf("seed %d: %d entries are left", seed, n)
	}
	again, err := Open(Config{Disk: d, Logger: quiet})
	check(t, err)
	if n := again.Len(); n > 0 {
		t.Fatalf("seed %d: %d entries are back after a restart", seed, n)
	}
	sum.pushes = len(c.pushed)
	for _, x := range targets {
		if gone[x] {
			if o := c.objects[c.name(x)]; o != nil && len(o.Written) > 0 {
				t.Errorf("seed %d: %v got a write of the pod before it", seed, x)
			}
			continue
		}
		lost, doubled := judge(answered[x], maybe, c.objects[c.name(x)].Written)
		if lost+doubled > 0 {
			t.Errorf("seed %d: %v: answered %v, written in the cloud %v", seed, x, answered[x], c.objects[c.name(x)].Written)
		}
		sum.lost += lost
		sum.doubled += doubled
	}
	for e, n := range counts {
		o := c.objects[c.name(e)]
		switch {
		case n == 0:
		case o == nil || o.Count < n:
			t.Errorf("seed %d: %v: count %d is missing", seed, e, n)
			sum.lost++
		case c.creates[e] > 1:
			sum.doubled++
		}
	}
	return sum
}

// judge compares what was answered with what the cloud saw: a part of it, in order, nothing twice, and the last of it.
func judge(answered []string, maybe map[string]bool, written []string) (lost, doubled int) {
	seen := map[string]bool{}
	at := 0
	for _, v := range written {
		if seen[v] {
			doubled++
		}
		seen[v] = true
		if maybe[v] {
			continue
		}
		i := slices.Index(answered, v)
		if i < at {
			doubled++ // an older one after a newer
		}
		at = max(at, i)
	}
	if n := len(answered); n > 0 && !seen[answered[n-1]] {
		// A later write that was not answered may stand in its place.
		if len(written) == 0 || !maybe[written[len(written)-1]] {
			lost++
		}
	}
	return lost, doubled
}

// TestPowerCutNeverLosesAnAnswer: at whatever operation the power is cut, what was answered before is there afterwards.
func TestPowerCutNeverLosesAnAnswer(t *testing.T) {
	for cutAt := 1; cutAt < 120; cutAt++ {
		for seed := range uint64(2) {
			d := flash(seed)
			d.CutAt = cutAt
			q, err := Open(Config{Disk: d, Logger: quiet, EventBurst: 1000})
			answered := map[Target]string{}
			for i := 0; err == nil && !d.Down; i++ {
				x := pod(i % 3)
				value := string(status(fmt.Sprint(i, " ", strings.Repeat("x", 300))))
				if q.Put(Write{Target: x, Ours: []byte(value)}) == nil {
					answered[x] = value
				}
			}
			q = open(t, d.Restart())
			for x, want := range answered {
				e, ok := q.Lookup(x)
				if !ok {
					t.Fatalf("cut at %d, seed %d: %v is lost", cutAt, seed, x)
				}
				if string(e.Ours) != want && seqOf(t, e.Ours) < seqOf(t, []byte(want)) {
					t.Fatalf("cut at %d, seed %d: %v is older than what was answered", cutAt, seed, x)
				}
			}
		}
	}
}

func seqOf(t *testing.T, b []byte) (n int) {
	t.Helper()
	if _, err := fmt.Sscanf(string(b), `{"message":"%d`, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestFullDisk: while the disk is full writes are refused and what was answered stays; afterwards all goes on.
func TestFullDisk(t *testing.T) {
	d := flash(1)
	q := open(t, d)
	check(t, q.Put(Write{Target: pod(0), Ours: status("a")}))
	d.Fail = func(op string) bool { return op == "write" || op == "create" }
	for range 3 {
		if q.Put(Write{Target: pod(0), Ours: status("b")}) == nil {
			t.Fatal("a write was answered that is not on the disk")
		}
	}
	if e, _ := q.Lookup(pod(0)); string(e.Ours) != string(status("a")) {
		t.Fatalf("clients are shown %s, which was not answered", e.Ours)
	}
	d.Fail = func(string) bool { return false }
	check(t, q.Put(Write{Target: pod(0), Ours: status("c")}))
	q = open(t, d.Restart())
	if e, _ := q.Lookup(pod(0)); e == nil || string(e.Ours) != string(status("c")) {
		t.Fatalf("%+v", e)
	}
}

// TestFailedSync: what a failed sync left behind is not built upon: the file is rewritten.
func TestFailedSync(t *testing.T) {
	d := flash(1)
	q := open(t, d)
	check(t, q.Put(Write{Target: pod(0), Ours: status("a")}))
	d.Fail = func(op string) bool { return op == "sync" }
	if q.Put(Write{Target: pod(1), Ours: status("b")}) == nil {
		t.Fatal("answered")
	}
	d.Fail = func(string) bool { return false }
	check(t, q.Put(Write{Target: pod(2), Ours: status("c")}))
	q = open(t, d.Restart())
	for _, x := range []Target{pod(0), pod(2)} {
		if _, ok := q.Lookup(x); !ok {
			t.Fatalf("%v is lost", x)
		}
	}
}

// TestEventsArePaced: Events are pushed no faster than configured, and taken no faster either.
func TestEventsArePaced(t *testing.T) {
	clock := fakeClock()
	q, err := Open(Config{
		Disk: flash(1), Logger: quiet, Clock: clock, EventsPerMinute: 60, EventBurst: 3, MaxEvents: 5, PushedPerSecond: 2,
	})
	check(t, err)
	put := func(i int) error { return q.Put(Write{Target: eventOf(i), Ours: []byte(`{"count":1}`)}) }
	for i := range 3 {
		check(t, put(i))
	}
	if err := put(3); !errors.Is(err, ErrTooFast) {
		t.Fatalf("a fourth event at once: %v", err)
	}
	clock.Step(time.Minute)
	check(t, put(3))
	check(t, put(4))
	if err := put(5); !errors.Is(err, ErrFull) {
		t.Fatalf("a sixth event: %v", err)
	}
	c := newCloud(t)
	done := make(chan error)
	go func() { done <- q.Drain(t.Context(), c) }()
	began := clock.Now()
	for {
		select {
		case err := <-done:
			check(t, err)
			if d := clock.Since(began); d < 2*time.Second || len(c.pushed) != 5 {
				t.Errorf("%d events pushed in %v", len(c.pushed), d)
			}
			return
		default:
			if clock.HasWaiters() {
				clock.Step(100 * time.Millisecond)
			}
		}
	}
}
