package manager

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/manager/manifests"
)

// retell is how often it is told again what is missing.
const retell = time.Minute

// policies looks whether the admission policies are in the cluster as this version needs them. It changes none: who may
// do that may do anything in a cluster.
type policies struct {
	reader  manifests.Getter
	changed chan struct{} // when reader says something else
	scheme  *runtime.Scheme
	clock   clock.WithTicker
	metrics *metrics
	log     *slog.Logger

	state atomic.Pointer[error] // nil: not looked yet
}

// wake has them looked at.
func (p *policies) wake() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (p *policies) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (p *policies) Start(ctx context.Context) error {
	ticker := p.clock.NewTicker(retell)
	defer ticker.Stop()
	for {
		missing := p.look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		p.metrics.missing.Set(float64(len(missing)))
		if err := p.note(missing); err != nil {
			p.log.Error("the cluster lacks what keeps pods; apply the output of weir-manager --print-manifests",
				"missing", strings.ReplaceAll(err.Error(), "\n", "; "))
		}
		select {
		case <-ticker.C():
		case <-p.changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// note keeps what is missing for check.
func (p *policies) note(missing []error) error {
	err := errors.Join(missing...)
	p.state.Store(&err)
	return err
}

// check is for readiness: nothing may be missing.
func (p *policies) check(*http.Request) error {
	if s := p.state.Load(); s != nil {
		return *s
	}
	return errors.New("the admission policies were not looked at yet")
}

// look compares what is in the cluster with the manifests, and tells what differs.
func (p *policies) look(ctx context.Context) []error {
	return manifests.Missing(ctx, p.reader, p.scheme)
}
