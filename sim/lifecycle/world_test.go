package lifecycle

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	utilruntime.ErrorHandlers = nil // one of them sleeps by a clock that all bubbles would share
	os.Exit(m.Run())
}

// TestWithoutControllers: nobody marks and nobody evicts, but weir-manager and hubs are there: heartbeats are
// forwarded, what it shows comes and goes, and pods of a dead node are missed.
func TestWithoutControllers(t *testing.T) {
	s := Schedule{Seed: 1, Pools: []int{3}, Beside: 2, Faults: []Fault{
		{At: 100 * time.Second, For: 300 * time.Second, What: cut, Target: "harbour-1"},
		{At: 200 * time.Second, For: 3 * time.Second, What: leader, Target: "harbour"},
		{At: 420 * time.Second, For: 600 * time.Second, What: power, Target: "harbour-2"},
	}}
	var v Verdict
	synctest.Test(t, func(t *testing.T) {
		var err error
		v, err = Run(t.Context(), Config{Schedule: s, Controllers: func(ctx context.Context, _ *rest.Config) error {
			<-ctx.Done()
			return nil
		}})
		if err != nil {
			t.Error(err)
		}
	})
	if v.Missed != podsPerNode || v.Wrong+v.Unjust+v.WrongMarks+v.Left != 0 || v.Forwarded < 20 {
		t.Errorf("%v\n%s", v, strings.Join(v.Details, "\n"))
	}
}

// TestDraw: a seed gives one schedule, and many seeds give all faults.
func TestDraw(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(200) {
		a, b := Draw(seed).String(), Draw(seed).String()
		if a != b {
			t.Fatalf("seed %d gives\n%s\nand\n%s", seed, a, b)
		}
		for _, f := range Draw(seed).Faults {
			seen[f.What] = true
			if f.At < warmUp || f.For < 0 {
				t.Fatalf("seed %d: %v", seed, f)
			}
		}
	}
	for _, what := range []string{
		cut, lan, isolate, power, kubelet, hubDown, leader, coordinator, poolCut, away, clock, controllers, weirManager,
		policy, liar,
	} {
		if !seen[what] {
			t.Errorf("no schedule has the fault %s", what)
		}
	}
}
