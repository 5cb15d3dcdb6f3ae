package runner

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/impl/operator/certificates"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/trust"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

// Times of a rotation in a scenario. weir-manager begins within half a minute.
const (
	rotationSettle  = 20 * time.Second
	rotationOverlap = 50 * time.Second
)

// Rotate implements scenario.Rotators.
func (r *run) Rotate(ctx context.Context, at *scenario.Aim) (scenario.Going, error) {
	return scenario.Going{Heal: func(ctx context.Context) error { return r.rotated(ctx, at.Pool) }}, r.rotate(ctx, at.Pool)
}

// rotate asks weir-manager to replace the pool's authority, as weir pki rotate does.
func (r *run) rotate(ctx context.Context, p scenario.Pool) error {
	c, err := kubernetes.NewForConfig(r.reach.through(r.site.Admin()))
	if err != nil {
		return err
	}
	before, err := certificates.Rotation(ctx, c, p.Name)
	if err != nil {
		return err
	}
	r.turn.signed = before.Signer
	if r.before, err = r.rotation(ctx); err != nil { // what hubs did at their start is no rotation's
		return err
	}
	if err := r.askOn(ctx, p); err != nil {
		return err
	}
	return certificates.AskRotation(ctx, c, p.Name, trust.Order{
		ID: "scenario", Settle: rotationSettle.String(), Overlap: rotationOverlap.String(),
	})
}

// rotated waits until the authority before is no longer valid.
func (r *run) rotated(ctx context.Context, of scenario.Pool) error {
	defer r.turn.askNoMore()
	c, err := kubernetes.NewForConfig(r.reach.through(r.site.Admin()))
	if err != nil {
		return err
	}
	return r.until(ctx, settlePatience, func() (bool, string) {
		p, err := certificates.Rotation(ctx, c, of.Name)
		done := err == nil && p.Order == "scenario" && p.Step == trust.Steady && p.Signer != r.turn.signed
		return done, fmt.Sprintf("waiting for the rotation of the authority: %s, %d are trusted, %s (%v)", p.Step, p.Trusted,
			p.Refused, err)
	})
}

// addMembers counts who trusts the next authority alone.
func (r *run) addMembers(ctx context.Context) error {
	if !r.s.Rotates() {
		return nil
	}
	vault, ok := r.site.(runtime.Vault)
	if !ok {
		return fmt.Errorf("this site shows no authority of its pools")
	}
	members := 0.0
	for _, p := range r.s.Topology.Pools() {
		if !r.s.RotatesIn(p) {
			continue
		}
		first, err := vault.Authority(p.Name)
		if err != nil {
			return err
		}
		n, err := r.members(ctx, p, first.CertPEM())
		if err != nil {
			return err
		}
		members += float64(n)
	}
	r.metrics["rotated_members"] = members
	return nil
}

// members counts those of a pool that trust another authority than its first.
func (r *run) members(ctx context.Context, of scenario.Pool, first []byte) (n int, err error) {
	certs, err := pki.ParseCertificates(first)
	if err != nil {
		return 0, err
	}
	parts := r.coordinators(of)
	for _, node := range nodesOf(of) {
		parts = append(parts, runtime.HubOf(node))
	}
	for _, id := range parts {
		p, err := r.site.Part(id)
		if err != nil {
			return n, err
		}
		m, err := p.Metrics(ctx)
		if err != nil {
			return n, fmt.Errorf("metrics of %s: %w", id, err)
		}
		const end = "weir_authority_expiry_timestamp_seconds"
		if m.Sum("weir_trust_number") > 0 && m.Count(end) == 1 && m.Sum(end, `authority="`+trust.Name(certs[0])+`"`) == 0 {
			n++
		}
	}
	return n, nil
}
