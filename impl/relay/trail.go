package relay

import (
	"slices"
	"sort"
	"sync"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// maxTrail bounds the steps of a Trail.
const maxTrail = 64 << 10

// Trail is what happened to objects behind a version, by their metadata alone. With a list it explains more than the list does: when each
// object was deleted, and what somebody has seen who was told a part of it. Clients of a relay that lost power may be such: they have seen more
// than was on the disk. A batch that has a trail takes them in (see batch.admits). It may be used by several goroutines.
type Trail struct {
	mu      sync.Mutex
	from    uint64
	reached uint64
	length  int
	marks   map[string][]mark
}

// mark is one change of an object.
type mark struct {
	version uint64
	uid     string
	labels  wire.Labels
	gone    bool
}

// NewTrail begins behind a version.
func NewTrail(from uint64) *Trail {
	return &Trail{from: from, reached: from, marks: map[string][]mark{}}
}

// Reached is the version up to which everything is in the trail.
func (t *Trail) Reached() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reached
}

// Step takes the next event of a watch of metadata. more is false once the trail has no room.
func (t *Trail) Step(ev *wire.Event) (more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.length >= maxTrail {
		return false
	}
	if ev.Version <= t.reached {
		return true
	}
	t.reached = ev.Version
	if o := ev.Object; o != nil {
		t.length++
		t.marks[o.Key] = append(t.marks[o.Key], mark{ev.Version, o.UID, o.Labels, ev.Type == wire.Deleted})
	}
	return true
}

// Explains tells whether a trail dates all that a list at a version changes.
func (r *Relay) Explains(t *Trail, version uint64, items []*wire.Object) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.synced || version <= r.version {
		return true
	}
	gone, changed, ok := r.diff(version, items)
	if !ok {
		return true
	}
	_, dated := t.date(&batch{from: r.version, to: version}, gone, changed, r.tree.Get)
	return dated
}

// step is one event of a batch: an object that is gone, or one in its new form.
type step struct {
	version uint64
	old, o  *wire.Object // one of them
}

// undated are the steps from a list alone. When objects went is not known: these steps have the version that the batch starts from.
func undated(b *batch, gone, changed []*wire.Object) []step {
	steps := make([]step, 0, len(gone)+len(changed))
	for _, old := range gone {
		steps = append(steps, step{version: b.from, old: old})
	}
	for _, o := range changed {
		steps = append(steps, step{version: o.Version, o: o})
	}
	sort.SliceStable(steps, func(i, j int) bool { return steps[i].version < steps[j].version })
	return steps
}

// date finds the version of each step, and says in the batch whom it admits. Without a trail, or if that does not tell all, nobody inside.
func (t *Trail) date(b *batch, gone, changed []*wire.Object, held func(*wire.Object) (*wire.Object, bool)) (steps []step, ok bool) {
	steps = undated(b, gone, changed)
	if t == nil {
		return steps, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	last := min(t.reached, b.to)
	if t.from != b.from || last <= b.from {
		return steps, false
	}
	dead := map[string]uint64{} // by UID: names are used again
	now := make(map[string]*wire.Object, len(changed))
	for _, o := range changed {
		now[o.Key] = o
		if o.Version <= last && !slices.ContainsFunc(t.marks[o.Key], func(m mark) bool { return m.version == o.Version && m.uid == o.UID }) {
			return steps, false
		}
	}
	first := b.from
	for key, marks := range t.marks {
		n := sort.Search(len(marks), func(i int) bool { return marks[i].version > last })
		for _, m := range marks[:n] {
			if m.gone {
				dead[m.uid] = m.version
			}
		}
		old, _ := held(&wire.Object{Key: key})
		until, sure := settled(marks[:n], old, now[key])
		if !sure {
			return steps, false
		}
		first = max(first, until)
	}
	for i := range steps {
		if old := steps[i].old; old != nil {
			version, known := dead[old.UID]
			if !known {
				return steps, false
			}
			steps[i].version = version
		}
	}
	sort.SliceStable(steps, func(i, j int) bool { return steps[i].version < steps[j].version })
	b.first, b.last = first, last
	return steps, true
}

// settled is from when on it does not matter to somebody who saw some of an object's changes that only the last one is told: from their end, if
// the object came, went, or changed its labels meanwhile, and there are several. Who has an object that came is not told ADDED, and who
// was shown another form is told its deletion in that form. sure is false if the end is not among the changes.
func settled(marks []mark, old, now *wire.Object) (until uint64, sure bool) {
	if len(marks) == 0 {
		return 0, true
	}
	end := marks[len(marks)-1]
	ended := now != nil && end.version == now.Version || now == nil && end.gone
	if ended && len(marks) == 1 {
		return 0, now != nil || old != nil && old.UID == end.uid
	}
	plain := old != nil && now != nil && old.UID == now.UID && !slices.ContainsFunc(marks, func(m mark) bool {
		return m.gone || m.uid != old.UID || !slices.Equal(m.labels, old.Labels)
	}) && slices.Equal(now.Labels, old.Labels)
	if plain {
		return 0, true
	}
	return end.version, ended
}
