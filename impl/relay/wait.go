package relay

import (
	"context"

	"k8s.io/utils/clock"
)

// WaitVersion waits until the relay has reached a version, or returns ctx's error.
func (r *Relay) WaitVersion(ctx context.Context, version uint64) error {
	return r.WaitUntil(ctx, func() bool {
		r.mu.RLock()
		defer r.mu.RUnlock()
		return r.synced && r.state.Version() >= version
	})
}

// WaitUntil waits until something holds that depends on what the relay has and how fresh that is, or returns ctx's
// error.
func (r *Relay) WaitUntil(ctx context.Context, holds func() bool) error {
	for {
		r.mu.RLock()
		changed := r.notify
		r.mu.RUnlock()
		if holds() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// wait waits until the relay has reached a version, but not for longer than kube-apiserver would. It starts no
// goroutine, since a simulator runs it on one thread.
func (r *Relay) wait(ctx context.Context, at At, version uint64) error {
	end := r.cfg.Clock.Now().Add(waitAhead)
	var timer clock.Timer
	for {
		r.mu.RLock()
		changed := r.notify
		r.mu.RUnlock()
		if reached, err := r.meet(at, version); reached || err != nil {
			return err
		}
		left := end.Sub(r.cfg.Clock.Now())
		if left <= 0 || ctx.Err() != nil {
			return r.late(at, version)
		}
		if timer == nil {
			timer = r.cfg.Clock.NewTimer(left)
			defer timer.Stop()
		}
		timer.Reset(left)
		select {
		case <-changed:
		case <-timer.C():
		case <-ctx.Done():
		}
	}
}

// late is the answer to the one that has waited in vain.
func (r *Relay) late(at At, version uint64) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.alien(at) {
		return errTooOld(version, r.state.Floor())
	}
	return errAhead(version, r.state.Version())
}

// meet reports whether a version is reached, and by an error that it cannot be.
func (r *Relay) meet(at At, version uint64) (reached bool, err error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.synced {
		return false, errNotReady(r.cfg.Resource)
	}
	if err := agree(r.history, at); err != nil {
		return false, err
	}
	return r.state.Version() >= version, nil
}

// alien reports whether a version that a client brings can only be of a history that was lost. A plain watch ahead of
// the relay is accepted otherwise (rule 2), and would show nothing, or changes to a state that the client does not
// have.
//
// Until this history has passed the versions of the lost one, one ahead that the relay does not reach while the client
// waits (see Relay.wait) counts as lost. Of the versions behind, only those mean something that this relay had: its
// list, and its events. r.mu is held.
func (r *Relay) alien(at At) bool {
	switch {
	case r.history.Number == 0 || at.History != nil || at.Version == 0:
		return false
	case at.Version > r.state.Version():
		return r.state.Version() <= r.history.Lost
	case at.Version < r.state.Version() && at.Version <= r.history.Lost:
		return !r.state.Had(at.Version)
	}
	return false
}

// doubts reports whether a version ahead of the relay may be of a lost history. The source that brings it may also have
// heard a little more of this history, from the cloud: if the relay reaches it in a moment, it was so.
func (r *Relay) doubts(at At) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return at.Version > r.state.Version() && r.alien(at)
}
