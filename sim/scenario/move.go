package scenario

import (
	"context"
	"slices"
)

// Movers is a laboratory whose nodes can go to another pool.
type Movers interface {
	// Move takes a node there: its label says so, and its hub is restarted with the flags of that pool. It is healed by
	// going back.
	Move(ctx context.Context, at *Aim, to string) (Going, error)
}

// Move lets a node go to another pool.
type Move struct {
	toObject

	To string // the name of another pool
}

func (*Move) rule() actionRule { return takes("move", []Target{hubPrefix}, "for to") }

// check refuses a move to a pool that cannot take the node.
func (k *Move) check(o object, _ Fault, p Pool, pools []Pool) {
	to := slices.IndexFunc(pools, func(q Pool) bool { return q.Name == k.To })
	switch {
	case k.To == "":
	case to < 0 || k.To == p.Name:
		o.fields["to"].mistake("want the name of another pool of this file")
	case !p.Enrols || !pools[to].Enrols:
		o.fields["to"].contradiction("hubs ask for no certificates of another pool there: want enrols: true of both")
	case p.Nodes < 2:
		o.fields["target"].contradiction("the pool has one node, and nobody would be left: want more")
	}
}

func (k *Move) own() []own {
	return []own{{"to", k.To, func(v value, _ Pool) { k.To, _ = v.str("the name of another pool") }}}
}

func (k *Move) words() string { return " to " + k.To }

// Begin implements Kind.
func (k *Move) Begin(ctx context.Context, lab Lab, at *Aim) (Going, error) {
	return with(lab, func(of Movers) (Going, error) { return of.Move(ctx, at, k.To) })
}

// Moves reports whether a node goes to another pool.
func (s *Scenario) Moves() bool { return happen[*Move](s) }
