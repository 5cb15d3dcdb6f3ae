package link

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"
)

// wire drives flows in virtual time.
type wire struct {
	*meter
	now   time.Time
	cond  conditions
	flows []*flow
	got   []bytes.Buffer
	sent  []int
	ended []time.Time
	// arrived[i] is called for each delivery.
	arrived func(i int, data []byte, now time.Time)
}

func newWire(bits, burst int64, delay time.Duration, flows int) *wire {
	m := newMeter(epoch, bits, burst)
	w := &wire{meter: m, now: epoch, cond: conditions{open: true, acked: true, delay: delay, packet: m.packet()}}
	for range flows {
		w.flows = append(w.flows, &flow{wire: m})
	}
	w.got, w.sent, w.ended = make([]bytes.Buffer, flows), make([]int, flows), make([]time.Time, flows)
	return w
}

// run steps everything until the given time. feed gives a hungry flow its next bytes; nil is the end, empty is nothing
// now.
func (w *wire) run(until time.Time, feed func(i int) []byte) {
	for {
		next := until
		for again := true; again; {
			again = false
			for i, f := range w.flows {
				w.cond.now = w.now
				p := f.step(w.cond)
				w.sent[i] += p.sent
				switch {
				case p.due != nil && !p.due.end:
					w.got[i].Write(p.due.data)
					if w.arrived != nil {
						w.arrived(i, p.due.data, w.now)
					}
					f.pop()
					again = true
					continue
				case p.due != nil && w.ended[i].IsZero():
					w.ended[i] = w.now
				}
				if p.hungry && feed != nil {
					data := feed(i)
					switch {
					case data == nil:
						f.end()
						again = true
					case len(data) > 0:
						f.push(data)
						again = true
					}
				}
				if !p.wake.IsZero() && p.wake.Before(next) {
					next = p.wake
				}
			}
		}
		if !w.now.Before(until) {
			return
		}
		if !next.After(w.now) {
			panic("no progress")
		}
		w.now = next
	}
}

func endless(int) []byte { return make([]byte, 32<<10) }

func TestFlowsShareTheRateFairly(t *testing.T) {
	for _, flows := range []int{1, 2, 5, 60} {
		w := newWire(8_000_000, DefaultBurst, 0, flows)
		w.run(at(10_000), endless)
		total := 0
		for i := range flows {
			total += w.sent[i]
			share := 10_000_000 / flows
			if diff := w.sent[i] - share; diff < -20_000 || diff > 20_000 {
				t.Errorf("%d flows: flow %d sent %d bytes, want %d", flows, i, w.sent[i], share)
			}
		}
		if total < 10_000_000-flows*2000 || total > 10_000_000+DefaultBurst {
			t.Errorf("%d flows sent %d bytes in 10 s at 1 MB/s", flows, total)
		}
	}
}

func TestAHeartbeatDoesNotWaitForBulk(t *testing.T) {
	const bulk = 20
	w := newWire(256_000, DefaultBurst, 0, bulk+1)
	fed := time.Time{}
	var latest time.Duration
	w.arrived = func(i int, _ []byte, now time.Time) {
		if i == bulk {
			latest = max(latest, now.Sub(fed))
		}
	}
	for sec := range 30 {
		beat := []byte("alive")
		w.run(at(sec*1000), func(i int) []byte {
			if i < bulk {
				return endless(i)
			}
			if beat == nil {
				return []byte{}
			}
			b := beat
			beat, fed = nil, w.now
			return b
		})
	}
	// One packet of each of the others, 45 ms apiece.
	if latest == 0 || latest > 20*46*time.Millisecond {
		t.Errorf("slowest heartbeat took %s", latest)
	}
}

func TestLatencyIsAPipeline(t *testing.T) {
	w := newWire(8_000_000, 0, 200*time.Millisecond, 1)
	left := 1_000_000
	w.run(at(5000), func(int) []byte {
		if left == 0 {
			return nil
		}
		n := min(left, 32<<10)
		left -= n
		return make([]byte, n)
	})
	if got := w.got[0].Len(); got != 1_000_000 {
		t.Fatalf("%d bytes arrived", got)
	}
	// One second for the bytes, 200 ms for the way, once.
	if got := w.ended[0].Sub(epoch).Round(time.Millisecond); got != 1200*time.Millisecond {
		t.Errorf("all was there after %s, want 1.2s", got)
	}
}

func TestUnlimitedRateHasLatencyOnly(t *testing.T) {
	w := newWire(0, 0, 30*time.Millisecond, 1)
	first := true
	w.run(at(100), func(int) []byte {
		if first {
			first = false
			return []byte("hello")
		}
		return nil
	})
	if got := w.ended[0].Sub(epoch); got != 30*time.Millisecond || w.got[0].String() != "hello" {
		t.Errorf("%q after %s", w.got[0].String(), got)
	}
}

