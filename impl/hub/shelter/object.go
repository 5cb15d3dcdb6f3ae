package shelter

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// object is a Pod or a Node.
type object interface {
	runtime.Object
	metav1.Object
	Marshal() ([]byte, error)
	Unmarshal(raw []byte) error
}

// metadataOf reads an answer, and its version; 0 if it is no object's metadata.
func metadataOf(media string, body []byte) (m metav1.PartialObjectMetadata, version uint64) {
	kind := ""
	if media == runtime.ContentTypeJSON {
		if json.Unmarshal(body, &m) == nil {
			kind = m.Kind
		}
	} else if k, raw, err := wire.SplitEnvelope(body); err == nil && m.Unmarshal(raw) == nil {
		kind = k.Kind
	}
	if kind != "PartialObjectMetadata" {
		return m, 0
	}
	version, _ = wire.ParseVersion(m.ResourceVersion) // 0 if it is none
	return m, version
}

// with is an object with other metadata.
func with(o object, m metav1.ObjectMeta) object {
	o = o.DeepCopyObject().(object)
	switch o := o.(type) {
	case *corev1.Pod:
		o.ObjectMeta = m
	case *corev1.Node:
		o.ObjectMeta = m
	}
	return o
}

// difference names the first field in which two objects are not the same, "" if there is none. Their managedFields are
// left out.
func difference(a, b object) string {
	var both [2]map[string]any
	for i, o := range []object{a, b} {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return err.Error()
		}
		for _, name := range []string{"kind", "apiVersion"} {
			delete(fields, name)
		}
		if m, ok := fields["metadata"].(map[string]any); ok {
			delete(m, "managedFields")
		}
		both[i] = fields
	}
	return differs(both[0], both[1], "")
}

func differs(a, b any, at string) string {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok {
			return at
		}
		for _, name := range slices.Sorted(union(a, b)) {
			if found := differs(a[name], b[name], at+"."+name); found != "" {
				return found
			}
		}
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return at
		}
		for i := range a {
			if found := differs(a[i], b[i], at+"["+strconv.Itoa(i)+"]"); found != "" {
				return found
			}
		}
	default:
		if !reflect.DeepEqual(a, b) {
			return at
		}
	}
	return ""
}

// union are the names of the fields of both.
func union(a, b map[string]any) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for name := range a {
			if !yield(name) {
				return
			}
		}
		for name := range b {
			if _, both := a[name]; !both && !yield(name) {
				return
			}
		}
	}
}
