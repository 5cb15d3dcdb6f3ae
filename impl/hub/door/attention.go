package door

import (
	"slices"
	"time"
)

// reading is when clients read a resource that the pool shares.
type reading struct {
	open int           // reads under way
	last time.Duration // when the last one ended, or when the resource was first seen to be shared
}

// attention is which shared resources are read, by their names.
type attention map[string]*reading

func (a attention) of(now time.Duration, name string) *reading {
	r, ok := a[name]
	if !ok {
		r = &reading{last: now}
		a[name] = r
	}
	return r
}

// unread are those that nobody has read for a day. What is shared no more is forgotten.
func (a attention) unread(now time.Duration, shared []string) (all []string) {
	for name, r := range a {
		if r.open == 0 && !slices.Contains(shared, name) {
			delete(a, name)
		}
	}
	for _, name := range shared {
		if r := a.of(now, name); r.open == 0 && now-r.last >= day {
			all = append(all, name)
		}
	}
	return all
}
