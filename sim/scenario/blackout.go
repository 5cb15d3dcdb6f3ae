package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Grid is a laboratory whose machines can all lose power.
type Grid interface {
	// BlackOut takes the power of all machines of a pool whose uplink is cut already, and gives it back while that is
	// still so. It lasts as long as the cut.
	BlackOut(ctx context.Context, at *Aim, k *Blackout) error
}

// Blackout cuts the uplink, and takes the power of all machines of the pool. They come back while it is still cut.
type Blackout struct {
	common

	Off   time.Duration // until the machines have power again
	Empty []string      // who finds an empty disk then: hub/<number>, or coordinator for all of them
}

func (*Blackout) rule() actionRule { return takes("blackout", []Target{WholePool}, "for off empty?") }

func (k *Blackout) check(o object, f Fault, _ Pool, _ []Pool) {
	if k.Off >= f.For {
		o.fields["off"].contradiction(
			fmt.Sprintf("the uplink is back after %v: want less, so that clients are served without it", f.For))
	}
}

func (k *Blackout) own() []own {
	return []own{
		{"off", k.Off, func(v value, _ Pool) { k.Off = v.duration(maxFaultAt) }},
		{"empty", k.Empty, func(v value, p Pool) { k.Empty = v.choices(disks(p)) }},
	}
}

// disks are whose disks a pool may lose.
func disks(p Pool) (names []string) {
	if p.Coordinators > 0 {
		names = append(names, string(Coordinator))
	}
	for n := range p.Nodes {
		names = append(names, string(Hub(n+1)))
	}
	return names
}

func (k *Blackout) words() string {
	if len(k.Empty) == 0 {
		return ""
	}
	return ", disks lost: " + strings.Join(k.Empty, ", ")
}

func (*Blackout) unmeasured(metric string, s *Scenario) string {
	if strings.HasPrefix(metric, "offline_") && !s.BlacksOut() {
		return metric + " is measured in a blackout: want a fault of that action"
	}
	return ""
}

// Aim implements Kind.
func (*Blackout) Aim(ctx context.Context, lab Lab, at *Aim) error {
	at.Fault.Link = CloudLink
	err := aimLine(ctx, lab, at, true)
	at.Silent = at.Pool.NodeNames()
	return err
}

// Begin implements Kind.
func (k *Blackout) Begin(_ context.Context, lab Lab, at *Aim) (Going, error) {
	return with(lab, func(of Grid) (Going, error) {
		at.Cut(lab)
		return Going{
			Hold: func(ctx context.Context) error { return of.BlackOut(ctx, at, k) },
			Heal: func(context.Context) error { at.Mend(lab); return nil },
		}, nil
	})
}

// Loses reports whether it takes the disk of a target.
func (k *Blackout) Loses(t Target) bool { return slices.Contains(k.Empty, string(t)) }

// BlacksOut reports whether a fault takes the power of all machines of the pool.
func (s *Scenario) BlacksOut() bool { return happen[*Blackout](s) }
