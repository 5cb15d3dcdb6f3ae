package identity

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// RefusedFor is how long credentials that the cloud answered 401 are answered so here: each 401 costs whoever shares
	// the connection a new one.
	RefusedFor = 10 * time.Second
	maxRefused = 4096
)

// refused are credentials that the cloud does not take, in memory.
type refused struct {
	clock clock.PassiveClock
	away  func() bool // the cloud cannot be asked: then this protects nobody

	mu    sync.Mutex
	until map[digest]time.Time
	order []digest // as they were refused, so as they end
}

func newRefused(c clock.PassiveClock, away func() bool) *refused {
	return &refused{clock: c, away: away, until: map[digest]time.Time{}}
}

// add notes credentials. Those that are there keep their time: they were not asked about, or more than once at a time.
// When there is no room the oldest go.
func (r *refused) add(d digest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	for len(r.order) > 0 && (len(r.order) >= maxRefused || !now.Before(r.until[r.order[0]])) {
		delete(r.until, r.order[0])
		r.order = r.order[1:]
	}
	if _, known := r.until[d]; !known {
		r.until[d] = now.Add(RefusedFor)
		r.order = append(r.order, d)
	}
}

// any reports whether some credentials are refused. Mostly there are none, and a request need not be hashed for it.
func (r *refused) any() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.order)
	return n > 0 && r.clock.Now().Before(r.until[r.order[n-1]])
}

func (r *refused) has(d digest) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	until, ok := r.until[d]
	return ok && r.clock.Now().Before(until) && !r.away()
}

// credentialsOf is what a request shows to be known by, but for a certificate; ok is false if that is nothing.
func credentialsOf(h http.Header) (d digest, ok bool) {
	parts := slices.Clone(h["Authorization"])
	for _, v := range h["Sec-Websocket-Protocol"] {
		if strings.Contains(v, webSocketToken) {
			parts = append(parts, "", v)
		}
	}
	if len(parts) == 0 {
		return d, false
	}
	return hashOf(parts...), true
}
