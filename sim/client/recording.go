package client

import (
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// Recording is what one stream carried. It is safe for concurrent use.
type Recording struct {
	labels bool
	pages  []Item // of a list that is not complete

	mu  sync.Mutex
	ops []Op
	progress
}

// progress is how far a stream has come.
type progress struct {
	last     uint64    // version reached
	full     bool      // it had a complete state
	initial  bool      // initial events of a streaming list are under way
	openedAt time.Time // when a list or watch last came about
	broken   bool      // since then it has ended
}

// Opened is when a list or watch last came about; ok is false if it has ended since, and the client waits before the
// next.
func (r *Recording) Opened() (at time.Time, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.openedAt, !r.broken
}

// Reached is when the stream, complete by then, first showed a version or a later one after a time; ok is false if it
// has not.
func (r *Recording) Reached(version uint64, after time.Time) (at time.Time, ok bool) {
	ops := r.Ops()
	for i := len(ops) - 1; i >= 0 && !ops[i].At.Before(after); i-- {
		switch ops[i].What {
		case OpList, OpInitialEnd, OpEvent, OpBookmark:
			if ops[i].Version >= version {
				at, ok = ops[i].At, true
			}
		}
	}
	return at, ok && r.Version() >= version
}

// Ops returns what happened so far.
func (r *Recording) Ops() []Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ops[:len(r.ops):len(r.ops)]
}

// Synced reports whether the stream has had a complete state.
func (r *Recording) Synced() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.full
}

// Version is the newest version that the stream showed.
func (r *Recording) Version() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// add takes down op. Until the next one is added, undo removes it.
func (r *Recording) add(op Op) (undo func()) {
	op.At = time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	n, before := len(r.ops), r.progress
	r.ops = append(r.ops, op)
	r.broken = op.What == OpError || op.What == OpClose
	switch op.What {
	case OpOpen:
		r.initial, r.openedAt = op.Initial, op.At
	case OpList, OpInitialEnd:
		r.full, r.initial, r.last, r.openedAt = true, false, op.Version, op.At
	case OpEvent, OpBookmark:
		if r.full && !r.initial { // initial events are in no order
			r.last = op.Version
		}
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.ops) == n+1 {
			// On a copy: who asked for Ops may still read the old array.
			r.ops, r.progress = append(make([]Op, 0, n+1), r.ops[:n]...), before
		}
	}
}

// list takes down a list, or a page of one.
func (r *Recording) list(l runtime.Object, o metav1.ListOptions) {
	items, err := newItems(l, r.labels)
	if err != nil {
		r.malformed(err)
		return
	}
	m, err := meta.ListAccessor(l)
	if err != nil {
		r.malformed(err)
		return
	}
	version, err := wire.ParseVersion(m.GetResourceVersion())
	if err != nil {
		r.malformed(err)
		return
	}
	if o.Continue != "" {
		items = append(r.pages, items...)
	}
	if r.pages = nil; m.GetContinue() != "" {
		r.pages = items
		return
	}
	r.add(Op{What: OpList, Version: version, Items: items, Options: query(o)})
}

// opened takes down that a watch was opened.
func (r *Recording) opened(o metav1.ListOptions) {
	version, err := wire.ParseVersion(o.ResourceVersion)
	if err != nil {
		r.malformed(err) // a client repeats what the server told it
		return
	}
	r.add(Op{
		What: OpOpen, Version: version, Initial: o.SendInitialEvents != nil && *o.SendInitialEvents, Options: query(o),
	})
}

// event takes down what a watch brought.
func (r *Recording) event(ev watch.Event) (undo func()) {
	switch ev.Type {
	case watch.Error:
		return r.failed(apierrors.FromObject(ev.Object))
	case watch.Bookmark:
		return r.bookmark(ev.Object)
	case watch.Added, watch.Modified, watch.Deleted:
		it, err := newItem(ev.Object, r.labels)
		if err != nil {
			return r.malformed(err)
		}
		return r.add(Op{What: OpEvent, Type: ev.Type, Version: it.Version, Item: it})
	}
	return r.malformed(errors.New("an event of type " + string(ev.Type)))
}

func (r *Recording) bookmark(obj runtime.Object) (undo func()) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return r.malformed(err)
	}
	version, err := wire.ParseVersion(m.GetResourceVersion())
	if err == nil && version == 0 {
		err = errors.New("a bookmark without resourceVersion")
	}
	if err != nil {
		return r.malformed(err)
	}
	if m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
		return r.add(Op{What: OpInitialEnd, Version: version})
	}
	return r.add(Op{What: OpBookmark, Version: version})
}

// failed takes down the error of a list or watch.
func (r *Recording) failed(err error) (undo func()) {
	op := Op{What: OpError, Err: err.Error()}
	var s apierrors.APIStatus
	if errors.As(err, &s) {
		op.Code = int(s.Status().Code)
	}
	return r.add(op)
}

// malformed takes down that something came which is not what it should be.
func (r *Recording) malformed(err error) (undo func()) {
	return r.add(Op{What: OpError, Err: err.Error(), Malformed: true})
}
