package relay

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/btree"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// waitAhead is how long a read that is ahead of the cache waits, as in kube-apiserver (blockTimeout in storage/cacher).
const waitAhead = 3 * time.Second

// At is where a reader stands.
type At struct {
	// Version is what the reader has seen. Nothing older is shown to it. 0: it has seen nothing.
	Version uint64
	// History is what Version is of, if the reader is a relay that holds something. nil: it knows of none.
	History *History
}

// PageOptions is what of a list is wanted.
type PageOptions struct {
	At
	Selector Selector
	Exact    bool   // the state at Version, and no later one
	Limit    int64  // of objects; 0: none
	Start    string // Page.Next of the page before; "": the first page
}

// Page is a list, or a part of one: objects in the order of their keys, which must not be written to.
type Page struct {
	Version   uint64
	Items     []*wire.Object
	Next      string // where the next page starts; "": this is the last one
	Remaining *int64 // objects behind it, if nothing is selected among them
}

// ErrPast refuses a page of an exact version that the relay cannot go back to any more.
var ErrPast = errors.New("the relay holds nothing of that version any more")

// Read gives a page. One that is ahead of the relay waits for it up to 3 s (rule 2). Its errors are ErrPast, and those that kube-apiserver answers.
func (r *Relay) Read(ctx context.Context, o PageOptions) (*Page, error) {
	if err := r.wait(ctx, o.At, o.Version); err != nil {
		return nil, err
	}
	v := r.now()
	if o.Exact && v.version != o.Version {
		r.mu.RLock()
		lost := r.alien(o.At)
		r.mu.RUnlock()
		old, ok := r.at(o.Version)
		if !ok || lost {
			return nil, ErrPast
		}
		v = old
	}
	return v.page(o), nil
}

// Get gives one object. It waits as Read does.
func (r *Relay) Get(ctx context.Context, namespace, name string, at At) (*wire.Object, error) {
	if err := r.wait(ctx, at, at.Version); err != nil {
		return nil, err
	}
	key := name
	if namespace != "" {
		key = namespace + "/" + name
	}
	if o := r.Object(key); o != nil {
		return o, nil
	}
	return nil, apierrors.NewNotFound(r.cfg.Resource.GroupResource(), name)
}

// objects are the objects of a state, in the order of their keys: a tree or, if nothing changes, a slice.
type objects interface {
	Len() int
	Get(like *wire.Object) (*wire.Object, bool)
	AscendGreaterOrEqual(from *wire.Object, visit btree.ItemIteratorG[*wire.Object])
}

// view is a consistent state at one version.
type view struct {
	version uint64
	tree    objects
	seq     uint64 // sequence number of the first event behind it
	epoch   uint64
	history History
	word    Testimony // on it
	said    uint64
}

// wait waits until the relay has reached a version, but not for longer than kube-apiserver would. It starts no goroutine, since a simulator runs it on one thread.
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

// late is the answer to who has waited in vain.
func (r *Relay) late(at At, version uint64) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.alien(at) {
		return errTooOld(version, r.ring.floor)
	}
	return errAhead(version, r.version)
}

// meet tells whether a version is reached, and by an error that it cannot be.
func (r *Relay) meet(at At, version uint64) (reached bool, err error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.synced {
		return false, errNotReady(r.cfg.Resource)
	}
	if err := agree(r.history, at); err != nil {
		return false, err
	}
	return r.version >= version, nil
}

// now returns the state at the version reached.
func (r *Relay) now() view {
	r.mu.Lock() // Clone marks the tree as shared
	defer r.mu.Unlock()
	return view{version: r.version, tree: r.tree.Clone(), seq: r.ring.next(), epoch: r.epoch, history: r.history, word: r.testimony(), said: r.said}
}

// past returns the state at the oldest version from which a watch can resume.
func (r *Relay) past() view {
	r.mu.Lock()
	defer r.mu.Unlock()
	seq, _ := r.ring.from(r.ring.floor)
	tree := r.tree.Clone()
	undo(tree, r.ring.events[seq-r.ring.base:])
	return view{version: r.ring.floor, tree: tree, seq: seq, epoch: r.epoch, history: r.history, word: r.testimony(), said: r.said}
}

// at returns the state at an earlier version, by undoing the events since. ok is false if the ring does not reach back.
func (r *Relay) at(version uint64) (view, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seq, ok := r.ring.from(version)
	if !ok || version > r.version || r.ring.inside(seq, version) {
		return view{}, false
	}
	tree := r.tree.Clone()
	undo(tree, r.ring.events[seq-r.ring.base:])
	return view{version: version, tree: tree, seq: seq, epoch: r.epoch}, true
}

// page is what of the state is wanted.
func (v *view) page(o PageOptions) *Page {
	p, s := &Page{Version: v.version}, &o.Selector
	if s.key == "" && s.prefix == "" {
		p.Items = make([]*wire.Object, 0, v.tree.Len())
	}
	more := false
	visit := func(x *wire.Object) bool {
		if !strings.HasPrefix(x.Key, s.prefix) {
			return false
		}
		if o.Limit > 0 && int64(len(p.Items)) == o.Limit {
			more = true // whether it matches or not: kube-apiserver does not look further either
			return false
		}
		if s.matches(x) {
			p.Items = append(p.Items, x)
		}
		return true
	}
	from := s.prefix + o.Start
	if s.key != "" {
		if x, ok := v.tree.Get(&wire.Object{Key: s.key}); ok && x.Key >= from {
			visit(x)
		}
	} else {
		v.tree.AscendGreaterOrEqual(&wire.Object{Key: from}, visit)
	}
	if !more {
		return p
	}
	last := p.Items[len(p.Items)-1].Key
	p.Next = strings.TrimPrefix(last, s.prefix) + "\x00"
	if s.all() {
		left := int64(0)
		v.tree.AscendGreaterOrEqual(&wire.Object{Key: last + "\x00"}, func(x *wire.Object) bool {
			if !strings.HasPrefix(x.Key, s.prefix) {
				return false
			}
			left++
			return true
		})
		p.Remaining = &left
	}
	return p
}
