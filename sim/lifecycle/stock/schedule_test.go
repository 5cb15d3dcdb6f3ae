package stock

import (
	"flag"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weir-edge/weir/sim/lifecycle"
)

var (
	seed      = flag.Uint64("seed", 0, "run the one schedule of this seed")
	schedules = flag.Int("schedules", 20, "how many random schedules to run")
	from      = flag.Uint64("from", 1, "what the seeds of the schedules are drawn from; 0: something new each time")
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	ctrllog.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	utilruntime.ErrorHandlers = nil // one of them sleeps by a clock that all bubbles would share
	os.Exit(m.Run())
}

// TestSchedules runs random schedules of faults, and sees no pod evicted that should have stayed, nor kept that should have gone.
func TestSchedules(t *testing.T) {
	if *seed != 0 {
		t.Log(run(t, lifecycle.Config{Schedule: lifecycle.Draw(*seed), Trace: func(line string) { t.Log(line) }}))
		return
	}
	if *from == 0 {
		*from = rand.Uint64()
	}
	t.Logf("seeds are drawn from %d", *from)
	seeds := rand.New(rand.NewPCG(*from, 0))
	var all lifecycle.Verdict
	var mu sync.Mutex
	began := time.Now()
	t.Run("seed", func(t *testing.T) {
		for range *schedules {
			s := seeds.Uint64()
			t.Run(strconv.FormatUint(s, 10), func(t *testing.T) {
				t.Parallel()
				v := run(t, lifecycle.Config{Schedule: lifecycle.Draw(s)})
				mu.Lock()
				defer mu.Unlock()
				all.Add(v)
			})
		}
	})
	t.Logf("%d schedules in %s: %v", *schedules, time.Since(began).Round(time.Second), all)
}

// run runs one schedule in a bubble of its own.
func run(t *testing.T, c lifecycle.Config) (v lifecycle.Verdict) {
	c.Controllers = Controllers
	if *seed != 0 {
		c.Log = slog.New(slog.NewTextHandler(os.Stdout, nil))
	}
	synctest.Test(t, func(t *testing.T) {
		var err error
		if v, err = lifecycle.Run(t.Context(), c); err != nil {
			t.Error(err)
		}
	})
	if !v.Fine() {
		t.Errorf("%v\n%v\n%v\nrepeat with: go test . -run TestSchedules -seed %d -v", c.Schedule, v, v.Details, c.Schedule.Seed)
	}
	return v
}
