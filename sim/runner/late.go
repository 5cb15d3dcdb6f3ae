package runner

import (
	"context"
	"sync"
	"time"

	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

// lateEvery is how often hubs are asked whether they lead, and until when their certificates count.
const lateEvery = 500 * time.Millisecond

// watchLate counts how often a hub is seen to lead whose certificate in the pool has ended, until the function returned
// is called.
func (r *run) watchLate(ctx context.Context) (end func()) {
	if !r.s.Topology.Has(scenario.Pool.Asks) {
		return func() {}
	}
	seen := 0.0
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(lateEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			for _, node := range r.weir().nodes {
				if r.leadsLate(ctx, node) {
					seen++
				}
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
		r.metrics["late_leaders"] = seen
	}
}

func (r *run) leadsLate(ctx context.Context, node string) bool {
	p, err := r.site.Part(runtime.HubOf(node))
	if err != nil {
		return false
	}
	m, err := p.Metrics(ctx)
	if err != nil || m.Sum("weir_hub_role", `role="Leader"`) == 0 {
		return false
	}
	end := m.Sum("weir_certificate_expiry_timestamp_seconds", `kind="hub"`)
	return end > 0 && time.Now().After(time.Unix(int64(end)+1, 0)) // its end is in whole seconds
}

// lateCertificates is how often a certificate that had ended was let count, at hubs and coordinators.
func (r *run) lateCertificates(ctx context.Context) (sum float64, err error) {
	ids := r.coordinators()
	for _, node := range r.weir().nodes {
		ids = append(ids, runtime.HubOf(node))
	}
	for _, id := range ids {
		p, err := r.site.Part(id)
		if err != nil {
			return 0, err
		}
		m, err := p.Metrics(ctx)
		if err != nil {
			return 0, err
		}
		sum += m.Sum("weir_late_certificates_total")
	}
	return sum, nil
}
