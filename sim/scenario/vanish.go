package scenario

import (
	"context"

	"github.com/weir-edge/weir/sim/link"
)

// Vanish takes the power of a machine: nobody is told that its connections are gone.
type Vanish struct{ Ending }

func (*Vanish) rule() actionRule { return takes("vanish", nodes(), "for disk? repeat? every?") }

// effect: nobody hears of it in the pool either.
func (k *Vanish) effect(f Fault) effect {
	e := k.common.effect(f)
	e.lan = true
	return e
}

// Aim implements Kind.
func (k *Vanish) Aim(ctx context.Context, lab Lab, at *Aim) error {
	err := k.Ending.Aim(ctx, lab, at)
	at.Nodes = []string{at.Node}
	return err
}

// Begin implements Kind.
func (k *Vanish) Begin(_ context.Context, lab Lab, at *Aim) (Going, error) {
	p, err := lab.Machine(at)
	if err != nil {
		return Going{}, err
	}
	lab.Lost(at.Silent)
	at.lines(lab, func(l Line, n string) { l.Cut(link.Both, n) })
	return Going{Heal: func(ctx context.Context) error {
		at.lines(lab, func(l Line, n string) { l.Heal(link.Both, n) })
		return k.start(ctx, lab, at, p)
	}}, p.Kill()
}
