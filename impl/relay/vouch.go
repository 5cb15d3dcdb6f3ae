package relay

import "time"

// testimony is what the relay says of itself now; r.mu is held.
func (r *Relay) testimony() Testimony {
	return Testimony{Version: r.state.Version(), AsOf: r.progress, Restored: r.restored}
}

// sign notes a word that comes with something that the relay takes. Unless it is of now, relays that read this one have
// to hear of it first: they take what comes later than its last testimony for a sign.
func (r *Relay) sign(w word, now time.Time) {
	r.vouch(w, now)
	if w.restored || now.Sub(w.asOf) > oldNews {
		r.said++
	}
}

// oldNews is how late what a relay passes on may be for those behind it to take it for a sign of now.
const oldNews = time.Second

// vouch notes a word about the state that the relay holds or is about to. An unconfirmed word makes nothing worse that
// was proven: a later state was all there was whenever an earlier one was.
func (r *Relay) vouch(w word, now time.Time) {
	r.given(w)
	first := r.progress.IsZero()
	switch {
	case !first && w.restored && !w.asOf.After(r.progress):
		return
	case first || w.restored || r.restored || w.asOf.After(r.progress):
		r.progress = w.asOf
	}
	if r.restored == w.restored {
		return
	}
	r.restored = w.restored
	if age := max(now.Sub(w.asOf), 0).Round(time.Second); w.restored {
		r.cfg.Logger.Warn("what the relay holds is not known to be fresh", "age", age.String(),
			"freshAt", now.Add(-age).UTC().Format(time.RFC3339))
	} else {
		r.cfg.Logger.Info("the relay hears from its source", "age", age.String())
	}
	r.said++
	r.broadcast()
	r.show(now)
}

// Lives takes that the source would have shown until then whatever else there is, though the word is about another
// resource of the same server. What comes from a disk needs a word about itself.
func (r *Relay) Lives(asOf time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.synced || r.restored || r.denied != nil || !asOf.After(r.progress) {
		return
	}
	r.progress = asOf
	r.said++
	r.broadcast()
	r.show(r.cfg.Clock.Now())
}

// given ends a denial by a word of the source on a later state; r.mu is held.
func (r *Relay) given(w word) {
	if r.denied == nil || r.retired || w.restored || w.asOf.Before(r.deniedAt) {
		return
	}
	r.denied = nil
	r.broadcast()
	r.cfg.Logger.Info("the source gives this resource again")
}
