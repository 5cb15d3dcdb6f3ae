package invariant

import (
	"slices"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-edge/weir/sim/client"
)

// NewView is a history that begins without objects, and of which more becomes known by Happens.
func NewView(version uint64) *View {
	return &View{start: version, last: version, state: map[string]client.Item{}}
}

// Happens adds the next event of the history.
func (v *View) Happens(typ watch.EventType, it client.Item, version uint64) {
	v.events, v.last = append(v.events, expected{typ, it, version}), version
}

// Fork is another history that begins like this one up to a version.
func (v *View) Fork(version uint64) *View {
	u := v.Until(version)
	u.events = slices.Clip(u.events)
	return u
}

// Differences has a line for each object in which a state differs from that of a version.
func (v *View) Differences(state map[string]client.Item, version uint64) []string {
	return differences(state, v.at(version))
}

// Stream judges a stream while it goes on, against a history that grows. It is for one goroutine.
type Stream struct{ j *judge }

// Stream begins to judge one.
func (r Rules) Stream(v *View) *Stream { return &Stream{newJudge(v, r)} }

// Step takes what the stream does next, and returns what that breaks.
func (s *Stream) Step(op client.Op) []Violation {
	s.j.i, s.j.op, s.j.Violations = s.j.i+1, op, nil
	s.j.step()
	return s.j.Violations
}

// State is what the client has now, by key.
func (s *Stream) State() map[string]client.Item { return s.j.state }

// In goes on in another history: from the next list on, or one that is the same up to the version reached.
func (s *Stream) In(v *View) { s.j.view = v }

// Moves is told before what comes next whether that is of another server than what came last: its lists may be older.
func (s *Stream) Moves(to bool) { s.j.moved = to }

// Leaves is told that the stream was left inside a difference, whose server is at a version: what was there at the
// version reached and has changed since had yet to be shown. See Rules.Torn.
func (s *Stream) Leaves(at uint64) {
	v, there := s.j.view, s.j.view.at(s.j.reached)
	for _, e := range v.events[v.after(s.j.reached):v.after(at)] {
		it, was := there[e.item.Key]
		if _, has := s.j.state[it.Key]; was && !has {
			s.j.lacks[it.Key] = lack{it.UID, s.j.reached}
		}
	}
}
