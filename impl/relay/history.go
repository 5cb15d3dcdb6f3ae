package relay

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// History names a history of the cloud. A cloud whose etcd was restored from a backup goes on with another one, in which it uses
// versions a second time (rule 7). Histories are counted by those who find that out, from 0 on; a later one replaces an earlier.
type History struct {
	Number uint64
	Lost   uint64 // the highest version known of earlier histories; it is no part of the name
}

const (
	// maxHistory is the last number: nobody counts on, and nobody is believed who names a later one. A pool comes nowhere near it, because
	// a number grows by historyStep at most at the word of another.
	maxHistory = 1 << 32
	// historyStep is how much later than the own one a history may be that a relay takes up at once at the word of another relay. Each is
	// a restore of the cloud's etcd from a backup, by hand: who has missed more of them than this was away for years, or is lied to.
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

// Near tells whether another history may be taken up after h at the word of a relay: whether it is not much later. Only who holds nothing
// has none to compare with.
func (h History) Near(o History) bool { return o.Number <= h.Number+historyStep }

// First tells whether a relay that holds nothing may begin with a history at the word of another relay. Half of the numbers are left to
// count on from.
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

// ErrHistory refuses a list of an earlier history than that of the relay: it comes from a source that has not learned yet.
var ErrHistory = errors.New("the list is of an earlier history of the cloud")

// ReplaceIn takes a complete list of a history. In that of the relay it is Replace. One of a later history may be at an earlier
// version: what the relay holds is thrown away, all watches end with one 410, and so do resumes from before. ErrHistory refuses
// one of an earlier history.
func (r *Relay) ReplaceIn(h History, version uint64, items []*wire.Object) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.replaceIn(h, version, items, word{asOf: r.cfg.Clock.Now()})
}

func (r *Relay) replaceIn(h History, version uint64, items []*wire.Object, w word) error {
	switch {
	case version == 0:
		return errors.New("replace: list has no version")
	case h.Number < r.history.Number:
		return fmt.Errorf("replace: %w: %d, the relay is in %d", ErrHistory, h.Number, r.history.Number)
	case h.Number == r.history.Number:
		r.history.Lost = max(r.history.Lost, h.Lost)
		return r.replace(version, items, w)
	}
	r.begin(h, version, items, w)
	return nil
}

// Yield takes a complete list of whatever history, also of an earlier one than that of the relay.
func (r *Relay) Yield(h History, version uint64, items []*wire.Object) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.yield(h, version, items, word{asOf: r.cfg.Clock.Now()})
}

func (r *Relay) yield(h History, version uint64, items []*wire.Object, w word) error {
	if version == 0 {
		return errors.New("replace: list has no version")
	}
	r.begin(h, version, items, w)
	return nil
}

// Renumber goes on in another history with all that the relay holds. It is for who hears from the cloud itself and cannot agree with the
// others of a pool on a number, because theirs was not counted but made up: what clients of this relay know stays true, so that they need
// not list. Relays that read this one begin anew.
func (r *Relay) Renumber(h History) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cfg.Logger.Error("the relay goes on in another history, with what it holds from the cloud", "history", h.Number, "was", r.history.Number)
	r.history = History{h.Number, max(h.Lost, r.history.Lost)}
	r.said++
	r.broadcast()
	r.show(r.cfg.Clock.Now())
}

// begin goes on with a list of another history; r.mu is held.
func (r *Relay) begin(h History, version uint64, items []*wire.Object, w word) {
	for _, o := range items {
		r.checkSchema(o)
	}
	if r.synced {
		r.counts.flushed++
		r.counts.histories++
		r.cfg.Logger.Error("the history of the cloud is another one, as after a restore from a backup: what was held is thrown away, and every client lists once",
			"history", h.Number, "was", r.history.Number, "version", version, "reached", r.version)
	}
	r.counts.replaced++
	r.history = History{h.Number, max(h.Lost, r.history.Lost, r.version)}
	r.progress = time.Time{} // what was proven of another history says nothing of this one
	r.sign(w, r.cfg.Clock.Now())
	r.load(version, items)
	r.broadcast()
}

// alien tells whether a version that a client brings can only be of a history that was lost. A plain watch ahead of the relay is
// accepted otherwise (rule 2), and would show nothing, or changes to a state that the client does not have.
//
// Until this history has passed the versions of the lost one, one ahead that the relay does not reach while the client waits (see
// Relay.wait) counts as lost. Of the versions behind, only those mean something that this relay had: its list, and its events. r.mu is held.
func (r *Relay) alien(at At) bool {
	switch {
	case r.history.Number == 0 || at.History != nil || at.Version == 0:
		return false
	case at.Version > r.version:
		return r.version <= r.history.Lost
	case at.Version < r.version && at.Version <= r.history.Lost:
		return !r.ring.had(at.Version)
	}
	return false
}

// doubts tells whether a version ahead of the relay may be of a lost history. Who brings it may also have heard a little more of this
// history, from the cloud: if the relay reaches it in a moment, it was so.
func (r *Relay) doubts(at At) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return at.Version > r.version && r.alien(at)
}

// agree tells whether a relay that asks is in the same history, nil if it is.
func agree(mine History, at At) error {
	switch {
	case at.History == nil || at.History.Number == mine.Number:
		return nil
	case at.History.Number < mine.Number:
		return apierrors.NewResourceExpired(fmt.Sprintf("the history of the cloud is another one: %d, asked was for %d", mine.Number, at.History.Number))
	}
	return retryAfter(apierrors.NewServiceUnavailable(fmt.Sprintf("this relay is still in history %d of the cloud, asked was for %d", mine.Number, at.History.Number)), 1)
}

// had tells whether the ring's state was at exactly this version once.
func (r *ring) had(v uint64) bool {
	if v == r.floor {
		return true
	}
	for _, e := range r.events {
		if e.version == v {
			return true
		}
	}
	return false
}
