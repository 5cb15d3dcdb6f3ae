package door

import (
	"math"
	"slices"
	"time"

	"github.com/weir-edge/weir/impl/digest"
)

// mostNames is how many resources have a name. All others are one.
const mostNames = 32

// day is for how long reads count.
const day = 24 * time.Hour

// hours of a day.
const hours = int(day / time.Hour)

// window is bytes by the hour, of the last day: of this hour, and of 23 before it.
type window struct {
	bytes [hours]int64 // by hour, as in a clock
	hour  int64        // of the last one
}

// turn forgets what is more than a day old.
func (w *window) turn(now time.Duration) {
	hour := int64(now / time.Hour)
	for h := max(w.hour+1, hour-int64(hours)+1); h <= hour; h++ {
		w.bytes[h%int64(hours)] = 0
	}
	w.hour = max(w.hour, hour)
}

func (w *window) add(now time.Duration, n int64) {
	w.turn(now)
	w.bytes[w.hour%int64(hours)] += n
}

// sum is the bytes, and in how many hours they came.
func (w *window) sum(now time.Duration) (bytes int64, in int) {
	w.turn(now)
	for _, n := range w.bytes {
		if bytes += n; n > 0 {
			in++
		}
	}
	return bytes, in
}

// take adds what another one has.
func (w *window) take(now time.Duration, o *window) {
	w.turn(now)
	o.turn(now)
	for h, n := range o.bytes {
		w.bytes[h] += n
	}
}

// use is what was read of a resource.
type use struct {
	window
	open int // answers that come
}

// stays reports whether clients stay with the resource: they watch it now, or have read it in several hours.
func (u *use) stays(now time.Duration) bool {
	_, in := u.sum(now)
	return u.open > 0 || in > 1
}

// tally is what was read of resources, some by name and the rest as one.
type tally struct {
	names map[string]*use
	rest  *use
}

func newTally() tally { return tally{names: map[string]*use{}, rest: &use{}} }

// begin counts one more answer; "": it has no name.
func (t *tally) begin(now time.Duration, name string) *use {
	u := t.of(now, name)
	u.open++
	return u
}

// of finds where a resource is counted. If there are too many, it takes the place of the one with the least bytes of
// those of which no answer comes.
func (t *tally) of(now time.Duration, name string) *use {
	if name == "" {
		return t.rest
	}
	if u, ok := t.names[name]; ok {
		return u
	}
	if len(t.names) >= mostNames && !t.displace(now) {
		return t.rest
	}
	u := &use{}
	t.names[name] = u
	return u
}

func (t *tally) displace(now time.Duration) bool {
	least, bytes := "", int64(math.MaxInt64)
	for name, u := range t.names {
		n, _ := u.sum(now)
		if u.open == 0 && (n < bytes || n == bytes && name < least) {
			least, bytes = name, n
		}
	}
	if least == "" {
		return false
	}
	t.rest.take(now, &t.names[least].window)
	delete(t.names, least)
	return true
}

// open are those of which an answer comes.
func (t *tally) open() (all []string) {
	for name, u := range t.names {
		if u.open > 0 {
			all = append(all, name)
		}
	}
	return all
}

// told is what is told by name, and the bytes of the rest. What is shared by now is no rest either.
func (t *tally) told(now time.Duration, shared []string) (all []digest.Passed, rest int64) {
	rest, _ = t.rest.sum(now)
	for name, u := range t.names {
		n, _ := u.sum(now)
		switch {
		case n == 0 || slices.Contains(shared, name):
		case u.stays(now):
			all = append(all, digest.Passed{Resource: name, Bytes: n})
		default:
			rest += n
		}
	}
	return all, rest
}
