package virtual

import (
	"flag"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/role"
)

var (
	seed      = flag.Uint64("seed", 0, "run the one schedule of this seed")
	schedules = flag.Int("schedules", 2000, "how many random schedules to run")
	from      = flag.Uint64("from", 1, "what the seeds of the schedules are drawn from; 0: something new each time")
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(800) // schedules are short and small
	os.Exit(m.Run())
}

// TestSchedules runs random schedules of faults. The promises are checked at each step; at the end everything is healed, and the
// pool has to recover.
func TestSchedules(t *testing.T) {
	if *seed != 0 {
		schedule(t, *seed)
		return
	}
	if *from == 0 {
		*from = rand.Uint64()
	}
	t.Logf("seeds are drawn from %d", *from)
	seeds := rand.New(rand.NewPCG(*from, 0))
	for range *schedules {
		s := seeds.Uint64()
		if schedule(t, s); t.Failed() {
			t.Fatalf("repeat with: go test ./sim/virtual -run TestSchedules -seed %d -v", s)
		}
	}
}

// TestClose: a pool that is closed has no goroutine left. A schedule of some that had took 2 MB for good.
func TestClose(t *testing.T) {
	before := runtime.NumGoroutine()
	for n := range uint64(20) {
		schedule(t, n+1)
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines before, %d after", before, after)
	}
}

// heals is how long a pool may take to recover: the longest bar of a hub is a minute, then a Lease may have to expire, and hubs come back
// to the pool's cache over a while.
const heals = 2 * time.Minute

func schedule(t *testing.T, number uint64) { scheduleOf(t, number, nil) }

// scheduleOf is a schedule whose role machines tell what they are stepped with.
func scheduleOf(t *testing.T, number uint64, inputs func(role.Input)) {
	t.Helper()
	rng := rand.New(rand.NewPCG(number, 1))
	c := Config{
		Seed: number, Hubs: 2 + rng.IntN(2), Clients: 1,
		Grace: time.Duration(rng.Int64N(int64(20 * time.Second))), Spread: time.Duration(rng.Int64N(int64(10 * time.Second))),
	}
	if rng.IntN(2) == 0 {
		c.Churn = 2 * time.Second
	}
	if rng.IntN(4) == 0 {
		c.Leaders = 1 + rng.IntN(2)
	}
	c.Inputs = inputs
	if *seed != 0 {
		c.Trace = func(line string) { t.Log(line) }
		c.Detail = c.Trace
	}
	p := New(c)
	defer p.Close()
	p.Run(time.Duration(rng.Int64N(int64(10 * time.Second))))
	for range 30 {
		if err := p.Do(p.Chance()); err != nil {
			t.Fatal(err)
		}
		d := time.Duration(rng.Int64N(int64(500 * time.Millisecond)))
		if rng.IntN(3) == 0 {
			d = time.Duration(rng.Int64N(int64(20 * time.Second)))
		}
		p.Run(d)
	}
	p.Calm()
	for _, d := range []time.Duration{lastWords, heals} { // a hub that was told to stop is started again, too
		if err := p.Do("heal"); err != nil {
			t.Fatal(err)
		}
		p.Run(d)
	}
	p.Do("write " + key(0))
	p.Run(10 * time.Second)
	if p.Err() == nil {
		p.judge.healed()
	}
	if err := p.Err(); err != nil {
		t.Errorf("seed %d: %v", number, err)
	}
}
