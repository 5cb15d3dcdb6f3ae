package mvcc

import (
	"slices"
	"sort"
	"sync"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// maxTrail bounds the steps of a Trail.
const maxTrail = 64 << 10

// Trail is what happened to objects behind a version, most of it by their metadata alone. With a list it explains more
// than the list does: who has seen a part of what led there, elsewhere or before this relay lost power, can go on (see
// Batch.Admits). Of most objects that takes no more than their last form. Those that came, went, or changed their
// labels on the way are unclear by metadata: of them all forms are told. It may be used by several goroutines.
type Trail struct {
	mu      sync.Mutex
	from    uint64
	reached uint64
	length  int
	marks   map[string][]mark
	told    map[string][]step
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
	return &Trail{from: from, reached: from, marks: map[string][]mark{}, told: map[string][]step{}}
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

// Tell takes all that happened to one object behind the version at which the trail begins.
func (t *Trail) Tell(key string, events []*wire.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told[key] = stepsOf(events)
}

// along are the steps of a batch with the trail that leads there, if that explains it all; then the batch admits who
// has seen a part.
func (t *Trail) along(b *Batch, gone, changed []*wire.Object, held func(*wire.Object) *wire.Object) []step {
	if t == nil {
		return undated(b, gone, changed)
	}
	steps, unclear, ok := t.date(b, gone, changed, held)
	if !ok || len(unclear) > 0 {
		return undated(b, gone, changed)
	}
	b.Admitted = min(t.Reached(), b.To)
	return steps
}

// date finds the steps of a batch, and the objects that are unclear. ok is false if the trail does not fit.
func (t *Trail) date(b *Batch, gone, changed []*wire.Object, held func(*wire.Object) *wire.Object) (steps []step,
	unclear map[string]uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := min(t.reached, b.To)
	if t.from != b.From || last <= b.From {
		return nil, nil, false
	}
	now := map[string]*wire.Object{} // nil: gone
	for _, o := range gone {
		now[o.Key] = nil
	}
	for _, o := range changed {
		now[o.Key] = o
	}
	unclear = map[string]uint64{}
	for key := range t.marks {
		if _, differs := now[key]; differs {
			continue
		}
		if held(&wire.Object{Key: key}) != nil && t.until(key, last) > 0 {
			return nil, nil, false // it changed, and the list does not show that
		}
		if t.until(key, last) > 0 { // it came and went
			now[key] = nil
		}
	}
	for key, o := range now {
		old := held(&wire.Object{Key: key})
		marks := t.marks[key][:t.until(key, last)]
		if o != nil && o.Version <= last &&
			!slices.ContainsFunc(marks, func(m mark) bool { return m.version == o.Version && m.uid == o.UID && !m.gone }) {
			return nil, nil, false
		}
		switch told := t.tale(key, b.To, o); {
		case told != nil:
			steps = append(steps, told...)
		case !plain(marks, old, o):
			unclear[key] = 0
			if o != nil {
				unclear[key] = o.Version
			}
		case o != nil:
			steps = append(steps, step{version: o.Version, o: o})
		default:
			steps = append(steps, step{version: marks[0].version, o: old, gone: true})
		}
	}
	inOrder(steps)
	return steps, unclear, true
}

// until counts the marks of an object up to a version.
func (t *Trail) until(key string, last uint64) int {
	marks := t.marks[key]
	return sort.Search(len(marks), func(i int) bool { return marks[i].version > last })
}

// tale is all that was told of an object up to a version, if that leads to its last form; nil: it is gone.
func (t *Trail) tale(key string, to uint64, now *wire.Object) []step {
	steps := t.told[key]
	steps = steps[:sort.Search(len(steps), func(i int) bool { return steps[i].version > to })]
	if len(steps) == 0 {
		return nil
	}
	end := steps[len(steps)-1]
	if n := t.until(key, to); n > 0 && t.marks[key][n-1].version > end.version {
		return nil
	}
	if now == nil && end.gone || now != nil && !end.gone && end.version == now.Version && end.o.UID == now.UID {
		return steps
	}
	return nil
}

// plain reports whether the last form of an object is all that somebody needs who has seen any of its changes: there
// was only one, or it stayed what it is and kept its labels.
func plain(marks []mark, old, now *wire.Object) bool {
	switch {
	case len(marks) == 0:
		return now != nil && (old == nil || old.UID == now.UID)
	case len(marks) == 1 && now == nil:
		return marks[0].gone && old != nil && old.UID == marks[0].uid
	case len(marks) == 1 && marks[0].version == now.Version:
		return old == nil || old.UID == now.UID
	}
	return old != nil && now != nil && old.UID == now.UID && slices.Equal(now.Labels, old.Labels) &&
		!slices.ContainsFunc(marks, func(m mark) bool {
			return m.gone || m.uid != old.UID || !slices.Equal(m.labels, old.Labels)
		})
}
