package stock

import (
	"context"
	"flag"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
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

// TestSchedules runs random schedules of faults, and sees no pod evicted that should have stayed, nor kept that should
// have gone.
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

// run runs one schedule.
func run(t *testing.T, c lifecycle.Config) lifecycle.Verdict {
	t.Helper()
	v := bubble(t, c)
	if !v.Fine() {
		t.Errorf("%v\n%v\n%s\nrepeat with: go test . -run TestSchedules -seed %d -v", c.Schedule, v,
			strings.Join(v.Details, "\n"), c.Schedule.Seed)
	}
	return v
}

// bubble runs one schedule in a bubble of its own.
func bubble(t *testing.T, c lifecycle.Config) (v lifecycle.Verdict) {
	t.Helper()
	if c.Controllers == nil {
		c.Controllers = Controllers
	}
	if *seed != 0 {
		c.Log = slog.New(slog.NewTextHandler(os.Stdout, nil))
	}
	synctest.Test(t, func(t *testing.T) {
		var err error
		if v, err = lifecycle.Run(t.Context(), c); err != nil {
			t.Error(err)
		}
	})
	return v
}

// TestFound runs schedules again that found something: taint eviction went on to count from before a node was heard
// again, by a timer that had not ended when the node was released.
func TestFound(t *testing.T) {
	for _, s := range []uint64{
		3566012234106480152, 13381280029882409368, 3913506220859706386, 76232993838612853, // wrong once: of weir-manager
		9885257164462314626, // of the judge: a node that was dead came back, and its pool was cut before the cloud heard it
	} {
		t.Run(strconv.FormatUint(s, 10), func(t *testing.T) {
			t.Parallel()
			run(t, lifecycle.Config{Schedule: lifecycle.Draw(s)})
		})
	}
}

// TestJudge: without Weir, or without half of it, the judge sees what Weir is for.
func TestJudge(t *testing.T) {
	pool := lifecycle.PoolName(0)
	day := func(faults ...lifecycle.Fault) lifecycle.Schedule {
		return lifecycle.Schedule{Seed: 1, Pools: []int{3}, Beside: 3, Faults: faults}
	}
	silent := day(lifecycle.Fault{At: 100 * time.Second, For: 420 * time.Second, What: "pool-cut", Target: pool})
	cut := day(lifecycle.Fault{At: 100 * time.Second, For: 420 * time.Second, What: "cut", Target: pool + "-1"})
	dead := day(lifecycle.Fault{At: 100 * time.Second, For: 600 * time.Second, What: "power", Target: pool + "-1"})
	for name, c := range map[string]struct {
		config lifecycle.Config
		want   func(lifecycle.Verdict) bool
	}{
		"a silent pool without the manager": {
			lifecycle.Config{Schedule: silent, NoManager: true}, func(v lifecycle.Verdict) bool { return v.Wrong == 6 },
		},
		"a node that is cut off and not forwarded": {
			lifecycle.Config{Schedule: cut, NoForwarding: true}, func(v lifecycle.Verdict) bool {
				return v.Wrong == 2 && v.Unjust == 1
			},
		},
		"a silent pool": {
			lifecycle.Config{Schedule: silent}, func(v lifecycle.Verdict) bool {
				return v.Fine() && v.Evicted == 0 && v.Denied > 0
			},
		},
		"a node that is cut off": {
			lifecycle.Config{Schedule: cut}, func(v lifecycle.Verdict) bool {
				return v.Fine() && v.Unknown == 0 && v.Forwarded > 30
			},
		},
		// The cut is longer than the judge lets pods stay. Stock Kubernetes may take two turns of 10 s for the taint of each
		// node, as it looks at a Node that it has just tainted and does not see it yet.
		"a silent pool that is given up": {
			lifecycle.Config{
				Schedule: day(lifecycle.Fault{At: 10 * time.Second, What: "policy", Target: pool, Value: "evict:2m"},
					lifecycle.Fault{At: 100 * time.Second, For: 450 * time.Second, What: "pool-cut", Target: pool}),
			},
			func(v lifecycle.Verdict) bool { return v.Fine() && v.Evicted == 6 },
		},
		"a dead node": {
			lifecycle.Config{Schedule: dead}, func(v lifecycle.Verdict) bool { return v.Fine() && v.Evicted == 2 },
		},
		"a dead node, and nobody evicts": {
			lifecycle.Config{Schedule: dead, Controllers: func(ctx context.Context, _ *rest.Config) error {
				<-ctx.Done()
				return nil
			}}, func(v lifecycle.Verdict) bool { return v.Missed == 2 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := bubble(t, c.config)
			if !c.want(v) {
				t.Errorf("%v\n%s", v, strings.Join(v.Details, "\n"))
			}
		})
	}
}
