package relay

import (
	"context"
	"iter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-edge/weir/impl/relay/mvcc"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// Read gives a page. One that is ahead of the relay waits for it up to 3 s (rule 2). Its errors are ErrPast, and those
// that kube-apiserver answers.
func (r *Relay) Read(ctx context.Context, o PageOptions) (*Page, error) {
	if err := r.wait(ctx, o.At, o.Version); err != nil {
		return nil, err
	}
	v := r.now()
	if o.Exact && v.Version != o.Version {
		r.mu.Lock()
		old, ok := r.state.At(o.Version)
		ok = ok && !r.alien(o.At)
		r.mu.Unlock()
		if !ok {
			return nil, ErrPast
		}
		v.View = old
	}
	return pageOf(&v.View, o), nil
}

// Select is a selector of what the relay holds; namespace "" is all of them. It refuses fields that kube-apiserver
// refuses.
func (r *Relay) Select(namespace string, l labels.Selector, f fields.Selector) (Selector, error) {
	return in(namespace).by(&r.cfg.Resource, l, f)
}

// Get gives one object. It waits as Read does.
func (r *Relay) Get(ctx context.Context, namespace, name string, at At) (*wire.Object, error) {
	if err := r.wait(ctx, at, at.Version); err != nil {
		return nil, err
	}
	if o := r.Object(keyOf(namespace, name)); o != nil {
		return o, nil
	}
	return nil, apierrors.NewNotFound(r.cfg.Resource.GroupResource(), name)
}

// Watch begins a watch. Its errors are those that kube-apiserver answers: the caller tells them to a client as it
// would, by an answer or an ERROR event.
func (r *Relay) Watch(ctx context.Context, o WatchOptions) (*Cursor, error) {
	version := uint64(0)
	if o.Wait || r.doubts(o.At) {
		version = o.Version
	}
	if err := r.wait(ctx, o.At, version); err != nil {
		return nil, err
	}
	c := newCursor(r, r.cfg.Clock, o)
	if err := r.admit(c); err != nil {
		return nil, err
	}
	if o.Initial {
		look := (*mvcc.State).Now
		if o.Past {
			look = (*mvcc.State).Past
		}
		v := r.view(look)
		if err := agree(v.history, o.At); err != nil {
			return nil, err
		}
		c.begin(v)
		return c, nil
	}
	if err := r.resume(c); err != nil {
		return nil, err
	}
	return c, nil
}

// admit lets a watch begin unless the source has denied the resource. It ends at the next denial.
func (r *Relay) admit(c *Cursor) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	c.denials = r.denials
	if r.denied != nil {
		return r.denied
	}
	return nil
}

// resume finds where a watch without initial events begins.
func (r *Relay) resume(c *Cursor) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	c.history = r.history
	if err := agree(r.history, c.o.At); err != nil {
		return err
	}
	version := c.o.Version
	if r.alien(c.o.At) {
		return errTooOld(version, r.state.Floor())
	}
	c.place, c.after = r.state.Place(), version
	switch {
	case version == 0:
		c.after = r.state.Version()
	case version < r.state.Version():
		seq, ok := r.state.From(version)
		if !ok || !c.o.Selector.fixed() && r.state.Inside(seq, version) {
			return errTooOld(version, r.state.Floor())
		}
		c.place.Seq = seq
	}
	c.sent = c.after
	return nil
}

// look implements log.
func (r *Relay) look(dst []*mvcc.Event, c *Cursor) sight {
	r.mu.RLock()
	defer r.mu.RUnlock()
	events, ok := r.state.Since(dst, c.place, WatchBatch)
	return sight{
		events: events, ok: ok, over: r.stopped || r.denials != c.denials, wake: r.gather.wake, parting: r.retired,
		shown: r.gather.seq, version: r.gather.version,
		reached: r.state.Version(), floor: r.state.Floor(), epoch: r.state.Epoch(), history: r.history.Number, said: r.said,
		word: r.testimony(),
	}
}

// now is the state at the version reached.
func (r *Relay) now() view { return r.view((*mvcc.State).Now) }

// view looks at the state.
func (r *Relay) view(look func(*mvcc.State) mvcc.View) view {
	r.mu.Lock() // looking marks the tree as shared
	defer r.mu.Unlock()
	return view{View: look(&r.state), history: r.history, word: r.testimony(), said: r.said}
}

// Objects walks over the objects that the relay holds now, in the order of their keys.
func (r *Relay) Objects() iter.Seq[*wire.Object] {
	objects := r.now().Objects
	return func(yield func(*wire.Object) bool) { objects.AscendGreaterOrEqual(&wire.Object{}, yield) }
}

// Object returns the object at a key, "namespace/name" or "name" as wire.Object.Key has it; nil if there is none.
func (r *Relay) Object(key string) *wire.Object {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.state.Get(&wire.Object{Key: key})
}

// Resumable reports whether a watch can start at a version without a new list.
func (r *Relay) Resumable(version uint64) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.synced {
		return false
	}
	_, ok := r.state.From(version)
	return ok
}

// Stream begins an answer. abort makes the write under way fail. It is called once at most, and not after Close.
func (r *Relay) Stream(client string, abort func()) *Stream {
	return r.streams.open(client, r.cfg.Clock, abort)
}
