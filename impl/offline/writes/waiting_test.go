package writes

import (
	"encoding/json"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/store"
)

// TestPods: the pods of the node as its kubelet has listed them, in whatever encoding.
func TestPods(t *testing.T) {
	for _, form := range []store.Form{store.Protobuf, store.JSON} {
		b := newBed(t, clock.RealClock{})
		names := func() (all []string) {
			for pod := range b.writes.Pods {
				all = append(all, pod.Name+" "+pod.Status.PodIP)
			}
			return all
		}
		if got := names(); len(got) > 0 {
			t.Errorf("%v of nothing", got)
		}
		l, err := b.store.List(store.Shape{
			Component: component, Resource: pods(), Form: form, Fields: "spec.nodeName=" + nodeName,
		}, wire.Kind{APIVersion: "v1", Kind: "Pod"})
		check(t, err)
		for _, name := range []string{"a", "b"} {
			pod := &corev1.Pod{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: "7"},
				Status:     corev1.PodStatus{PodIP: "10.0.0.1"},
			}
			raw, err := pod.Marshal()
			if form == store.JSON {
				raw, err = json.Marshal(pod)
			}
			check(t, err)
			o, err := wire.ParseObject(wire.Encoding(form), raw)
			check(t, err)
			l.Add(o)
		}
		l.Commit(7)
		l.Close()
		if got := names(); !slices.Equal(got, []string{"a 10.0.0.1", "b 10.0.0.1"}) {
			t.Errorf("%v: %v", form, got)
		}
	}
}
