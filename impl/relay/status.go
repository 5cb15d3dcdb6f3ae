package relay

import "time"

// Status is a snapshot of a relay for people and policies.
type Status struct {
	Synced     bool
	Version    uint64  // reached
	History    History // of the cloud, that Version is of
	Oldest     uint64  // the oldest version from which a watch can resume
	Objects    int
	Bytes      int64 // of all objects
	RingEvents int
	RingBytes  int64
	Watchers   int
	ProgressAt time.Time // when the last list, event or bookmark came from upstream, on the monotonic clock; zero: never
	// the state comes from a snapshot, here or where it was read, ProgressAt is by a wall clock, and no source has shown a
	// sign since: not fresh.
	Restored   bool
	Denied     string // what the source answered that does not give the resource: see Deny; "": it does
	Joins      bool   // it came late and holds nothing yet: nobody waits for it, and its clients are answered elsewhere
	NewerField string // a field of the cloud's objects that the compiled type does not know, as a path of numbers
}

// Age is the time since the state was last known to be fresh; ok is false if it never was.
func (s *Status) Age(now time.Time) (age time.Duration, ok bool) {
	if s.ProgressAt.IsZero() {
		return 0, false
	}
	return max(now.Sub(s.ProgressAt), 0), true // a wall clock may have been set back since the snapshot
}

// Fresh reports whether the source has shown a sign within a time.
func (s *Status) Fresh(now time.Time, within time.Duration) bool {
	age, ok := s.Age(now)
	return s.Synced && !s.Restored && s.Denied == "" && ok && age <= within
}
