// Package limit bounds how much a caller may take of a shared resource: requests in a time (Rate), concurrent requests
// (Slots by number, Shares by bytes), connections (Listener) and lines of the log (Quiet).
//
// Each bound has two parts: what one caller may have, and what all may have together. A caller is a key that the user
// of the package chooses. Memory is bounded too, whatever the number of keys. The package starts no goroutine. Rate
// reads no clock, it is told the time.
//
// How much that is of a hub and of a coordinator are the constants of ofhub.go and ofcoordinator.go. docs/limits.md,
// the table for operators, is made from them. Of a hub these are limits of callers other than its own node. Of a
// coordinator they are limits of what one caller may write, and how often.
//
// # Sizes at a coordinator
//
// A Lease is some hundred bytes, but for names: one of a node has 253 at most, and stands in a Lease up to four times.
// 4 KiB are twice the largest one that a hub writes. A request has 64 KiB at most, since a Lease as JSON may escape
// each byte by six. What is signed has bounds of its own, see packages trust and directory.
//
// # Writes at a coordinator
//
// A hub sends the heartbeat of its node every 10 s. The leader renews its two Leases about every 2 s each, and a hub
// that opens lines opens the next one when one is taken. What fails is tried again every 0.5 s. That is 3 writes a
// second at most for long, and some ten at once when something changes. WriteRate and WriteBurst are several times
// that, for settings that are quicker. One stolen node can so add WriteRate × MaxLease × 5 min, 24 MiB, to the history
// of etcd until Kubernetes compacts it: twenty of them fill half of its quota in that time, where the store compacts by
// itself.
package limit

import (
	"sync"
	"time"
)

// Rate is a token bucket for each key: a burst at once, then one more each Every. It is safe for concurrent use.
type Rate struct {
	Every time.Duration
	Burst int
	Keys  int // keys told apart; when all are in use, further ones share one bucket. 0: one bucket for all

	mu   sync.Mutex
	full map[string]time.Time // when the bucket of a key is full again
	rest time.Time            // the same of the shared bucket
}

// Take takes one from the bucket of a key. If it is empty nothing is taken, and wait says when there is one again.
func (r *Rate) Take(key string, now time.Time) (wait time.Duration) { return r.look(key, now, true) }

// Wait is what Take would say. It takes nothing.
func (r *Rate) Wait(key string, now time.Time) time.Duration { return r.look(key, now, false) }

func (r *Rate) look(key string, now time.Time, take bool) (wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.full == nil {
		r.full = map[string]time.Time{}
	}
	full, known := r.full[key]
	if !known && len(r.full) >= r.Keys {
		for k, at := range r.full {
			if !at.After(now) {
				delete(r.full, k)
			}
		}
	}
	shared := !known && len(r.full) >= r.Keys
	if shared {
		full = r.rest
	}
	if full.Before(now) {
		full = now
	}
	full = full.Add(r.Every)
	if wait = full.Sub(now) - time.Duration(r.Burst)*r.Every; wait > 0 {
		return wait
	}
	switch {
	case !take:
	case shared:
		r.rest = full
	default:
		r.full[key] = full
	}
	return 0
}

// Slots bounds what is under way: Each for one key, Sum for all. It is safe for concurrent use.
type Slots struct {
	Sum, Each int

	mu   sync.Mutex
	held map[string]int
	all  int
}

// Enter takes a slot. It tells what is full if there is none: "each" or "sum"; "" means that Leave has to be called.
func (s *Slots) Enter(key string) (full string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.held[key] >= s.Each:
		return "each"
	case s.all >= s.Sum:
		return "sum"
	}
	if s.held == nil {
		s.held = map[string]int{}
	}
	s.held[key]++
	s.all++
	return ""
}

// Leave gives a slot back.
func (s *Slots) Leave(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[key]--; s.held[key] == 0 {
		delete(s.held, key)
	}
	s.all--
}

// Held is how many slots are taken.
func (s *Slots) Held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}
