package writes

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weir-edge/weir/impl/store"
	"github.com/weir-edge/weir/impl/store/queue"
)

// known is an object as it is now.
type known struct {
	cloud document // as the cloud last showed it
	mine  document // with what waits for the cloud
	uid   string
	waits map[queue.Kind]*queue.Entry
}

// known reads an object from the store.
func (w *waiting) known(t target, k kind) (*known, *apierrors.StatusError) {
	for {
		// The store is read after the queue: what is pushed is shown to the store before its entry goes.
		uid := ""
		if a := w.Store.Get(component, t.Resource, store.Protobuf, t.key()); a.Knowledge == store.Known {
			uid = a.Object.UID
		}
		entries := w.entries(t.Resource, t.key(), uid)
		a := w.Store.Get(component, t.Resource, store.Protobuf, t.key())
		switch {
		case a.Knowledge == store.KnownAbsent:
			return nil, notFound(t)
		case a.Knowledge == store.Unknown:
			return nil, unavailable(fmt.Sprintf("%v is not known on this node", t))
		case a.Object.UID != uid:
			continue
		}
		o, err := read(k, a, entries)
		if err != nil {
			return nil, apierrors.NewInternalError(fmt.Errorf("read the stored %s: %w", k.Kind.Kind, err))
		}
		return o, nil
	}
}

func read(k kind, a store.Answer, entries []*queue.Entry) (o *known, err error) {
	b := a.Object.Raw
	if a.Form == store.Protobuf {
		if b, err = k.toJSON(b); err != nil {
			return nil, err
		}
	}
	o = &known{uid: a.Object.UID, waits: map[queue.Kind]*queue.Entry{}}
	if o.cloud, err = parse(b); err != nil {
		return nil, err
	}
	for _, e := range entries {
		o.waits[e.Kind] = e
		if b, err = e.With(b); err != nil {
			return nil, err
		}
	}
	o.mine, err = parse(b)
	return o, err
}

// register answers the creation of a Node: the kubelet goes on to its status only if it hears that there is one.
func (w *waiting) register(r *write) *apierrors.StatusError {
	object, err := decode(nodeKind(), r.contentType, r.body)
	if err != nil {
		return err
	}
	d, _ := parse(object)
	r.name = d.in("metadata").text("name")
	if r.name != w.Node {
		return refusal(r)
	}
	if _, err := w.known(r.target, nodeKind()); err != nil {
		return unavailable(fmt.Sprintf("node %q cannot be registered: the cloud has not shown it to this hub before", r.name))
	}
	return apierrors.NewAlreadyExists(groupResource(r.target), r.name)
}

// node takes a write of the Node or of its status. Both can change labels and annotations, too; that kubelets do
// through the status.
func (w *waiting) node(r *write) (*answer, *apierrors.StatusError) {
	if r.name != w.Node {
		return nil, forbidden(r.target, fmt.Sprintf("node %q is not allowed to modify node %q", w.Node, r.name))
	}
	o, err := w.known(r.target, nodeKind())
	if err != nil {
		return nil, err
	}
	now, err := changed(r, nodeKind(), o)
	if err != nil {
		return nil, err
	}
	out := o.mine
	if r.sub == "status" {
		if out, err = w.putStatus(r, queue.Target{Kind: queue.NodeStatus, Name: r.name, UID: o.uid}, o, now,
			out); err != nil {
			return nil, err
		}
	} else if !same(o.mine["spec"], now["spec"]) {
		return nil, refusal(r)
	}
	if mine, theirs := labelling(o.mine), labelling(now); !same(mine, theirs) {
		t := queue.Target{Kind: queue.NodeMetadata, Name: r.name, UID: o.uid}
		if err := w.put(r, queue.Write{Target: t, Base: labelling(o.cloud), Ours: theirs}, o.waits[t.Kind]); err != nil {
			return nil, err
		}
		metadata := now.in("metadata")
		m := o.mine.in("metadata").with("labels", metadata["labels"]).with("annotations", metadata["annotations"])
		b, _ := m.bytes() // of parts that were parsed
		out = out.with("metadata", b)
	}
	return found(nodeKind(), out)
}

