package bulletin

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"

	"github.com/weir-edge/weir/impl/contract"
)

const (
	// lasts is for how long a confirmation stands. A member hears of one in ten seconds, and it is half a minute old then.
	lasts = time.Minute
	// restsAfter is how long a watch is open before a confirmation ends it: what it begins with has come by then.
	restsAfter = 30 * time.Second
)

// Brief is the same for the same text, whatever blanks surround it: what Sum is made of.
func Brief(text []byte) string { return TagOf(bytes.TrimSpace(text)) }

// Sum is made of the Brief of each document of a pool, in the order of a Board. weir-manager signs it with each receipt
// of a roll call (package roll), so a member knows whether it holds the newest without a watch of its own. Texts are
// signed: nobody can make one that fits a sum, so 48 bits are enough to tell the few that there are apart.
func Sum(briefs ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(briefs, " ")))
	return base64.RawURLEncoding.EncodeToString(sum[:contract.SumBytes])
}

// Confirm takes a Sum that weir-manager has signed after a time. If it is that of what is held here, the documents need
// no watch of their own for a while: those that are open end, and Follow begins none.
func (b Board) Confirm(sum string, after, now time.Time) {
	briefs := make([]string, len(b))
	for i, d := range b {
		text, _ := d.Text()
		briefs[i] = Brief(text)
	}
	if Sum(briefs...) != sum {
		return // a member of the pool may know more than this one, or less: Exchange sees to it, or a watch
	}
	for _, d := range b {
		d.shown.confirm(after, now)
	}
}

// Rests reports whether no document is watched in the cloud, because all are confirmed.
func (b Board) Rests(now time.Time) bool {
	for _, d := range b {
		if !d.shown.rests(now) {
			return false
		}
	}
	return true
}

// confirm notes that the cloud showed after a time what is held here.
func (s *shown) confirm(after, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if after.After(s.confirmed) {
		s.confirmed = after
	}
	if s.again != nil && !s.opened.IsZero() && now.Sub(s.opened) >= restsAfter && now.Sub(s.confirmed) < lasts {
		s.again()
	}
}

// stands reports whether a confirmation stands.
func (s *shown) stands(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.confirmed.IsZero() && now.Sub(s.confirmed) < lasts
}

// rests reports whether a confirmation stands, and no watch is open.
func (s *shown) rests(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.confirmed.IsZero() && now.Sub(s.confirmed) < lasts && s.opened.IsZero()
}
