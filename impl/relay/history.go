package relay

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// History names a history of the cloud. A cloud whose etcd was restored from a backup goes on with another one, in
// which it uses versions a second time (rule 7). Histories are counted by those who find that out, from 0 on; a later
// one replaces an earlier.
type History struct {
	Number uint64
	Lost   uint64 // the highest version known of earlier histories; it is no part of the name
}

const (
	// maxHistory is the last number: nobody counts on, and nobody is believed who names a later one. A pool comes nowhere
	// near it, because a number grows by historyStep at most at the word of another.
	maxHistory = 1 << 32
	// historyStep is how much later than the own one a history may be that a relay takes up at once at the word of another
	// relay. Each is a restore of the cloud's etcd from a backup, by hand: who has missed more of them than this was away
	// for years, or is lied to.
	historyStep = 16
)

// String is the form that travels: "<number>/<lost>".
func (h History) String() string {
	return strconv.FormatUint(h.Number, 10) + "/" + strconv.FormatUint(h.Lost, 10)
}

// Next is the history that follows one that had reached a version.
func (h History) Next(reached uint64) History {
	return History{min(h.Number, maxHistory-1) + 1, max(h.Lost, reached)}
}

// Near reports whether another history may be taken up after h at the word of a relay: whether it is not much later.
// Only who holds nothing has none to compare with.
func (h History) Near(o History) bool { return o.Number <= h.Number+historyStep }

// First reports whether a relay that holds nothing may begin with a history at the word of another relay. Half of the
// numbers are left to count on from.
func (h History) First() bool { return h.Number <= maxHistory/2 }

// ParseHistory reads the form written by String.
func ParseHistory(s string) (h History, err error) {
	number, lost, _ := strings.Cut(s, "/")
	if h.Number, err = strconv.ParseUint(number, 10, 64); err == nil {
		h.Lost, err = strconv.ParseUint(lost, 10, 64)
	}
	if err != nil {
		return History{}, fmt.Errorf("history %q: want <number>/<version>: %w", s, err)
	}
	if err := h.check(); err != nil {
		return History{}, err
	}
	return h, nil
}

// check tells why nobody can have counted so far.
func (h History) check() error {
	switch {
	case h.Number > maxHistory:
		return fmt.Errorf("history %d: at most %d", h.Number, uint64(maxHistory))
	case h.Lost > math.MaxInt64:
		return fmt.Errorf("version %d: at most %d", h.Lost, int64(math.MaxInt64))
	}
	return nil
}
