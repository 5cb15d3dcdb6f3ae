package manager

import (
	"context"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// again is how long a list or watch waits before it is tried again, on average.
const again = time.Second

// prompt lists and watches as soon as the cloud is there again. client-go's informers wait up to a minute after some
// failures; so long a pool that fell silent meanwhile would count as heard when the watch is back, since it shows
// heartbeats of before as new.
type prompt struct {
	toolscache.ListerWatcher
	inner toolscache.ListerWatcherWithContext
	clock clock.Clock
}

// informer makes informers over a prompt. It is cache.Options.NewInformer.
func informer(c clock.Clock) func(toolscache.ListerWatcher, runtime.Object, time.Duration,
	toolscache.Indexers) toolscache.SharedIndexInformer {
	return func(lw toolscache.ListerWatcher, example runtime.Object, resync time.Duration,
		indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		return toolscache.NewSharedIndexInformer(&prompt{lw, toolscache.ToListerWatcherWithContext(lw), c}, example, resync,
			indexers)
	}
}

// ListWithContext implements toolscache.ListerWithContext.
func (p *prompt) ListWithContext(ctx context.Context, o metav1.ListOptions) (l runtime.Object, err error) {
	p.insist(ctx, func() error {
		l, err = p.inner.ListWithContext(ctx, o)
		return err
	})
	return l, err
}

// WatchWithContext implements toolscache.WatcherWithContext.
func (p *prompt) WatchWithContext(ctx context.Context, o metav1.ListOptions) (w watch.Interface, err error) {
	p.insist(ctx, func() error {
		w, err = p.inner.WatchWithContext(ctx, o)
		return err
	})
	return w, err
}

// insist tries until there is an answer of a cloud that works, whatever it says.
func (p *prompt) insist(ctx context.Context, try func() error) {
	for {
		err := try()
		answered := err == nil || meta.IsNoMatchError(err) || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown
		works := !apierrors.IsServiceUnavailable(err) && !apierrors.IsTooManyRequests(err) && !apierrors.IsInternalError(err)
		if answered && works || ctx.Err() != nil {
			return
		}
		select {
		case <-p.clock.After(again/2 + rand.N(again)):
		case <-ctx.Done():
			return
		}
	}
}
