package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/scenario"
)

const (
	longRunning  = "apiserver_longrunning_requests" // the metric of kube-apiserver that counts what it has open
	watchLook    = time.Second
	watchesAgree = 5 // readings: watches end now and then, and begin again
)

// OpenWatches is how many watches kube-apiserver has open, by its own metric.
func OpenWatches(ctx context.Context, admin kubernetes.Interface) (float64, error) {
	text, err := admin.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("metrics of kube-apiserver: %w", err)
	}
	m := parts.ParseMetrics(string(text))
	if m.Count(longRunning) == 0 {
		return 0, errors.New("kube-apiserver has no metric " + longRunning)
	}
	return m.Sum(longRunning, `verb="WATCH"`), nil
}

// watches is what kube-apiserver had open, if the scenario asks for it.
type watches struct {
	before, stock float64 // the testbed's own, and with the stock way
	most          float64 // with Weir besides
}

// countsWatches reports whether the scenario asks for it.
func (r *run) countsWatches() bool {
	return slices.ContainsFunc(r.s.Expectations, func(e scenario.Expectation) bool {
		return strings.HasSuffix(e.Metric, "cloud_watches")
	})
}

// settledWatches waits until what is open does not change any more.
func (r *run) settledWatches(ctx context.Context) (now float64, err error) {
	var seen []float64
	err = Until(ctx, watchLook, settlePatience, r.Progress, func() (bool, string) {
		if now, err = OpenWatches(ctx, r.admin); err != nil {
			return false, err.Error()
		}
		seen = append(seen, now)
		last := seen[max(len(seen)-watchesAgree, 0):]
		return len(last) == watchesAgree && slices.Min(last) == slices.Max(last),
			fmt.Sprintf("waiting for watches to settle: %v", last)
	})
	return now, err
}

// countStockWatches counts what there is without Weir, when the clients of the stock way have all.
func (r *run) countStockWatches(ctx context.Context, stock *way) error {
	if !r.countsWatches() {
		return nil
	}
	err := r.until(ctx, stockPatience, func() (bool, string) {
		n := stock.synced()
		return n == 0, fmt.Sprintf("waiting for %d stock clients, to count their watches", n)
	})
	if err == nil {
		r.watches.stock, err = r.settledWatches(ctx)
	}
	r.metrics["stock_cloud_watches"] = r.watches.stock - r.watches.before
	return err
}

// countWatches counts what Weir has open. The largest count stays.
func (r *run) countWatches(ctx context.Context) error {
	if !r.countsWatches() {
		return nil
	}
	now, err := r.settledWatches(ctx)
	r.watches.most = max(r.watches.most, now)
	r.metrics["cloud_watches"] = r.watches.most - r.watches.stock
	return err
}
