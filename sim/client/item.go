package client

import (
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// message is an object with canonical bytes.
type message interface {
	runtime.Object
	metav1.Object
	Marshal() ([]byte, error)
}

// newItem takes down an object, which nobody else may use meanwhile.
//
// The hash is that of its protobuf, or of a custom resource's JSON, whatever encoding it came in, without the
// resourceVersion: an object that leaves a selector comes with its previous content under a new version, and has to
// have the previous hash then.
func newItem(obj runtime.Object, labels bool) (Item, error) {
	m, ok := obj.(message)
	if !ok {
		return Item{}, fmt.Errorf("%T where an object was due", obj)
	}
	text := m.GetResourceVersion()
	version, err := wire.ParseVersion(text)
	if err != nil {
		return Item{}, err
	}
	m.SetResourceVersion("")
	raw, err := m.Marshal()
	m.SetResourceVersion(text)
	if err != nil {
		return Item{}, err
	}
	h := fnv.New64a()
	_, _ = h.Write(raw)
	it := Item{Key: m.GetNamespace() + "/" + m.GetName(), UID: string(m.GetUID()), Version: version, Hash: h.Sum64()}
	if labels {
		it.Labels, it.Size = m.GetLabels(), len(raw)
	}
	if version == 0 || it.UID == "" || m.GetName() == "" {
		return it, fmt.Errorf("object %q with uid %q at %q: has to have all three", it.Key, it.UID, text)
	}
	return it, nil
}

// newItems takes down a list.
func newItems(list runtime.Object, labels bool) (items []Item, err error) {
	add := func(obj runtime.Object) {
		it, e := newItem(obj, labels)
		if e != nil && err == nil {
			err = e
		}
		items = append(items, it)
	}
	switch l := list.(type) {
	case *discoveryv1.EndpointSliceList:
		for i := range l.Items {
			add(&l.Items[i])
		}
	case *corev1.EndpointsList:
		for i := range l.Items {
			add(&l.Items[i])
		}
	case *WidgetList:
		for i := range l.Items {
			add(&l.Items[i])
		}
	default:
		return nil, fmt.Errorf("%T where a list was due", list)
	}
	return items, err
}
