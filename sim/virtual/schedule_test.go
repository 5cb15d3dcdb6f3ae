package virtual

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

// TestSchedules runs random schedules of faults. The promises are checked at each step; at the end everything is
// healed, and the pool has to recover.
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

func schedule(t *testing.T, number uint64) { scheduleOf(t, number, nil) }

// scheduleOf is a schedule whose machines tell what they are given. One that breaks a promise is shrunk.
func scheduleOf(t *testing.T, number uint64, inputs func(any)) {
	t.Helper()
	s, err := Random(number, func(c *Config) {
		c.Inputs = inputs
		if *seed != 0 {
			c.Trace = func(line string) { t.Log(line) }
			c.Detail = c.Trace
		}
	})
	if err == nil {
		return
	}
	t.Errorf("seed %d: %v", number, err)
	small := Shrink(s, func(s Schedule) bool {
		err := s.Run(nil)
		return err != nil && !errors.Is(err, errCommand)
	})
	t.Logf("%d of its %d steps are enough, as a script of testdata; it breaks: %v\n%s", len(small.Steps), len(s.Steps),
		small.Run(nil), small)
}

// TestSameAgain: a schedule that was drawn is the same run when its steps are given.
func TestSameAgain(t *testing.T) {
	for number := range uint64(20) {
		var drawn, given strings.Builder
		s, err := Random(number, func(c *Config) { c.Trace = func(line string) { drawn.WriteString(line + "\n") } })
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(func(c *Config) { c.Trace = func(line string) { given.WriteString(line + "\n") } }); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(drawn.String(), given.String()); diff != "" {
			t.Fatalf("schedule %d (-drawn +given):\n%s", number, diff)
		}
	}
}

// TestShrink: what a failure does not need is left out.
func TestShrink(t *testing.T) {
	var s Schedule
	for i := range 30 {
		s.Steps = append(s.Steps, Step{time.Duration(i) * time.Second, fmt.Sprint(i)})
	}
	breaks := func(s Schedule) bool {
		has := map[string]bool{}
		for _, x := range s.Steps {
			has[x.Command] = true
		}
		return has["3"] && has["17"] && has["18"]
	}
	got := Shrink(s, breaks)
	if len(got.Steps) != 3 || !breaks(got) {
		t.Errorf("%d steps are left: %v", len(got.Steps), got.Steps)
	}
}
