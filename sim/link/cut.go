package link

import (
	"cmp"
	"slices"
)

// Cut says what does not cross the link: all of the pool, or what one node sends or receives.
type Cut struct {
	Node string    `json:"node"` // empty: the whole pool
	Dir  Direction `json:"dir"`
}

// Cut stops everything in the given directions for one node, or for the whole pool when node is empty, until it
// is healed. Cuts add up: a node that is cut off stays so when the pool's cut is healed.
func (p *Pool) Cut(dir Direction, node string) {
	p.change(func() {
		for _, d := range []Direction{Up, Down} {
			if dir&d != 0 {
				p.cuts[Cut{node, d}] = struct{}{}
			}
		}
	})
}

// Heal undoes what Cut did with the same arguments; other cuts stay.
func (p *Pool) Heal(dir Direction, node string) {
	p.change(func() {
		for _, d := range []Direction{Up, Down} {
			if _, cut := p.cuts[Cut{node, d}]; cut && dir&d != 0 {
				delete(p.cuts, Cut{node, d})
				p.healed[d.index()] = p.clock.Now()
			}
		}
	})
}

// HealAll undoes every cut.
func (p *Pool) HealAll() {
	for _, c := range p.Cuts() {
		p.Heal(c.Dir, c.Node)
	}
}

// Cuts lists what is cut now, one direction each; a run that ends with any has not healed its faults.
func (p *Pool) Cuts() []Cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]Cut, 0, len(p.cuts))
	for c := range p.cuts {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Cut) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Dir, b.Dir)) })
	return out
}

func (p *Pool) isCut(node string, dir Direction) bool {
	_, pool := p.cuts[Cut{"", dir}]
	_, one := p.cuts[Cut{node, dir}]
	return pool || one
}
