package relay

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weir-edge/weir/impl/relay/mvcc"
)

// Testimony is what a relay says of its state to another one that reads it: when the watch begins, and before it sends
// something that this is not true of any more. Along a chain of relays only the first one hears from the cloud; all
// others know by testimony how old what they hold is. It travels as a bookmark's annotation (wire.TestimonyAnnotation).
type Testimony struct {
	// Version is what the relay has reached. What comes later it hears after it testified.
	Version uint64
	// AsOf is when Version was last known to be all, by the monotonic clock of the one that has the testimony.
	AsOf time.Time
	// Restored: the state comes from a disk, or from the one that had it from one, and no source has shown a sign since.
	// So AsOf is by some wall clock, and nothing that the relay sends is a sign of the cloud, until it testifies again.
	Restored bool
}

// String is the form that travels: "<version>/<age in ms>", and "/restored" if that is so. Clocks of two machines are
// never compared, so it tells an age.
func (t Testimony) String(now time.Time) string {
	s := fmt.Sprintf("%d/%d", t.Version, max(now.Sub(t.AsOf), 0).Milliseconds())
	if t.Restored {
		s += "/restored"
	}
	return s
}

// parseTestimony reads the form written by String.
func parseTestimony(s string, now time.Time) (*Testimony, error) {
	version, rest, _ := strings.Cut(s, "/")
	age, restored, more := strings.Cut(rest, "/")
	v, errVersion := strconv.ParseUint(version, 10, 64)
	ms, errAge := strconv.ParseUint(age, 10, 64)
	if errVersion != nil || errAge != nil || more && restored != "restored" {
		return nil, fmt.Errorf("testimony %.80q: want <version>/<age in ms>, perhaps with /restored", s)
	}
	return &Testimony{Version: v, AsOf: now.Add(-time.Duration(min(ms, maxAge)) * time.Millisecond), Restored: more}, nil
}

const maxAge = uint64(100 * 365 * 24 * time.Hour / time.Millisecond)

// word tells how much something that the relay has just taken proves: that its state was all there was at a time, and
// whether that is unconfirmed.
type word struct {
	asOf     time.Time
	restored bool
	trail    *mvcc.Trail // the way to a list, if more is known of it than the list itself
}

// about is the word of an upstream on a state at a version. nil is the cloud, whose every word is of now.
func (t *Testimony) about(version uint64, now time.Time) word {
	switch {
	case t == nil:
		return word{asOf: now}
	case t.Restored || version <= t.Version:
		return word{asOf: t.AsOf, restored: t.Restored}
	}
	return word{asOf: now}
}
