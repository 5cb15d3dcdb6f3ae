package scenario

import (
	"context"
	"slices"
)

// Rotators is a laboratory where weir-manager has the authorities of pools.
type Rotators interface {
	// Rotate asks for another authority of a pool. It is healed when the one before is no longer valid.
	Rotate(ctx context.Context, at *Aim) (Going, error)
}

// RotateAuthority replaces the pool's authority, in all steps. Nobody is to notice.
type RotateAuthority struct{ toObject }

func (*RotateAuthority) rule() actionRule {
	return takes("rotate-authority", []Target{WholePool}, "for")
}

func (*RotateAuthority) check(o object, _ Fault, p Pool, _ []Pool) {
	if !p.Enrols {
		o.fields["action"].contradiction("weir-manager has no authority of the pool: want topology.pool.enrols: true")
	}
}

func (*RotateAuthority) unmeasured(metric string, s *Scenario) string {
	if slices.Contains([]string{"rotated_members", "failed_requests"}, metric) && !s.Rotates() {
		return metric + " is measured when an authority is replaced: want a fault rotate-authority"
	}
	return ""
}

// Begin implements Kind.
func (*RotateAuthority) Begin(ctx context.Context, lab Lab, at *Aim) (Going, error) {
	return with(lab, func(of Rotators) (Going, error) { return of.Rotate(ctx, at) })
}

// Rotates reports whether a fault replaces the authority of a pool.
func (s *Scenario) Rotates() bool { return happen[*RotateAuthority](s) }

// RotatesIn reports whether a fault replaces the pool's authority.
func (s *Scenario) RotatesIn(p Pool) bool { return s.happens(p, is[*RotateAuthority]) }
