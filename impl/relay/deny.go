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
