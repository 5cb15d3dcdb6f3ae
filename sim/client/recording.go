package client

import (
	"hash/fnv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// What happened in a stream.
const (
	OpList       = "list"        // a complete list; Items is set
	OpOpen       = "open"        // a watch was opened; Initial tells a streaming list
	OpEvent      = "event"       // Type, Item
	OpBookmark   = "bookmark"    // Version
	OpInitialEnd = "initial-end" // the bookmark that ends the initial events of a streaming list
	OpError      = "error"       // a list or watch failed, or the stream said ERROR; Code is the status code, 0 if there was none
)

// Item is one object as a client saw it.
type Item struct {
	Key, UID string
	Version  uint64
	Hash     uint64            // of the object's canonical bytes
	Labels   map[string]string // kept by a recorder of the truth only
}

// Op is one thing that happened in a stream.
type Op struct {
	At      time.Time
	What    string
	Type    watch.EventType
	Version uint64 // of the list, bookmark or event; of OpOpen: from where
	Initial bool
	Item    Item
	Items   []Item
	Code    int
	Err     string
}

// Recording is what one stream carried. It is safe for concurrent use.
type Recording struct {
	labels bool

	mu   sync.Mutex
	ops  []Op
	last uint64 // version reached
	full bool   // it had a complete state
}

// Ops returns what happened so far.
func (r *Recording) Ops() []Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ops[:len(r.ops):len(r.ops)]
}

// Synced tells whether the stream has had a complete state.
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

func (r *Recording) add(op Op) {
	op.At = time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, op)
	if op.What == OpList || op.What == OpInitialEnd {
		r.full = true
	}
	if op.What != OpOpen && op.What != OpError && r.full {
		r.last = op.Version
	}
}

// message is an object with canonical bytes.
type message interface {
	runtime.Object
	metav1.Object
	Marshal() ([]byte, error)
}

// item takes down an object. The canonical bytes are its protobuf, whatever encoding it came in.
func (r *Recording) item(obj runtime.Object) Item {
	m, ok := obj.DeepCopyObject().(message)
	if !ok {
		return Item{} // its hash is that of nothing: the judge objects
	}
	m.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	raw, err := m.Marshal()
	if err != nil {
		return Item{} // its hash is that of nothing: the judge objects
	}
	h := fnv.New64a()
	_, _ = h.Write(raw)
	version, err := wire.ParseVersion(m.GetResourceVersion())
	if err != nil {
		return Item{} // its hash is that of nothing: the judge objects
	}
	it := Item{Key: m.GetNamespace() + "/" + m.GetName(), UID: string(m.GetUID()), Version: version, Hash: h.Sum64()}
	if r.labels {
		it.Labels = m.GetLabels()
	}
	return it
}

func (r *Recording) list(l runtime.Object) {
	op := Op{What: OpList}
	var meta metav1.ListMeta
	switch l := l.(type) {
	case *discoveryv1.EndpointSliceList:
		meta = l.ListMeta
		for i := range l.Items {
			it := r.item(&l.Items[i])
			op.Items = append(op.Items, it)
		}
	case *corev1.EndpointsList:
		meta = l.ListMeta
		for i := range l.Items {
			it := r.item(&l.Items[i])
			op.Items = append(op.Items, it)
		}
	}
	op.Version, _ = wire.ParseVersion(meta.ResourceVersion)
	r.add(op)
}

func (r *Recording) event(ev watch.Event) {
	if ev.Type == watch.Error {
		r.failed(apierrors.FromObject(ev.Object))
		return
	}
	m, ok := ev.Object.(metav1.Object)
	if !ok {
		r.add(Op{What: OpError, Err: "an event that is no object"})
		return
	}
	if ev.Type == watch.Bookmark {
		version, _ := wire.ParseVersion(m.GetResourceVersion())
		what := OpBookmark
		if m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			what = OpInitialEnd
		}
		r.add(Op{What: what, Version: version})
		return
	}
	it := r.item(ev.Object)
	r.add(Op{What: OpEvent, Type: ev.Type, Version: it.Version, Item: it})
}

func (r *Recording) failed(err error) {
	op := Op{What: OpError, Err: err.Error()}
	if s, ok := err.(apierrors.APIStatus); ok {
		op.Code = int(s.Status().Code)
	}
	r.add(op)
}

func parseVersion(s string) uint64 {
	v, _ := wire.ParseVersion(s) // client-go repeats what a server sent
	return v
}
