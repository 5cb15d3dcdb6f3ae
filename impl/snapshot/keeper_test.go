package snapshot

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/testkit"
)

// TestBudget: at most 3 bytes are written per byte of change, about 2 over time, and nearly none while nothing changes.
func TestBudget(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	w, disk := newWorld(t, rnd, 256<<10), testkit.NewFlash(rnd)
	k := w.keeper(w.relay, disk)
	k.least, w.truth = 64<<10, nil
	w.list(50, false)
	for i := range 200 {
		w.put(fmt.Sprint("o", i), 2000)
	}
	k.step(t.Context(), false)
	filled, began := disk.Written, disk.Syncs
	changed, seconds := int64(0), 0
	for range 4000 {
		for range rnd.IntN(4) {
			key := fmt.Sprint("o", rnd.IntN(200))
			w.put(key, rnd.IntN(4000))
			changed += int64(len(w.state["ns/"+key]))
		}
		k.step(t.Context(), false)
		w.clock.Step(5 * time.Second)
		seconds += 5
	}
	s := k.did.read()
	ratio := float64(disk.Written-filled) / float64(changed)
	t.Logf("%d bytes of objects, %d bytes of change in %d s: %d written (%.2f a byte), %d syncs, %d files",
		filled, changed, seconds, disk.Written-filled, ratio, disk.Syncs-began, s.Rewritten)
	if ratio > 3 || s.Rewritten < 10 || s.Written != disk.Written {
		t.Errorf("%.2f bytes a byte, %d files, %d bytes counted of %d", ratio, s.Rewritten, s.Written, disk.Written)
	}

	before, syncs := disk.Written, disk.Syncs
	const hours = 24
	for range hours * 3600 / 5 {
		w.bookmark() // the source lives and has nothing to say
		k.step(t.Context(), false)
		w.clock.Step(5 * time.Second)
	}
	t.Logf("a day without changes: %d bytes, %d syncs", disk.Written-before, disk.Syncs-syncs)
	if n := disk.Syncs - syncs; n > hours*6 || disk.Written-before > int64(n)*40 {
		t.Errorf("%d bytes in %d syncs", disk.Written-before, n)
	}
	before = disk.Written
	for range hours * 3600 / 5 { // the source is away
		k.step(t.Context(), false)
		w.clock.Step(5 * time.Second)
	}
	if n := disk.Written - before; n > 60 {
		t.Errorf("%d bytes were written while nothing was known", n)
	}
	k.step(t.Context(), true)
	r := w.empty(1 << 20)
	w.keeper(r, disk).restore()
	st := r.Status()
	if age, _ := st.Age(w.clock.Now()); age < hours*time.Hour || age > hours*time.Hour+time.Minute || !st.Restored ||
		st.Fresh(w.clock.Now(), 48*time.Hour) {
		t.Errorf("the age is told as %v, %+v", age, st)
	}
}

// TestRestartWritesNothing: a process that starts over and over does not wear the flash.
func TestRestartWritesNothing(t *testing.T) {
	w, disk := small(t)
	before := disk.Written
	for range 10 {
		r := w.empty(1 << 20)
		k := w.keeper(r, disk)
		k.restore()
		k.step(t.Context(), false)
		w.clock.Step(time.Hour)
		k.step(t.Context(), true)
		if v := r.Status().Version; v != w.reach {
			t.Fatalf("restored at %d, want %d", v, w.reach)
		}
	}
	if disk.Written != before {
		t.Errorf("%d bytes", disk.Written-before)
	}
}

// TestFullDisk: a full disk costs nothing but the snapshots of that time; it is tried again, less and less often.
func TestFullDisk(t *testing.T) {
	w, disk := small(t)
	r := w.empty(1 << 20)
	k := w.keeper(r, disk)
	k.restore()
	w.relay = r
	file := string(disk.Files[fileName].Now)
	tries := 0
	disk.Fail = func(op string) bool {
		if op == "write" || op == "create" {
			tries++
			return true
		}
		return false
	}
	for range 720 { // an hour
		w.put("o1", 100)
		k.step(t.Context(), false)
		w.clock.Step(5 * time.Second)
	}
	if tries < 10 || tries > 30 {
		t.Errorf("%d tries in an hour", tries)
	}
	if string(disk.Files[fileName].Now) != file {
		t.Error("the file has changed")
	}
	if s := k.did.read(); s.Errors != tries || s.LastError == "" {
		t.Errorf("%+v", s)
	}
	disk.Fail = func(string) bool { return false }
	w.clock.Step(lastRetry)
	k.step(t.Context(), false)
	if s := k.did.read(); s.Version != w.reach || s.LastError != "" {
		t.Errorf("%+v", s)
	}
}