// TestIdleWireHasLatency: what a wire has saved up while it was idle makes nothing arrive sooner.
func TestIdleWireHasLatency(t *testing.T) {
	w := newWire(8_000_000, 64<<10, 30*time.Millisecond, 1)
	var came time.Time
	w.arrived = func(_ int, _ []byte, now time.Time) { came = now }
	w.run(at(500), nil)
	w.flows[0].push([]byte("hello"))
	w.run(at(600), nil)
	if got := came.Sub(at(500)); got != 30*time.Millisecond {
		t.Errorf("it took %s, want 30ms", got)
	}
}

func TestWindowPushesBack(t *testing.T) {
	w := newWire(0, 0, time.Hour, 1)
	w.run(at(10), endless)
	if got := w.sent[0]; got < window || got > window+32<<10 {
		t.Errorf("%d bytes on their way, want about %d", got, window)
	}
}

func TestCutHoldsEverythingAndHealLosesNothing(t *testing.T) {
	w := newWire(8_000_000, 0, 50*time.Millisecond, 1)
	fed := 0
	feed := func(int) []byte {
		b := make([]byte, 4096)
		for i := range b {
			b[i] = byte((fed + i) % 251)
		}
		fed += len(b)
		return b
	}
	w.run(at(100), feed)
	sent, got := w.sent[0], w.got[0].Len()
	w.cond.open = false
	w.run(at(5000), feed)
	if w.sent[0] != sent || w.got[0].Len() != got {
		t.Errorf("through a cut: %d bytes sent, %d delivered", w.sent[0]-sent, w.got[0].Len()-got)
	}
	w.cond.open, w.cond.since = true, w.now
	w.run(at(5040), feed)
	if inFlight := sent - got; w.got[0].Len() != sent {
		t.Errorf("40 ms after healing %d bytes have arrived, want the %d that were on their way", w.got[0].Len()-got,
			inFlight)
	}
	w.run(at(6000), feed)
	for i, b := range w.got[0].Bytes() {
		if b != byte(i%251) {
			t.Fatalf("byte %d is wrong", i)
		}
	}
	if w.got[0].Len() < 900_000 {
		t.Errorf("only %d bytes after healing", w.got[0].Len())
	}
}

func TestOneWayCutStarvesAcknowledgements(t *testing.T) {
	w := newWire(8_000_000, 0, 0, 1)
	w.cond.acked = false
	w.run(at(10_000), endless)
	if got := w.sent[0]; got < unackedWindow || got > unackedWindow+2000 {
		t.Errorf("%d bytes without acknowledgement, want %d", got, unackedWindow)
	}
	w.cond.acked = true
	w.run(at(10_100), endless)
	if got := w.sent[0]; got < unackedWindow+90_000 {
		t.Errorf("does not go on: %d bytes", got)
	}
}

func TestRandomConditionsLoseNothing(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		w := newWire(1_000_000, 3000, 10*time.Millisecond, 3)
		want := make([]bytes.Buffer, 3)
		left := []int{30, 30, 30}
		feed := func(i int) []byte {
			if left[i] == 0 {
				return nil
			}
			left[i]--
			b := make([]byte, 1+rnd.IntN(9000))
			for j := range b {
				b[j] = byte(rnd.Uint32())
			}
			want[i].Write(b)
			return b
		}
		for ms := 0; ms < 60_000; {
			ms += 1 + rnd.IntN(3000)
			w.run(at(ms), feed)
			was := w.cond.open
			w.cond.open, w.cond.acked = rnd.IntN(3) > 0 || ms > 50_000, rnd.IntN(3) > 0 || ms > 50_000
			if w.cond.open && !was {
				w.cond.since = w.now
			}
			w.cond.delay = time.Duration(rnd.IntN(100)) * time.Millisecond
			w.setRate(w.now, int64(1+rnd.IntN(4))*500_000)
		}
		w.run(at(120_000), feed)
		for i := range 3 {
			if !bytes.Equal(w.got[i].Bytes(), want[i].Bytes()) {
				t.Errorf("seed %d: flow %d got %d bytes, want %d", seed, i, w.got[i].Len(), want[i].Len())
			}
			if w.ended[i].IsZero() || w.sent[i] != want[i].Len() {
				t.Errorf("seed %d: flow %d ended %v, %d bytes counted of %d", seed, i, w.ended[i], w.sent[i], want[i].Len())
			}
		}
	}
}
