package writes

import (
	"encoding/json"
	"errors"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/store"
	"github.com/weir-edge/weir/impl/store/queue"
)

// Numbers of fields of Node and Pod, and of ObjectMeta (generated.proto of k8s.io/api/core/v1 and
// k8s.io/apimachinery/pkg/apis/meta/v1).
const (
	fieldMetadata   = 1
	fieldStatus     = 3
	metaLabels      = 11
	metaAnnotations = 12
)

// waiting is what waits for the cloud, and what it is made from.
type waiting struct {
	Config
	queue   *queue.Queue
	written chan struct{} // wakes who drains
}

// entries are what waits of an object of the cloud.
func (w *waiting) entries(r store.Resource, k store.Key, uid string) (all []*queue.Entry) {
	for _, kind := range kindsOf(r) {
		if e, ok := w.queue.Lookup(queue.Target{Kind: kind, Namespace: k.Namespace, Name: k.Name, UID: uid}); ok {
			all = append(all, e)
		}
	}
	return all
}

// kindsOf are the kinds of entries that are about objects of a resource.
func kindsOf(r store.Resource) []queue.Kind {
	switch r {
	case nodes():
		return []queue.Kind{queue.NodeStatus, queue.NodeMetadata}
	case pods():
		return []queue.Kind{queue.PodStatus}
	case events():
		return []queue.Kind{queue.Event}
	case groupEvents():
		return []queue.Kind{queue.GroupEvent}
	}
	return nil
}

// waits reports whether the cloud has yet to get something that was written to the same object. To send the cloud a
// later write first would have the earlier one undo it.
func (w *waiting) waits(r *write) bool {
	if r.verb == "create" {
		return false
	}
	return slices.ContainsFunc(kindsOf(r.Resource), func(k queue.Kind) bool {
		return w.queue.Waits(k, r.namespace, r.name)
	})
}

// put queues a write, durably. seen is the entry that it was made from.
func (w *waiting) put(r *write, q queue.Write, seen *queue.Entry) *apierrors.StatusError {
	if err := w.queue.PutAfter(q, seen); err != nil {
		r.again = errors.Is(err, queue.ErrMoved)
		return notQueued(err)
	}
	poke(w.written)
	w.Queued()
	return nil
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Overlay gives an object of the store as the clients of this node are to see it: with what waits for the cloud, under
// the version that the cloud gave it. It is cheap if nothing waits. Only what is replaced is decoded, so no field is
// lost.
func (w *waiting) Overlay(r store.Resource, f store.Form, o *wire.Object) *wire.Object {
	if w.queue.Len() == 0 {
		return o
	}
	for _, e := range w.entries(r, store.Key{Namespace: o.Namespace, Name: o.Name}, o.UID) {
		raw, err := overlaid(f, o.Raw, e)
		if err == nil && raw != nil {
			var with *wire.Object
			if with, err = wire.ParseObject(wire.Encoding(f&1), raw); err == nil {
				o = with
			}
		}
		if err != nil {
			w.Logger.Error("what waits for the cloud cannot be shown in the object", "what", e.Target.String(), "err", err)
		}
	}
	return o
}

// PodStatuses walks over the statuses of pods that wait for the cloud, each with its pod as the cloud last showed it.
func (w *waiting) PodStatuses(yield func(*corev1.Pod, *corev1.PodStatus) bool) {
	for _, e := range w.queue.Entries() {
		if e.Kind != queue.PodStatus {
			continue
		}
		a := w.Store.Get(component, pods(), store.Protobuf, store.Key{Namespace: e.Namespace, Name: e.Name})
		if a.Knowledge != store.Known || a.Object.UID != e.UID {
			continue
		}
		pod, err := podOf(a.Form, a.Object.Raw)
		var status corev1.PodStatus
		if err = errors.Join(err, json.Unmarshal(e.Ours, &status)); err != nil {
			w.Logger.Error("what waits for the cloud cannot be told to the pool", "what", e.Target.String(), "err", err)
		} else if !yield(pod, &status) {
			return
		}
	}
}

// Pods walks over the pods of this node as the cloud last showed them: to its kubelet, or in the answer to what waited,
// which comes in protobuf.
func (w *waiting) Pods(yield func(*corev1.Pod) bool) {
	c, ok := w.Store.Read(store.Shape{
		Component: component, Resource: pods(), Form: store.Protobuf, Fields: "spec.nodeName=" + w.Node,
	})
	if !ok {
		return
	}
	for _, k := range c.Keys {
		f := store.Protobuf
		if w.Store.Version(pods(), k, store.JSON) > w.Store.Version(pods(), k, f) {
			f = store.JSON
		}
		a := w.Store.Get(component, pods(), f, k)
		if a.Knowledge != store.Known {
			continue
		}
		if pod, err := podOf(a.Form, a.Object.Raw); err == nil && !yield(pod) {
			return
		}
	}
}

func podOf(f store.Form, raw []byte) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if f == store.JSON {
		return pod, json.Unmarshal(raw, pod)
	}
	return pod, pod.Unmarshal(raw)
}

// Left counts the entries that the cloud has by now, or that are void.
func (w *waiting) Left() uint64 { return w.queue.Left() }

// overlaid gives an object with an entry; nil if it has nothing of that.
func overlaid(f store.Form, raw []byte, e *queue.Entry) ([]byte, error) {
	status := e.Kind != queue.NodeMetadata
	switch {
	case status && (f == store.ProtobufMetadata || f == store.JSONMetadata):
		return nil, nil
	case f == store.JSON || f == store.JSONMetadata:
		return e.With(raw)
	case status:
		b, err := statusMessage(e)
		if err != nil {
			return nil, err
		}
		return splice(raw, fieldStatus, b)
	}
	return labelled(raw, e.Ours)
}

// statusMessage is the status that an entry has, as protobuf.
func statusMessage(e *queue.Entry) ([]byte, error) {
	var m interface{ Marshal() ([]byte, error) } = &corev1.PodStatus{}
	if e.Kind == queue.NodeStatus {
		m = &corev1.NodeStatus{}
	}
	if err := json.Unmarshal(e.Ours, m); err != nil {
		return nil, err
	}
	return m.Marshal()
}

// labelled gives an object with other labels and annotations.
func labelled(raw, ours []byte) ([]byte, error) {
	var part metav1.ObjectMeta
	if err := json.Unmarshal(ours, &part); err != nil {
		return nil, err
	}
	partial, err := part.Marshal() // has a creationTimestamp in any case
	if err != nil {
		return nil, err
	}
	label := func(num protowire.Number) bool { return num == metaLabels || num == metaAnnotations }
	meta, err := pick([]byte(wire.Path(raw, fieldMetadata)), func(num protowire.Number) bool { return !label(num) })
	if err != nil {
		return nil, err
	}
	labels, err := pick(partial, label)
	if err != nil {
		return nil, err
	}
	return splice(raw, fieldMetadata, append(meta, labels...))
}

// splice replaces a field of a bare message. All others stay the bytes they are.
func splice(raw []byte, field protowire.Number, value []byte) ([]byte, error) {
	out, err := pick(raw, func(num protowire.Number) bool { return num != field })
	if err != nil {
		return nil, err
	}
	out = protowire.AppendTag(out, field, protowire.BytesType)
	return protowire.AppendBytes(out, value), nil
}

// pick gives a bare message with some of its fields.
func pick(raw []byte, want func(protowire.Number) bool) ([]byte, error) {
	return wire.Rebuild(raw, func(out []byte, num protowire.Number, _, whole []byte) ([]byte, error) {
		if want(num) {
			out = append(out, whole...)
		}
		return out, nil
	})
}
