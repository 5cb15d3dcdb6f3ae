package source

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/process"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source/hop"
)

// questionTries is how often a question is asked beside a watch that waits for the answer.
const questionTries = 3

// Overrule tells that others are in a later history of the cloud than the relay. It is listed again from the cloud as
// soon as that is the upstream: what it holds may be of before.
func (f *Feeder) Overrule(number uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if number <= f.overruled {
		return
	}
	f.overruled = number
	if f.stop != nil {
		f.stop()
	}
}

// Overruled reports whether the relay has yet to be listed again for that.
func (f *Feeder) Overruled() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.overruled > f.cfg.Relay.Status().History.Number
}

// learned notes that an upstream is in another history than the relay, which takes that up; nil: it is not.
func (f *Feeder) learned(up *hop.Upstream, other *member.AnotherHistoryError, err error) {
	if other == nil {
		return
	}
	f.asked.Store(0)
	if f.cfg.Learned != nil {
		f.cfg.Learned(other.History.Number, up.Consistent)
	}
	f.count(&f.status.Histories)
	f.cfg.Logger.Error("what the relay holds is of another history of the cloud; it is listed again", "upstream", up.Name,
		"version", f.cfg.Relay.Status().Version, "history", other.History.Number, "err", err)
}

// trust makes sure that an upstream that has just accepted a watch, over a connection, goes on with the history that
// the relay knows.
//
// A kube-apiserver whose etcd was restored from a backup accepts a watch from a version that it has not reached yet,
// and says nothing until it has. But it was restarted, so streams broke and connections are new. That is when it is
// asked, once, by a small consistent read. It is asked after the watch was accepted: what is restored later breaks the
// watch.
func (f *Feeder) trust(ctx context.Context, up *hop.Upstream, conn net.Conn) error {
	if !up.Consistent {
		return nil
	}
	f.mu.Lock()
	trusted := !f.doubt && f.trusted == conn
	f.mu.Unlock()
	if trusted {
		return nil
	}
	for try := 1; ; try++ {
		_, err := f.verify(ctx, up)
		var proof *member.AnotherHistoryError
		var answer *hop.StatusError
		switch {
		case err == nil:
			f.trusts(conn)
			return nil
		case ctx.Err() != nil || try == questionTries || errors.As(err, &proof) || errors.As(err, &answer):
			return err
		}
		process.Pause(ctx, f.cfg.Clock, member.FirstBackoff) // the question was lost, and not what the watch brings
	}
}

// trusts notes that a connection leads to a cloud of the relay's history.
func (f *Feeder) trusts(conn net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.doubt, f.trusted = false, conn
}

// doubts notes that something broke: behind it may be another cloud.
func (f *Feeder) doubts() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.doubt = true
}

// verify asks for the object of the relay that changed last. Within one history the answer is not older than the relay,
// and the object is as the relay holds it, or changed later; then, or if it is gone, it is asked for as it was at the
// relay's version. The error is a *member.AnotherHistoryError if that proves the contrary; any other one leaves
// the doubt. It returns the version that the upstream has reached.
func (f *Feeder) verify(ctx context.Context, up *hop.Upstream) (version uint64, err error) {
	version, err = f.check(ctx, up, f.witness())
	if version != 0 {
		f.asked.Store(version)
	}
	if err != nil {
		return 0, err
	}
	return version, nil
}

