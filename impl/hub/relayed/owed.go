package relayed

import (
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

const (
	// writtenAge is how long a write is waited for at all. If it did not show in a minute, the feed is broken, or the
	// history of the cloud is another one.
	writtenAge = time.Minute
	// maxFacts bounds what is remembered of single objects of one resource. What is more becomes one question about the
	// whole resource.
	maxFacts = 256
)

// owed is what reads of one relayed resource with unset version have to show because of writes that went through this
// hub: a version, and facts about single objects. It is small: one number, and at most maxFacts facts, each for a
// minute.
//
// A version alone would be simpler. But where a write does not tell its version, the cloud can only be asked for that
// of its whole etcd, and a relay reaches that at the next change or bookmark of its resource, up to ten seconds later.
// The object itself shows at once.
type owed struct {
	relay *relay.Relay
	clock clock.PassiveClock

	mu      sync.Mutex
	newest  uint64 // the relay has to reach it
	at      time.Time
	facts   map[string]*fact // by key
	oldest  time.Time        // no fact is from before
	doubts  uint64           // things of which only the cloud can tell the version
	solved  uint64           // of them, those from before the cloud was last asked
	doubted time.Time        // when there was the last one
}

// fact is what the cloud holds of one object. It never changes but from unknown to known.
type fact struct {
	key     string
	at      time.Time
	unknown bool // the cloud has to be asked

	version uint64 // of the object; 0: it is gone
	uid     string // of the object that is gone; "": whatever was there
	leaves  bool   // it is enough that it is on its way out
	reached uint64 // a relay that has reached this shows it; 0: not known

	asking chan struct{} // closed when the cloud has answered, or did not
}

// reach notes that the cloud is at a version.
func (o *owed) reach(version uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reached(version)
}

func (o *owed) reached(version uint64) {
	if now := o.clock.Now(); version > o.newest || now.Sub(o.at) > writtenAge {
		o.newest, o.at = version, now
	}
}

// gone notes that an object was deleted.
func (o *owed) gone(key, uid string, leaves bool) { o.note(&fact{key: key, uid: uid, leaves: leaves}) }

// doubt notes that an object may be another one than before; without a key, any.
func (o *owed) doubt(key string) {
	if key != "" {
		o.note(&fact{key: key, unknown: true})
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wonder(o.clock.Now())
}

// wonder notes that only the cloud can tell its version; o.mu is held.
func (o *owed) wonder(now time.Time) { o.doubts, o.doubted = o.doubts+1, now }

func (o *owed) note(f *fact) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f.at = o.clock.Now()
	o.forget(f.at)
	if len(o.facts) == 0 {
		o.oldest = f.at
	}
	if _, known := o.facts[f.key]; !known && len(o.facts) >= maxFacts {
		clear(o.facts)
		o.wonder(f.at)
		return
	}
	o.facts[f.key] = f
}

// forget drops facts that are too old; o.mu is held.
func (o *owed) forget(now time.Time) {
	if len(o.facts) == 0 || now.Sub(o.oldest) <= writtenAge {
		return
	}
	o.oldest = now
	for key, f := range o.facts {
		if now.Sub(f.at) > writtenAge {
			delete(o.facts, key)
		} else if f.at.Before(o.oldest) {
			o.oldest = f.at
		}
	}
}

// reset forgets all: versions are of another history.
func (o *owed) reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.facts)
	o.newest, o.solved = 0, o.doubts
}

// unknown are the facts that a read needs and nobody knows, and whether the version of the whole resource is such a
// thing.
func (o *owed) unknown(t *Target) (facts []*fact, whole bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock.Now()
	o.forget(now)
	for _, f := range o.about(t) {
		if f.unknown {
			facts = append(facts, f)
		}
	}
	return facts, o.doubts > o.solved && now.Sub(o.doubted) <= writtenAge
}

// about are the facts of the objects that a read is about; o.mu is held.
func (o *owed) about(t *Target) (facts []*fact) {
	if len(o.facts) == 0 {
		return nil
	}
	if t.Verb == "get" {
		if f := o.facts[t.key()]; f != nil {
			facts = append(facts, f)
		}
		return facts
	}
	for key, f := range o.facts {
		if t.covers(key) {
			facts = append(facts, f)
		}
	}
	return facts
}

// shown reports whether the relay shows what a read has to show, as far as that is known.
func (o *owed) shown(t *Target) bool {
	reached := o.relay.Status().Version
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock.Now()
	if now.Sub(o.at) <= writtenAge && reached < o.newest {
		return false
	}
	o.forget(now)
	for _, f := range o.about(t) {
		if !f.unknown && !f.shown(reached, o.relay) {
			return false
		}
	}
	return true
}

// shown reports whether a relay that has reached a version, or more, shows the fact.
func (f *fact) shown(reached uint64, r *relay.Relay) bool {
	if f.reached != 0 && reached >= f.reached {
		return true
	}
	switch has := r.Object(f.key); {
	case f.version != 0:
		return has != nil && has.Version >= f.version
	case has == nil, f.uid != "" && has.UID != f.uid, f.reached != 0 && has.Version > f.reached:
		return true
	default:
		return f.leaves && leaving(r.Resource().Encoding(), has)
	}
}

// asks begins to ask for a fact unless somebody does, or it is known; done is closed when that is over.
func (o *owed) asks(f *fact, begin func()) (done <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if f.asking == nil && f.unknown {
		f.asking = make(chan struct{})
		begin()
	}
	if !f.unknown {
		return closed
	}
	return f.asking
}

// learn takes what the cloud has answered about an object: found is nil if there is none.
func (o *owed) learn(f *fact, reached uint64, found *wire.Object, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(f.asking)
	f.asking = nil
	if err != nil {
		return
	}
	f.unknown, f.reached = false, reached
	if found != nil {
		f.version = found.Version
	}
}

func (o *owed) knows(f *fact) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !f.unknown
}

// doubtAll makes one doubt of many facts.
func (o *owed) doubtAll(facts []*fact) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range facts {
		if o.facts[f.key] == f {
			delete(o.facts, f.key)
		}
	}
	o.wonder(o.clock.Now())
}

// closed is a channel that is.
var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// solve takes the version that the cloud was at after as many doubts. Without a doubt nobody has to see just that
// version.
func (o *owed) solve(doubts, version uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if doubts > o.solved {
		o.solved = doubts
		o.reached(version)
	}
}

// doubtful is how many doubts there are so far.
func (o *owed) doubtful() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.doubts
}
