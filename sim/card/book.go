package card

import (
	"sync"

	"github.com/weir-edge/weir/sim/change"
)

// book collects samples in the order in which figures first came.
type book struct {
	repeat string
	order  []string
	by     map[string]*change.Figure
	mu     sync.Mutex // who adds from several goroutines holds it
}

func newBook(repeat string) *book { return &book{repeat: repeat, by: map[string]*change.Figure{}} }

// meaning is what of a figure is the same for all samples.
type meaning struct {
	subject, name, unit string
	kind                change.Kind
}

// add notes a sample of a side, 0 to 2 for base, twin and head, in a round.
func (b *book) add(m meaning, side, round int, v float64) {
	key := m.subject + ": " + m.name
	f := b.by[key]
	if f == nil {
		f = &change.Figure{Subject: m.subject, Name: m.name, Unit: m.unit, Kind: m.kind, Repeat: b.repeat}
		b.by[key] = f
		b.order = append(b.order, key)
	}
	rounds := []*[][]float64{&f.Base, &f.Again, &f.Head}[side]
	for len(*rounds) <= round {
		*rounds = append(*rounds, nil)
	}
	(*rounds)[round] = append((*rounds)[round], v)
}

// roundOf is the round of the n-th time: what is measured often enough is judged in rounds that have to agree.
func roundOf(n int) int { return n / change.LeastSamples }

func (b *book) figures() []change.Figure {
	out := make([]change.Figure, 0, len(b.order))
	for _, key := range b.order {
		out = append(out, *b.by[key])
	}
	return out
}
