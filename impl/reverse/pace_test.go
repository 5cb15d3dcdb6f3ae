package reverse

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

const ms = time.Millisecond

// wire takes bytes at a rate, one piece after the other, and answers after a round trip.
type wire struct {
	trip  time.Duration
	rate  int // bytes a second
	free  time.Time
	began time.Time

	mu      sync.Mutex
	on      []piece
	acked   uint64
	last    time.Duration // round trip, smoothed
	longest time.Duration // of the queue

	standing time.Duration // the queue of others
}

type piece struct {
	n      int
	at, by time.Time // it went, and is answered
}

func (w *wire) flow() (flow, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for len(w.on) > 0 && !now.Before(w.on[0].by) {
		w.acked += uint64(w.on[0].n)
		w.last = (7*w.last + w.on[0].by.Sub(w.on[0].at)) / 8 // RFC 6298
		w.on = w.on[1:]
	}
	f := flow{segment: 1448, trip: w.last, shortest: w.trip, acked: w.acked, busy: now.Sub(w.began)}
	for _, p := range w.on {
		f.inFlight += p.n
	}
	return f, true
}

func (w *wire) send(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if least := now.Add(w.standing); w.free.Before(least) {
		w.free = least
	}
	w.longest = max(w.longest, w.free.Sub(now))
	w.free = w.free.Add(time.Duration(n) * time.Second / time.Duration(w.rate))
	w.on = append(w.on, piece{n, now, w.free.Add(w.trip)})
}

func newFlow(trip time.Duration, rate int) (*wire, *pacer) {
	w := &wire{trip: trip, rate: rate, last: trip, began: time.Now()}
	return w, &pacer{clock: clock.RealClock{}, look: w.flow, turn: make(chan struct{}, 1)}
}

// send sends all that may go for a time. It returns how many bytes these were.
func send(t *testing.T, w *wire, p *pacer, d time.Duration) (sent int) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	for {
		n := p.most(pieceMax)
		if p.pass(ctx, n) != nil {
			return sent
		}
		w.send(n)
		sent += n
	}
}

// TestPace: over links of many kinds the queue is short, and the link is in use.
func TestPace(t *testing.T) {
	for _, test := range []struct {
		name    string
		trip    time.Duration
		rate    int
		longest time.Duration
	}{
		{"96 kbit/s and 400 ms", 400 * ms, 12_000, 400 * ms},
		{"1 Mbit/s and 1 ms", 1 * ms, 125_000, 200 * ms},
		{"1 Mbit/s and 40 ms", 40 * ms, 125_000, 200 * ms},
		{"20 Mbit/s and 600 ms", 600 * ms, 2_500_000, 350 * ms},
		{"1 Gbit/s and 1 ms", 1 * ms, 125_000_000, 200 * ms},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, p := newFlow(test.trip, test.rate)
				var all sync.WaitGroup
				for range 3 {
					all.Go(func() { send(t, w, p, 30*time.Second) })
				}
				all.Wait()
				f, _ := w.flow()
				used := float64(f.acked) / float64(test.rate) / 30
				t.Logf("the queue took up to %s, %.2f of the link were in use", w.longest, used)
				if w.longest > test.longest {
					t.Errorf("the queue took %s, want %s at most", w.longest, test.longest)
				}
				if used < 0.6 {
					t.Errorf("%.2f of the link were in use, want 0.6", used)
				}
			})
		})
	}
	t.Run("another one has filled the queue", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, p := newFlow(40*ms, 125_000)
			send(t, w, p, 5*time.Second)
			w.standing = 2 * time.Second
			send(t, w, p, 10*time.Second) // in which it gives way
			if sent := send(t, w, p, 30*time.Second); sent < 20_000 || sent > 120_000 {
				t.Errorf("%d bytes went behind a queue of 2 s, want two segments in each", sent)
			}
		})
	})
	t.Run("little is said", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, p := newFlow(40*ms, 125_000)
			send(t, w, p, 5*time.Second)
			before := p.window.Load()
			for range 100 {
				if err := p.pass(t.Context(), 100); err != nil {
					t.Fatal(err)
				}
				w.send(100)
				time.Sleep(50 * ms)
			}
			if got := p.window.Load(); got < before/2 {
				t.Errorf("the window is %d bytes, it was %d and never full since", got, before)
			}
		})
	})
	t.Run("nothing of TCP", func(t *testing.T) {
		a, b := net.Pipe()
		defer a.Close()
		defer b.Close()
		if p := newPacer(clock.RealClock{}, a); p.most(5) != 5 || p.pass(t.Context(), 5) != nil {
			t.Error("it waits")
		}
	})
}