// check asks for an object of the relay, as verify says. A version that the upstream was seen to be at is returned also
// with an error.
func (f *Feeder) check(ctx context.Context, up *hop.Upstream, witness *wire.Object) (version uint64, err error) {
	ctx, cancel := f.limit(ctx, up, f.cfg.WatchTimeout, fmt.Errorf("no answer after %v", f.cfg.WatchTimeout))
	defer cancel(nil)
	f.count(&f.status.Checks)
	s := f.cfg.Relay.Status()
	version, now, err := f.look(ctx, up, witness, 0)
	switch {
	case err != nil:
		return 0, fmt.Errorf("check the history: %w", cause(ctx, err))
	case version < s.Version:
		return 0, lost(s, fmt.Sprintf("a consistent read is at version %d, %d was reached", version, s.Version))
	case witness == nil || now != nil && sameObject(now, witness):
		return version, nil
	case now != nil && now.Version <= s.Version:
		return 0, contradiction(s, now)
	}
	_, then, err := f.look(ctx, up, witness, s.Version)
	switch {
	case hop.Gone(err): // compacted: nobody knows. But then the watch was not accepted either.
		return version, nil
	case err != nil:
		return version, fmt.Errorf("check the history: %w", cause(ctx, err))
	case then == nil:
		return version, lost(s, fmt.Sprintf("%s did not exist at version %d", witness.Key, s.Version))
	case !sameObject(then, witness):
		return version, contradiction(s, then)
	}
	return version, nil
}

// confirm asks the upstream what a watch did not show, on which not even a bookmark came: whether the relay has all.
// The cloud's bookmarks stand still while its etcd tells its cache of no progress, which it does every ten minutes
// unless it is told otherwise. A consistent read makes the cache ask for it, so the bookmark of the next watch tells if
// this answer does not.
func (f *Feeder) confirm(ctx context.Context, up *hop.Upstream) error {
	s := f.cfg.Relay.Status()
	version, err := f.verify(ctx, up)
	if err != nil {
		return err
	}
	if version > s.Version {
		if !f.told {
			f.told = true
			f.cfg.Logger.Info(
				"a watch of the cloud ended without a bookmark, though the cloud has moved: it is asked after each such watch. "+
					"It costs less if its etcd tells of progress (etcd's flag --watch-progress-notify-interval=5s)",
				"upstream", up.Name)
		}
		return nil
	}
	return f.cfg.Relay.Apply(&wire.Event{Type: wire.Bookmark, Version: version})
}

// witness is the object that changed last, nil if there is none.
func (f *Feeder) witness() *wire.Object {
	var newest *wire.Object
	for o := range f.cfg.Relay.Objects() {
		if newest == nil || o.Version > newest.Version {
			newest = o
		}
	}
	return newest
}

// look reads the metadata of one object, and the version of the answer; at 0, as it is now. No witness: any object.
func (f *Feeder) look(ctx context.Context, up *hop.Upstream, witness *wire.Object, at uint64) (version uint64,
	found *wire.Object, err error) {
	var namespace, name string
	if witness != nil {
		namespace, name = witness.Namespace, witness.Name
	}
	return up.LookAt(ctx, f.cfg.Relay.Resource(), namespace, name, at)
}

// historyOf is the history that a complete list is of: the one that it was taken for, unless it contradicts the relay,
// as it was before the list was asked for, or is now. Then it is the next one.
func (f *Feeder) historyOf(up *hop.Upstream, before relay.Status, in relay.History, version uint64,
	items []*wire.Object) (h relay.History, next bool) {
	now := f.cfg.Relay.Status()
	if !up.Consistent || !before.Synced || in.Number != now.History.Number {
		return in, false
	}
	proof := error(nil)
	if version < before.Version {
		proof = lost(now, fmt.Sprintf("a list is at version %d, %d was reached", version, before.Version))
	}
	if proof == nil && now.Version < version {
		proof = f.contradicts(now, items)
	}
	if proof == nil {
		return in, false
	}
	f.learned(up, f.plan.Learn(f.upstream(up), proof, f.cfg.Clock.Now()), proof)
	f.plan.TookUp() // here and now
	return now.History.Next(now.Version), true
}

// contradicts is the proof, if there is one among the objects of a list, that no watch could lead to it from what the
// relay holds.
func (f *Feeder) contradicts(s relay.Status, items []*wire.Object) error {
	held := map[string]*wire.Object{}
	for o := range f.cfg.Relay.Objects() {
		held[o.Key] = o
	}
	for _, o := range items {
		if old := held[o.Key]; o.Version <= s.Version && (old == nil || !sameObject(o, old)) {
			return contradiction(s, o)
		}
	}
	return nil
}
