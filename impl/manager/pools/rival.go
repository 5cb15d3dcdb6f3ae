package pools

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/contract"
)

// recheck is how often it is looked for what nobody tells of.
const recheck = time.Minute

// rivalLease is what yurt-manager renews in contract.ManagerNamespace.
const rivalLease = "yurt-manager"

// rival remembers whether yurt-manager runs.
type rival struct {
	reader  client.Reader // not from the cache
	clock   clock.PassiveClock
	metrics *Metrics
	log     *slog.Logger

	mu    sync.Mutex
	until time.Time // the answer counts
	is    bool
}

// runs reports whether yurt-manager runs.
func (r *rival) runs(ctx context.Context) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	if now.Before(r.until) {
		return r.is, nil
	}
	var l coordinationv1.Lease
	err := r.reader.Get(ctx, client.ObjectKey{Namespace: contract.ManagerNamespace, Name: rivalLease}, &l)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("the Lease of yurt-manager: %w", err)
	}
	runs := err == nil && holds(l.Spec, now)
	if runs != r.is {
		r.log.Warn("NodePools are kept by one manager only", "yurt-manager runs", runs)
	}
	r.is, r.until = runs, now.Add(recheck)
	r.metrics.aside.Set(0)
	if runs {
		r.metrics.aside.Set(1)
	}
	return runs, nil
}

// holds reports whether a Lease is held. Clocks may differ by as much as it lasts.
func holds(l coordinationv1.LeaseSpec, now time.Time) bool {
	if l.HolderIdentity == nil || *l.HolderIdentity == "" || l.RenewTime == nil || l.LeaseDurationSeconds == nil {
		return false
	}
	return now.Before(l.RenewTime.Add(2*time.Duration(*l.LeaseDurationSeconds)*time.Second + recheck))
}
