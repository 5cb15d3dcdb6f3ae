package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-edge/weir/sim/client"
	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

// rotation is what all hubs of the pool have counted about certificates, and about what feeds their relays.
type rotation struct {
	issued float64 // certificates
	holds  int     // hubs that got one for the pool, and lead or follow by it
	upset  float64 // lists, comparisons and changes of a source
}

func (r *run) rotation(ctx context.Context) (now rotation, err error) {
	for _, node := range r.weir().nodes {
		p, err := r.site.Part(runtime.HubOf(node))
		if err != nil {
			return now, err
		}
		m, err := p.Metrics(ctx)
		if err != nil {
			return now, fmt.Errorf("metrics of the hub of %s: %w", node, err)
		}
		now.issued += m.Sum("weir_certificate_renewals_total")
		var s status
		if err := p.Status(ctx, &s); err != nil {
			return now, err
		}
		if m.Sum("weir_certificate_renewals_total", `kind="hub"`) > 0 && s.holds() {
			now.holds++
		}
		for _, name := range []string{"lists", "resyncs", "switches"} {
			now.upset += m.Sum("weir_hub_relay_source_" + name + "_total")
		}
	}
	return now, nil
}

// holds reports whether a hub leads or follows, and is fed as that.
func (s status) holds() bool {
	return s.Source != "" && s.Source == map[string]string{"Leader": "cloud", "Follower": "coordinator"}[s.Role]
}

// enrolled waits until all hubs have the certificates that they ask for, and notes what they have counted so far.
func (r *run) enrolled(ctx context.Context) error {
	hubs := 0 // that ask
	for _, p := range r.s.Topology.Pools() {
		if p.Asks() {
			hubs += p.Nodes
		}
	}
	if hubs == 0 {
		return nil
	}
	return r.until(ctx, syncPatience, func() (bool, string) {
		now, err := r.rotation(ctx)
		// A hub that has gone to its source a moment ago may still compare what it holds.
		quiet := now.upset == r.before.upset
		r.before = now
		return err == nil && now.holds == hubs && quiet,
			fmt.Sprintf("waiting for certificates: %d of %d hubs have one, and lead or follow (%v)", now.holds, hubs, err)
	})
}

// addRotation tells what became of certificates and streams since then.
func (r *run) addRotation(ctx context.Context) error {
	if !r.s.Topology.Has(func(p scenario.Pool) bool { return p.Lives != nil }) && !r.s.Rotates() {
		return nil
	}
	if err := r.addMembers(ctx); err != nil {
		return err
	}
	now, err := r.rotation(ctx)
	if err != nil {
		return err
	}
	dropped := now.upset - r.before.upset
	for _, s := range r.way(report.WayWeir).streams {
		for _, op := range s.Recording.Ops() {
			if op.At.After(r.synced) && (op.What == client.OpError || op.What == client.OpClose) {
				dropped++
			}
		}
	}
	r.metrics["rotated_certificates"], r.metrics["dropped_streams"] = now.issued-r.before.issued, dropped
	if r.s.Rotates() {
		asked, failed := r.turn.asked.Load(), r.turn.failed.Load()
		r.Progress(fmt.Sprintf("%d requests of clients while the authority was replaced, %d failed", asked, failed))
		if asked == 0 { // none that failed would say nothing
			return errors.New("no client asked for anything while the authority was replaced")
		}
		r.metrics["failed_requests"] = float64(failed)
	}
	r.metrics["late_certificates"], err = r.lateCertificates(ctx)
	return err
}
