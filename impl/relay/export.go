package relay

import "github.com/weir-edge/weir/impl/relay/mvcc"

// Export is the content of a relay at one moment.
type Export struct {
	*mvcc.Export
	Next    mvcc.Place // of the changes that follow
	History History    // that versions are of
}

// Export takes the content of the relay. The lock is held for as long as it takes to copy one pointer per event of the
// ring. ok is false before the first list.
func (r *Relay) Export() (x *Export, ok bool) {
	r.mu.Lock() // looking marks the tree as shared
	defer r.mu.Unlock()
	if !r.synced {
		return nil, false
	}
	return &Export{r.state.Export(), r.state.Place(), r.history}, true
}

// Place is that behind the version reached.
func (r *Relay) Place() mvcc.Place {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.state.Place()
}

// Since appends at most n changes behind a place to dst. ok is false if they cannot be had: the ring has passed the
// place, or the history was thrown away. Then only a new Export tells what the relay holds.
func (r *Relay) Since(dst []*mvcc.Event, p mvcc.Place, n int) (changes []*mvcc.Event, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.state.Since(dst, p, n)
}
