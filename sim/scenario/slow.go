package scenario

import (
	"context"
	"time"

	"github.com/weir-edge/weir/sim/link"
)

// Slow gives a link another rate or round trip.
type Slow struct {
	toObject

	Rate *Rate          // nil: unchanged
	RTT  *time.Duration // likewise
}

func (*Slow) rule() actionRule { return takes("slow", []Target{WholePool}, "for link rate? rtt?") }

func (*Slow) check(o object, _ Fault, _ Pool, _ []Pool) {
	if !o.has("rate") && !o.has("rtt") {
		o.contradiction("slow changes nothing: want rate, rtt or both")
	}
}

func (k *Slow) own() []own {
	return []own{
		{"rate", k.Rate, func(v value, _ Pool) { r := v.rate(); k.Rate = &r }},
		{"rtt", k.RTT, func(v value, _ Pool) { d := v.duration(maxRTT); k.RTT = &d }},
	}
}

// Begin implements Kind.
func (k *Slow) Begin(_ context.Context, lab Lab, at *Aim) (Going, error) {
	for _, l := range lab.Lines(at.Pool, at.Fault.Link) {
		if k.Rate != nil {
			l.SetRate(link.Both, int64(*k.Rate))
		}
		if k.RTT != nil {
			l.SetRTT(*k.RTT)
		}
	}
	return Going{Heal: func(context.Context) error { at.quicken(lab); return nil }}, nil
}

// quicken gives links what they had before: the pool's own network has no limit.
func (at *Aim) quicken(lab Lab) {
	was := map[LinkName]Uplink{CloudLink: at.Pool.Uplink, CoordinatorLink: {}}
	for name, u := range was {
		if at.Fault.Link != name && at.Fault.Link != BothLinks {
			continue
		}
		for _, l := range lab.Lines(at.Pool, name) {
			l.SetRate(link.Up, int64(u.Up))
			l.SetRate(link.Down, int64(u.Down))
			l.SetRTT(u.RTT)
		}
	}
}
