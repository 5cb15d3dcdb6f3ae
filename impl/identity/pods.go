package identity

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-edge/weir/impl/store"
)

// Pod is what must be known of a pod to judge tokens that are bound to it.
type Pod struct {
	UID, Node string
	Gone      time.Time // when its deletion is over; zero if it is not deleted
}

// Pods gives what is known of a pod, ok false if nothing is.
type Pods func(namespace, name string) (p Pod, ok bool)

// PodsOf reads pods from the store. They are there because the kubelet watches its own.
func PodsOf(s *store.Store) Pods {
	return func(namespace, name string) (p Pod, ok bool) {
		a := s.Get("kubelet", store.Resource{Version: "v1", Name: "pods"}, store.Protobuf,
			store.Key{Namespace: namespace, Name: name})
		if a.Knowledge != store.Known {
			return p, false
		}
		var pod corev1.Pod
		var err error
		switch a.Form {
		case store.Protobuf:
			err = pod.Unmarshal(a.Object.Raw)
		case store.JSON:
			err = json.Unmarshal(a.Object.Raw, &pod)
		default:
			err = fmt.Errorf("no pod in form %v", a.Form)
		}
		if err != nil {
			return p, false
		}
		p = Pod{UID: string(pod.UID), Node: pod.Spec.NodeName}
		if pod.DeletionTimestamp != nil {
			p.Gone = pod.DeletionTimestamp.Time
		}
		return p, true
	}
}
