package scenario

import (
	"context"
	"slices"
)

// Placers is a laboratory where weir-manager runs coordinators.
type Placers interface {
	// FindPlaced finds where the coordinator that the leader feeds runs: that is the node of the aim.
	FindPlaced(ctx context.Context, at *Aim) error
	// Place tells weir-manager to run it on other nodes. It is over when it is there, and the one before is gone.
	Place(ctx context.Context, at *Aim) (Going, error)
	// PowerOff takes the power of its machine. It is healed by a start with its disk, once the coordinator is elsewhere.
	PowerOff(ctx context.Context, at *Aim) (Going, error)
}

// Place lets weir-manager run the coordinator on other nodes.
type Place struct{ unnoticed }

// PowerOff lets a machine on which the coordinator runs stand still, and nobody is told.
type PowerOff struct{ common }

func (*Place) rule() actionRule { return takes("place", []Target{Coordinator}, "for repeat? every?") }

func (*PowerOff) rule() actionRule {
	return takes("power-off", []Target{Coordinator}, "for repeat? every?")
}

func (*Place) check(o object, _ Fault, p Pool, _ []Pool) { o.placed(p) }

func (*PowerOff) check(o object, _ Fault, p Pool, _ []Pool) { o.placed(p) }

func (o object) placed(p Pool) {
	if !p.Placed {
		o.fields["action"].contradiction("weir-manager does not run the coordinator: want topology.pool.placed: true")
	}
}

func (*Place) unmeasured(metric string, s *Scenario) string {
	if slices.Contains([]string{"hub_restarts", "moved_relists", "moved_seconds_max"}, metric) && !s.Places() {
		return metric + " is measured when the coordinator is placed again: want a fault place or power-off"
	}
	return ""
}

// Aim implements Kind.
func (*Place) Aim(ctx context.Context, lab Lab, at *Aim) error {
	_, err := with(lab, func(of Placers) (Going, error) { return Going{}, of.FindPlaced(ctx, at) })
	return err
}

// Aim implements Kind: clients of the machine are not served.
func (*PowerOff) Aim(ctx context.Context, lab Lab, at *Aim) error {
	err := (*Place)(nil).Aim(ctx, lab, at)
	at.Silent = []string{at.Node}
	return err
}

// Begin implements Kind.
func (*Place) Begin(ctx context.Context, lab Lab, at *Aim) (Going, error) {
	return with(lab, func(of Placers) (Going, error) { return of.Place(ctx, at) })
}

// Begin implements Kind.
func (*PowerOff) Begin(ctx context.Context, lab Lab, at *Aim) (Going, error) {
	return with(lab, func(of Placers) (Going, error) { return of.PowerOff(ctx, at) })
}

// Places reports whether a fault lets weir-manager place the coordinator again.
func (s *Scenario) Places() bool { return happen[*Place](s) || happen[*PowerOff](s) }