// podStatus takes a write of the status of a pod of this node.
func (w *waiting) podStatus(r *write) (*answer, *apierrors.StatusError) {
	o, err := w.known(r.target, podKind())
	if err != nil {
		return nil, err
	}
	if on := o.cloud.in("spec").text("nodeName"); on != w.Node {
		return nil,
			forbidden(r.target, fmt.Sprintf("node %q can only update pod status for pods with spec.nodeName set to itself",
				w.Node))
	}
	now, err := changed(r, podKind(), o)
	if err != nil {
		return nil, err
	}
	if !same(labelling(o.mine), labelling(now)) {
		return nil, refusal(r)
	}
	out, err := w.putStatus(r, queue.Target{Kind: queue.PodStatus, Namespace: r.namespace, Name: r.name, UID: o.uid}, o,
		now, o.mine)
	if err != nil {
		return nil, err
	}
	return found(podKind(), out)
}

// putStatus queues the status of an object, and gives the object with it.
func (w *waiting) putStatus(r *write, t queue.Target, o *known, now, out document) (document, *apierrors.StatusError) {
	if same(o.mine["status"], now["status"]) {
		return out, nil
	}
	if err := w.put(r, queue.Write{Target: t, Base: o.cloud.status(), Ours: now.status()}, o.waits[t.Kind]); err != nil {
		return nil, err
	}
	return out.with("status", now.status()), nil
}

// changed is what an object would be after a write. What kube-apiserver would not take is refused, and what cannot wait
// is, too.
func changed(r *write, k kind, o *known) (document, *apierrors.StatusError) {
	mine, err := o.mine.bytes()
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	var out []byte
	var refused *apierrors.StatusError
	if r.verb == "patch" {
		out, refused = apply(k, mine, r.contentType, r.body)
	} else {
		out, refused = decode(k, r.contentType, r.body)
	}
	if refused != nil {
		return nil, refused
	}
	now, err := parse(out)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return now, sameObject(r, o.mine.in("metadata"), now.in("metadata"))
}

// sameObject refuses a write that is about another object, was made from another version of it, or changes what cannot
// wait.
func sameObject(r *write, before, after document) *apierrors.StatusError {
	all := maps.Clone(before)
	maps.Copy(all, after)
	for field := range all {
		b, a := before[field], after[field]
		if same(b, a) {
			continue
		}
		switch field {
		case "labels", "annotations": // the caller sees to them
		case "managedFields", "generation", "creationTimestamp", "selfLink": // kube-apiserver's alone
		case "uid", "resourceVersion":
			if after.text(field) != "" {
				return conflict(r.target, fmt.Sprintf("Precondition failed: %s in precondition: %s, %s in object meta: %s", field,
					after.text(field), field, before.text(field)))
			}
		case "name", "namespace":
			return apierrors.NewBadRequest(fmt.Sprintf("the %s of the object (%s) does not match the %s on the URL (%s)", field,
				after.text(field), field, before.text(field)))
		default:
			return refusal(r)
		}
	}
	return nil
}

// labelling is what an entry of kind NodeMetadata has of an object.
func labelling(object document) json.RawMessage {
	metadata, out := object.in("metadata"), document{}
	for _, field := range []string{"labels", "annotations"} {
		if b, ok := metadata[field]; ok {
			out[field] = b
		}
	}
	b, _ := out.bytes()
	return b
}

func forbidden(t target, why string) *apierrors.StatusError {
	return apierrors.NewForbidden(groupResource(t), t.name, fmt.Errorf("%s", why))
}

func found(k kind, object document) (*answer, *apierrors.StatusError) {
	b, err := object.bytes()
	if err == nil {
		b, err = k.declared(b)
	}
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return &answer{http.StatusOK, k, b}, nil
}
