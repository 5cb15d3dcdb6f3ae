package shelter

import (
	"slices"
	"sync"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
)

const (
	// maxDue bounds the answers that a watch has yet to show. A watch that ends leaves some behind.
	maxDue = 256
	// maxSeen bounds what is held of a watch that is faster than the answer.
	maxSeen = 4
)

// id names an object.
type id struct {
	resource        request.Resource
	namespace, name string
}

// due is an answer that is to be compared with what a watch shows at its version.
type due struct {
	of      id
	deed    *deed
	becomes object
	version uint64         // of the answer; 0: it has not come
	seen    []*wire.Object // until then: what the hub held, and what the watch has shown since
}

// ledger are the answers that are due, the oldest first.
type ledger struct {
	mu  sync.Mutex
	all []*due
}

// begin notes that a request is about to be sent; nil: another one for the object is under way.
func (l *ledger) begin(a *due) *due {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.ContainsFunc(l.all, func(other *due) bool { return other.of == a.of && other.version == 0 }) {
		return nil
	}
	if len(l.all) >= maxDue {
		l.all = l.all[1:]
	}
	l.all = append(l.all, a)
	return a
}

// drop forgets an answer.
func (l *ledger) drop(a *due) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(a)
}

func (l *ledger) remove(a *due) {
	l.all = slices.DeleteFunc(l.all, func(other *due) bool { return other == a })
}

// answered notes the version of an answer, and what that makes of the object. It returns what the watch has shown at
// that version; nil: that is still due, or was not held.
func (l *ledger) answered(a *due, version uint64, becomes object) (shown *wire.Object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range a.seen {
		if o.Version == version {
			shown = o
		}
		if o.Version >= version {
			l.remove(a)
		}
	}
	a.version, a.becomes, a.seen = version, becomes, nil
	return shown
}

// shown takes an object that a watch has shown, and returns the answers that are due with it.
func (l *ledger) shown(k id, o *wire.Object) (with []*due) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(l.all, func(a *due) bool {
		switch {
		case a.of != k:
			return false
		case a.version == 0:
			a.seen = append(a.seen[max(0, len(a.seen)-maxSeen+1):], o)
			return false
		case a.version == o.Version:
			with = append(with, a)
		}
		return a.version <= o.Version
	})
	return with
}

// latest is the newest answer about an object that is due; nil: there is none.
func (l *ledger) latest(k id) (a *due) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, other := range l.all {
		if other.of == k && other.version > 0 && (a == nil || other.version > a.version) {
			a = other
		}
	}
	return a
}
