package snapshot

import (
	"sync"
	"time"
)

// Status is what one keeper did.
type Status struct {
	Size      int64     // of the file
	Version   uint64    // that a restart would restore
	Written   int64     // bytes, since the start
	Rewritten int       // whole files, since the start
	Errors    int       // since the start
	LastError string    // "" if the last write succeeded
	Success   time.Time // when a write succeeded last; zero: never
}

// report is a Status that is read while it changes.
type report struct {
	mu     sync.Mutex
	status Status
}

func (r *report) read() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

func (r *report) note(change func(*Status)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.status)
}

func (r *report) count(n int64) { r.note(func(s *Status) { s.Written += n }) }

// fault notes an error. first: there was none since the last success.
func (r *report) fault(err error) (first bool) {
	r.note(func(s *Status) {
		first = s.LastError == ""
		s.Errors++
		s.LastError = err.Error()
	})
	return first
}

// success ends a run of errors, if there was one.
func (r *report) success() (again bool) {
	r.note(func(s *Status) { again, s.LastError = s.LastError != "", "" })
	return again
}
