package shelter

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"reflect"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
)

// deed is one of the requests that can be made brief.
type deed struct {
	name   string // of the resource, with its subresource
	kind   wire.Kind
	schema *wire.Schema
	empty  func() object
	plan   func(held object, contentType string, body []byte) (plan, error)
	off    atomic.Bool // an answer was wrong
}

// deeds are those of one hub.
type deeds struct{ podStatus, nodeStatus, podDeletion deed }

func newDeeds() *deeds {
	ofPod, ofNode := wire.NewSchema(reflect.TypeFor[corev1.Pod]()), wire.NewSchema(reflect.TypeFor[corev1.Node]())
	pod, node := wire.Kind{APIVersion: "v1", Kind: "Pod"}, wire.Kind{APIVersion: "v1", Kind: "Node"}
	newPod, newNode := func() object { return &corev1.Pod{} }, func() object { return &corev1.Node{} }
	return &deeds{
		podStatus:   deed{name: "pods/status", kind: pod, schema: ofPod, empty: newPod, plan: patch},
		nodeStatus:  deed{name: "nodes/status", kind: node, schema: ofNode, empty: newNode, plan: patch},
		podDeletion: deed{name: "pods", kind: pod, schema: ofPod, empty: newPod, plan: deletion},
	}
}

// of is the deed that a request may be; nil: none.
func (all *deeds) of(q *request.Request) *deed {
	if !q.IsResource || q.Odd || q.Upgrade || q.Name == "" || q.Rest != "" || q.Resource.Group != "" ||
		q.Resource.Version != "v1" {
		return nil
	}
	switch [3]string{q.Method, q.Resource.Name, q.Subresource} {
	case [3]string{http.MethodPatch, "pods", "status"}:
		return &all.podStatus
	case [3]string{http.MethodPatch, "nodes", "status"}:
		return &all.nodeStatus
	case [3]string{http.MethodDelete, "pods", ""}:
		return &all.podDeletion
	}
	return nil
}

// plain reports whether a request is as a kubelet sends it, as far as parameters and headers tell.
func plain(q *request.Request, h http.Header) bool {
	for name := range q.Query {
		if name != "fieldManager" && name != "fieldValidation" && name != "timeout" {
			return false
		}
	}
	return h.Get("Content-Encoding") == "" &&
		(q.Method == http.MethodDelete || mediaOf(h) == string(types.StrategicMergePatchType))
}

func mediaOf(h http.Header) string {
	media, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return media
}

// decode reads an object as the cloud has shown it. It fails if that has fields that are not known here.
func (d *deed) decode(raw []byte) (o object, ok bool) {
	o = d.empty()
	return o, d.schema.Unknown(raw) == "" && o.Unmarshal(raw) == nil
}

// encode writes an object as kube-apiserver does.
func (d *deed) encode(media string, o object) ([]byte, error) {
	if media == runtime.ContentTypeProtobuf {
		raw, err := o.Marshal()
		if err != nil {
			return nil, fmt.Errorf("write an answer: %w", err)
		}
		return wire.Envelope(d.kind, raw), nil
	}
	typed := o.DeepCopyObject() // the ledger has o
	typed.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(d.kind.APIVersion, d.kind.Kind))
	body, err := json.Marshal(typed)
	if err != nil {
		return nil, fmt.Errorf("write an answer: %w", err)
	}
	return append(body, '\n'), nil
}
