package writes

import (
	"encoding/json"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/store/queue"
)

// event takes an Event, or a patch of one that waits.
func (w *waiting) event(r *write, k kind, as queue.Kind) (*answer, *apierrors.StatusError) {
	if r.verb == "patch" {
		return w.patchEvent(r, k, as)
	}
	object, refused := decode(k, r.contentType, r.body)
	if refused != nil {
		return nil, refused
	}
	d, err := parse(object)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	metadata := d.in("metadata").with("resourceVersion", nil).with("uid", nil).with("creationTimestamp", nil)
	r.name = metadata.text("name")
	switch namespace := metadata.text("namespace"); {
	case r.name == "":
		return nil, refusal(r) // nobody but kube-apiserver draws names
	case namespace != "" && namespace != r.namespace:
		return nil,
			apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	metadata.set("namespace", r.namespace)
	t := queue.Target{Kind: as, Namespace: r.namespace, Name: r.name}
	e, waits := w.queue.Lookup(t)
	if waits {
		return nil, apierrors.NewAlreadyExists(groupResource(r.target), r.name)
	}
	if d, refused = w.putEvent(r, t, e, d, metadata); refused != nil {
		return nil, refused
	}
	a, refused := found(k, d)
	if refused == nil {
		a.code = http.StatusCreated
	}
	return a, refused
}

// patchEvent changes an Event that waits. Of one that does not, a recorder has told the cloud before; it has all of it
// at hand, and creates it again if it hears that there is none (k8s.io/client-go/tools/record and tools/events). That
// Event, of the same name, is queued, and when it is pushed the cloud's is brought up to its count.
func (w *waiting) patchEvent(r *write, k kind, as queue.Kind) (*answer, *apierrors.StatusError) {
	t := queue.Target{Kind: as, Namespace: r.namespace, Name: r.name}
	e, waits := w.queue.Lookup(t)
	if !waits {
		return nil, notFound(r.target)
	}
	object, refused := apply(k, e.Ours, r.contentType, r.body)
	if refused != nil {
		return nil, refused
	}
	before, err := parse(e.Ours)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	d, err := parse(object)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	// The client may have seen versions of before, which say nothing here.
	metadata := d.in("metadata").with("resourceVersion", nil)
	if refused := sameObject(r, before.in("metadata"), metadata); refused != nil {
		return nil, refused
	}
	if d, refused = w.putEvent(r, t, e, d, metadata); refused != nil {
		return nil, refused
	}
	return found(k, d)
}

// putEvent queues an Event, and gives it as the cloud would.
func (w *waiting) putEvent(r *write, t queue.Target, seen *queue.Entry, d, metadata document) (
	document, *apierrors.StatusError) {
	b, err := metadata.bytes()
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	d = d.with("metadata", b)
	ours, err := d.bytes()
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if refused := w.put(r, queue.Write{Target: t, Ours: ours}, seen); refused != nil {
		return nil, refused
	}
	created, _ := json.Marshal(metav1.NewTime(w.Clock.Now()))
	if b, err = metadata.with("creationTimestamp", created).bytes(); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return d.with("metadata", b), nil
}
