package relay

import "github.com/weir-edge/weir/impl/relay/mvcc"

// Export is the content of a relay at one moment.
type Export struct {
	*mvcc.Export
	Next    Place   // of the changes that follow
	History History // that versions are of
}

// Export takes the content of the relay. The lock is held for as long as it takes to copy one pointer per event of the ring.
// ok is false before the first list.
func (r *Relay) Export() (x *Export, ok bool) {
	r.mu.Lock() // looking marks the tree as shared
	defer r.mu.Unlock()
	if !r.synced {
		return nil, false
	}
	return &Export{r.state.Export(), Place{r, r.state.Place()}, r.history}, true
}

// Place is one in a relay's history. It is a value: one that was read from may be read from again.
type Place struct {
	r  *Relay
	at mvcc.Place
}

// Place is that behind the version reached.
func (r *Relay) Place() Place {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return Place{r, r.state.Place()}
}

// Read appends at most n changes behind the place to dst, which is empty, and returns the place behind those. ok is false if they cannot be
// had: the ring has passed it, or the history was thrown away. Then only a new Export tells what the relay holds.
func (p Place) Read(dst []*mvcc.Event, n int) (changes []*mvcc.Event, next Place, ok bool) {
	p.r.mu.RLock()
	defer p.r.mu.RUnlock()
	changes, ok = p.r.state.Since(dst, p.at, n)
	p.at.Seq += uint64(len(changes))
	return changes, p, ok
}
