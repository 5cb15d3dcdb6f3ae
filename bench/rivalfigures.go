package bench

import (
	"fmt"

	"github.com/weir-edge/weir/sim/client"
)

// figures compares the sides: Weir and the peer with no hub at all, and the peer with Weir.
func (r *rival) figures() []Figure {
	var all []Figure
	direct, ours, theirs := r.side(sideDirect), r.side(sideHub), r.side(r.profile.Name)
	ratio := func(name, unit string, a, b *side, of func(*side) []float64) {
		f := Figure{
			Name: fmt.Sprintf("%s: %s ÷ %s", name, a.name, b.name), Unit: "ratio",
			Detail: fmt.Sprintf("%.3g ÷ %.3g %s", median(of(a)), median(of(b)), unit),
		}
		for i := range of(a) {
			if of(b)[i] > 0 { // the kernel counts CPU time in steps of 10 ms
				f.Samples = append(f.Samples, of(a)[i]/of(b)[i])
			}
		}
		if len(f.Samples) > 0 {
			all = append(all, f)
		}
	}
	against := func(name, unit string, of func(*side) []float64) {
		ratio(name, unit, ours, direct, of)
		ratio(name, unit, theirs, direct, of)
		ratio(name, unit, theirs, ours, of)
	}
	carried := func(s *side) []float64 {
		sum := s.startBytes
		for _, n := range s.bytes {
			sum += n
		}
		return []float64{sum}
	}
	for _, s := range []*side{direct, ours, theirs} {
		ratio("all bytes over the uplink", "MB", s, r.side(sideReference), carried)
	}
	against("bytes over the uplink for the changes of a round", "MB", func(s *side) []float64 { return s.bytes })
	against("from the start of clients until they had everything", "s",
		func(s *side) []float64 { return []float64{s.synced.Seconds()} })
	against("from a change at the cloud until a client saw it, p50", "ms", func(s *side) []float64 { return s.lag50 })
	against("from a change at the cloud until a client saw it, p99", "ms", func(s *side) []float64 { return s.lag99 })
	against("get of a Node, p50", "ms", func(s *side) []float64 { return s.get50 })
	against("get of a Node, p99", "ms", func(s *side) []float64 { return s.get99 })
	against("list of all EndpointSlices, p50", "ms", func(s *side) []float64 { return s.list50 })
	ratio("CPU of a hub for a get", "ms", theirs, ours, func(s *side) []float64 { return s.getCPU })
	ratio("CPU of a hub for a list", "ms", theirs, ours, func(s *side) []float64 { return s.listCPU })
	ratio("CPU of the pool's processes for an event that a client was shown", "ms", theirs, ours, func(s *side) []float64 {
		each := make([]float64, 0, len(s.cpu))
		for i := range s.cpu {
			each = append(each, s.cpu[i]*1e3/s.events[i])
		}
		return each
	})
	ratio("largest RssAnon of a hub", "MB", theirs, ours, func(s *side) []float64 { return []float64{r.peaks.hub[s]} })
	all = append(all, Figure{
		Name: "largest RssAnon of the coordinator: " + ours.name, Unit: "MB", Samples: []float64{r.peaks.further[ours]},
	})
	for _, s := range r.sides {
		all = append(all, Figure{
			Name: "lists that clients repeated: " + s.name, Unit: "lists", Samples: []float64{float64(s.repeated())},
			Detail: fmt.Sprintf("%d streams of %d nodes", len(s.streams), len(s.nodes)),
		})
	}
	return all
}

// repeated counts the lists of a side's streams after the first.
func (s *side) repeated() (n int) {
	for _, x := range s.streams {
		lists := 0
		for _, op := range x.Recording.Ops() {
			if op.What == client.OpList || op.What == client.OpInitialEnd {
				lists++
			}
		}
		n += max(lists-1, 0)
	}
	return n
}
