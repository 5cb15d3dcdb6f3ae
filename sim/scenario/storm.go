package scenario

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weir-edge/weir/sim/link"
)

// The lengths of what a storm is made of.
const (
	shortest = 2 * time.Second
	longest  = 10 * time.Second
)

// Storm is faults of many kinds, on top of each other, as the seed decides.
type Storm struct{ common }

func (*Storm) rule() actionRule { return takes("storm", []Target{WholePool}, "for") }

// effect: anything may happen.
func (*Storm) effect(Fault) effect { return effect{leader: true, apiserver: true, batches: true} }

// Begin implements Kind. What happens is drawn before a run.
func (*Storm) Begin(context.Context, Lab, *Aim) (Going, error) {
	return Going{}, errors.New("a storm happens as the faults that are drawn for it")
}

// Drawn is s with the faults that its storms are, drawn from its seed: all that may happen to a pool and its cloud at
// once, each beginning somewhere within the storm, in an order of chance.
func (s *Scenario) Drawn() *Scenario {
	drawn := *s
	drawn.Faults = nil
	for _, f := range s.Faults {
		if is[*Storm](f) {
			drawn.Faults = append(drawn.Faults, s.storm(f)...)
		} else {
			drawn.Faults = append(drawn.Faults, f)
		}
	}
	slices.SortStableFunc(drawn.Faults, func(a, b Fault) int { return int(a.At - b.At) })
	return &drawn
}

// lasting draws how long a fault of a storm lasts.
func lasting(rnd *rand.Rand) time.Duration {
	return (shortest + time.Duration(rnd.Int64N(int64(longest-shortest)))).Round(100 * time.Millisecond)
}

func (s *Scenario) storm(f Fault) []Fault {
	p, rnd := s.PoolOf(f), rand.New(rand.NewPCG(uint64(s.Seed), uint64(f.At)))
	lasts := func() time.Duration { return lasting(rnd) }
	hub := func() Target { return Hub(1 + rnd.IntN(p.Nodes)) }
	pick := func(all ...Kind) Kind { return all[rnd.IntN(len(all))] }
	up := p.Uplink
	rate, rtt := min(up.Up, up.Down)/Rate(2+rnd.IntN(4)), up.RTT*time.Duration(1+rnd.IntN(3))
	cut := func(t Target) Fault {
		return Fault{
			Kind: &Cut{}, Target: t, For: lasts(), Link: CloudLink,
			Direction: []link.Direction{link.Both, link.Up, link.Down}[rnd.IntN(3)],
		}
	}
	all := []Fault{
		{Kind: pick(&Kill{}, &Freeze{}), Target: APIServer, For: lasts()},
		{Kind: &Slow{Rate: &rate, RTT: &rtt}, Target: WholePool, For: lasts(), Link: CloudLink},
		cut(WholePool), cut(hub()),
		{Kind: pick(&Kill{}, &Stop{}, &Freeze{}), Target: hub(), For: lasts()},
	}
	if p.Coordinators > 0 {
		all = append(all,
			Fault{Kind: pick(&Kill{}, &Stop{}, &Freeze{}), Target: Leader, For: lasts()},
			Fault{Kind: &Kill{Ending{Disk: KeepDisk}}, Target: Coordinator, For: lasts()},
			Fault{Kind: &Kill{Ending{Disk: LoseDisk}}, Target: Coordinator, For: lasts()},
		)
	}
	all = append(all, s.drawnToxics(f)...)
	for i := range all {
		all[i].At = f.At + time.Duration(rnd.Int64N(int64(f.For))).Round(100*time.Millisecond)
		all[i].Repeat = 1
		if all[i].Target != APIServer {
			all[i].Pool = f.Pool
		}
	}
	return all
}
