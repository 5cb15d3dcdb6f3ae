package manifests

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// How a controller of weir-manager tries again what failed. The pauses double up to mostPause. With the 17 minutes of
// controller-runtime a pool would stay as it is long after the cause is gone. All that fails together is tried ten
// times a second at most, as there.
const (
	leastPause = 5 * time.Millisecond
	mostPause  = 5 * time.Second
	perSecond  = 10
	burst      = 100
)

// Options are those of each controller of weir-manager.
func Options(r reconcile.Reconciler, workers int) controller.TypedOptions[reconcile.Request] {
	return controller.TypedOptions[reconcile.Request]{
		Reconciler: r, MaxConcurrentReconciles: workers,
		RateLimiter: workqueue.NewTypedMaxOfRateLimiter(
			workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](leastPause, mostPause),
			&workqueue.TypedBucketRateLimiter[reconcile.Request]{Limiter: rate.NewLimiter(perSecond, burst)}),
		SkipNameValidation: new(true), // tests run several managers in one process
	}
}

// Control runs a controller until the context ends.
func Control(ctx context.Context, name string, r reconcile.Reconciler, workers int, sources ...source.Source) error {
	run, err := controller.NewTypedUnmanaged(name, Options(r, workers))
	for _, s := range sources {
		if err == nil {
			err = run.Watch(s)
		}
	}
	if err == nil {
		err = run.Start(ctx)
	}
	if err != nil {
		return fmt.Errorf("controller %s: %w", name, err)
	}
	return nil
}
