package relay

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Deny takes the answer of a source that does not have the resource (404), or does not give it to this relay (403).
// That is an answer and no failure: what the relay holds is not so any more, or cannot be kept up. Until the source
// shows a sign again, the relay answers by its Fallback, and if it has none, what the source did; its watches end, as
// they do at a kube-apiserver whose custom resource goes. The state stays, for the resume.
func (r *Relay) Deny(why error) {
	s := StatusOf(why)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.denied == nil {
		r.denials++
		r.gather.look()
		r.cfg.Logger.Warn("the source does not give this resource: nothing is served from here until it does",
			"code", s.Code, "err", s.Message)
	}
	r.denied, r.deniedAt = &apierrors.StatusError{ErrStatus: s}, r.cfg.Clock.Now()
	r.broadcast()
}

// Denied is what Deny was told, nil if the source has shown a sign since.
func (r *Relay) Denied() *apierrors.StatusError {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.denied
}

// Retire ends the use of the relay: somebody else answers for its resource from now on, by the same versions. Its
// watches end in order, each behind all that there is and a bookmark if it has those. So their clients go on from its
// version, also those that have only just begun: client-go lists again after a watch that was short and brought
// nothing. Requests that are under way are answered as if the source had denied the resource.
func (r *Relay) Retire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.retired {
		return
	}
	r.retired, r.denied = true, apierrors.NewNotFound(r.cfg.Resource.GroupResource(), "")
	r.show(r.cfg.Clock.Now())
	r.broadcast()
}

// gone reports whether the relay is retired and nobody reads it any more.
func (r *Relay) gone() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.retired && r.streams.len() == 0
}

// CameAfter reports whether a relay that came late does not reach back to a version: who has seen that goes on where it
// was read before.
func (r *Relay) CameAfter(version uint64) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.cfg.Late && version < r.state.Floor()
}
