package scenario

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weir-edge/weir/sim/link"
)

// Cut lets nothing cross a link, and nobody is told.
type Cut struct{ toLine }

func (*Cut) rule() actionRule { return takes("cut", links(), "for link direction? repeat? every?") }

// Begin implements Kind.
func (*Cut) Begin(_ context.Context, lab Lab, at *Aim) (Going, error) {
	at.Cut(lab)
	return Going{Heal: func(context.Context) error { at.Mend(lab); return nil }}, nil
}

const maxCuts = 1000

// Flap is several cuts of a link, at random times.
type Flap struct {
	toLine

	Cuts int
}

func (*Flap) rule() actionRule { return takes("flap", links(), "for link cuts direction?") }

func (k *Flap) own() []own {
	return []own{{"cuts", k.Cuts, func(v value, _ Pool) { k.Cuts = v.count(maxCuts) }}}
}

// Begin implements Kind.
func (k *Flap) Begin(_ context.Context, lab Lab, at *Aim) (Going, error) {
	at.Cut(lab)
	return Going{
		Hold: func(ctx context.Context) error { return k.flap(ctx, lab, at) },
		Heal: func(context.Context) error { at.Mend(lab); return nil },
	}, nil
}

// flap cuts and heals a link at random times, and leaves it healed.
func (k *Flap) flap(ctx context.Context, lab Lab, at *Aim) error {
	random := rand.New(rand.NewPCG(uint64(at.Seed), uint64(at.Fault.At)))
	moments := make([]time.Duration, 0, 2*k.Cuts)
	for range 2 * k.Cuts {
		moments = append(moments, time.Duration(random.Float64()*float64(at.Fault.For)))
	}
	slices.Sort(moments)
	began := time.Now()
	for i, moment := range moments {
		if err := lab.Sleep(ctx, began.Add(moment)); err != nil {
			at.Mend(lab)
			return err
		}
		if i%2 == 0 {
			at.Cut(lab)
		} else {
			at.Mend(lab)
		}
	}
	return nil
}

// links are targets whose links something is done to.
func links() []Target { return append(nodes(), WholePool) }

// nodes are the targets that are one node.
func nodes() []Target { return []Target{Leader, Follower, hubPrefix} }

// toLine are kinds that let nothing cross a link.
type toLine struct{ common }

// Aim implements Kind.
func (toLine) Aim(ctx context.Context, lab Lab, at *Aim) error { return aimLine(ctx, lab, at, true) }

// aimLine aims at links, and not at the hub behind them. stops says that nothing crosses them.
func aimLine(ctx context.Context, lab Lab, at *Aim, stops bool) error {
	err := lab.Find(ctx, at)
	at.Part, at.Stops = "", stops
	if at.Nodes == nil { // a laboratory may find several
		at.Nodes = []string{at.Node}
	}
	switch {
	case !stops:
	case at.Node == "":
		at.CutOff = at.Fault.Link.Cloud()
	case at.Fault.Link == BothLinks:
		at.Silent = []string{at.Node}
	}
	return err
}

// lines does something to each link that is aimed at, for each of the nodes.
func (at *Aim) lines(lab Lab, do func(l Line, node string)) {
	for _, l := range lab.Lines(at.Pool, at.Fault.Link) {
		for _, n := range at.Nodes {
			do(l, n)
		}
	}
}

// direction is which way nothing crosses; both, if the fault says nothing.
func (at *Aim) direction() link.Direction {
	if at.Fault.Direction == 0 {
		return link.Both
	}
	return at.Fault.Direction
}

// Cut cuts all links that are aimed at.
func (at *Aim) Cut(lab Lab) { at.lines(lab, func(l Line, n string) { l.Cut(at.direction(), n) }) }

// Mend ends that.
func (at *Aim) Mend(lab Lab) { at.lines(lab, func(l Line, n string) { l.Heal(at.direction(), n) }) }