// TestHistoryThrownAway: what the relay flushed does not come back.
func TestHistoryThrownAway(t *testing.T) {
	w, disk := small(t)
	k := w.keeper(w.relay, disk)
	w.relay = w.empty(1 << 20)
	k.relay = w.relay
	k.restore()
	w.list(12, true)
	for k.relay.Status().RingEvents > 0 { // until a list contradicts
		w.list(12, true)
	}
	k.step(t.Context(), false)
	r := w.empty(1 << 20)
	w.keeper(r, disk).restore()
	if _, _, to := held(t, r); r.Status().Version != w.reach || to != digest(w.state) {
		t.Errorf("%+v", r.Status())
	}
}

// TestRun: on a real disk, with a feeder beside it, nothing is lost between the last change and the end.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, rand.New(rand.NewPCG(5, 5)), 1<<20)
	open := func(r *relay.Relay) *Snapshots {
		t.Helper()
		s, err := Open(Config{Dir: dir, Relays: []*relay.Relay{r}, Every: 10 * time.Millisecond, Logger: w.logger})
		check(t, err)
		return s
	}
	for range 5 {
		s := open(w.relay)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		for range 300 {
			w.live()
		}
		cancel()
		check(t, <-done)
		if st := s.Status()[slices1]; st.Errors > 0 || st.Version != w.reach {
			t.Fatalf("%+v, reached is %d", st, w.reach)
		}
		w.relay = w.empty(1 << 20)
	}
	s := open(w.relay)
	defer s.Close()
	if _, _, to := held(t, w.relay); w.relay.Status().Version != w.reach || to != digest(w.state) {
		t.Errorf("restored at %d, reached is %d", w.relay.Status().Version, w.reach)
	}
}

// TestFirstFile: a relay that has a state is on the disk soon, whatever the time between two writes.
func TestFirstFile(t *testing.T) {
	w, disk := small(t)
	k := w.keeper(w.relay, disk)
	k.cfg.Every = time.Hour
	waiting := w.clock.Waiters()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); k.run(ctx) }()
	for w.clock.Waiters() == waiting {
		runtime.Gosched()
	}
	w.clock.Step(firstLook)
	for k.did.read().Version != w.reach {
		runtime.Gosched()
	}
	cancel()
	<-done
}

// TestFirstChange: what changes first after a start is on the disk soon, whatever the time between two writes: a
// process that is killed again and again does not stay where it was. What changes then waits.
func TestFirstChange(t *testing.T) {
	w, disk := small(t)
	w.relay = w.empty(1 << 20)
	k := w.keeper(w.relay, disk)
	k.restore()
	k.cfg.Every, k.cfg.Idle = time.Hour, time.Hour
	want := func(yes bool, when string) {
		t.Helper()
		if k.first() != yes {
			t.Errorf("%s: written soon %t, want %t", when, !yes, yes)
		}
	}
	want(false, "nothing has changed")
	w.bookmark()
	k.step(t.Context(), false)
	want(false, "a bookmark came")
	w.put("o2", 9)
	want(true, "an object has changed")
	k.step(t.Context(), false)
	w.put("o2", 11)
	want(false, "another one has changed")
	k.step(t.Context(), true)
	k.close()

	w.relay = w.empty(1 << 20)
	k = w.keeper(w.relay, testkit.NewFlash(w.rnd))
	k.cfg.Every = time.Hour
	w.list(3, false)
	want(true, "there is no file")
	k.step(t.Context(), false)
	want(false, "the first file is there")
	w.put("o2", 13)
	waiting := w.clock.Waiters()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); k.run(ctx) }()
	for w.clock.Waiters() == waiting {
		runtime.Gosched()
	}
	w.clock.Step(firstLook)
	testkit.Until(t, time.Minute, "the change to be written", func() bool { return k.did.read().Version == w.reach })
	cancel()
	<-done
}
