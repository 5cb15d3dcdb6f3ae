package writes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// message is a compiled type of the API.
type message interface {
	runtime.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// kind is a kind of objects that are written here.
type kind struct {
	wire.Kind
	new func() message
}

func nodeKind() kind {
	return kind{wire.Kind{APIVersion: "v1", Kind: "Node"}, func() message { return &corev1.Node{} }}
}

func podKind() kind {
	return kind{wire.Kind{APIVersion: "v1", Kind: "Pod"}, func() message { return &corev1.Pod{} }}
}

func eventKind() kind {
	return kind{wire.Kind{APIVersion: "v1", Kind: "Event"}, func() message { return &corev1.Event{} }}
}

func groupEventKind() kind {
	return kind{wire.Kind{APIVersion: "events.k8s.io/v1", Kind: "Event"}, func() message { return &eventsv1.Event{} }}
}

func tokenKind() kind {
	return kind{
		wire.Kind{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"},
		func() message { return &authenticationv1.TokenRequest{} },
	}
}

// toJSON gives a bare protobuf message as JSON that declares its kind.
func (k kind) toJSON(raw []byte) ([]byte, error) {
	m := k.new()
	if err := m.Unmarshal(raw); err != nil {
		return nil, fmt.Errorf("decode a %s: %w", k.Kind.Kind, err)
	}
	b, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return k.declared(b)
}

// toProtobuf gives JSON as a bare message.
func (k kind) toProtobuf(object []byte) ([]byte, error) {
	m := k.new()
	if err := json.Unmarshal(object, m); err != nil {
		return nil, fmt.Errorf("decode a %s: %w", k.Kind.Kind, err)
	}
	return m.Marshal()
}

// declared gives an object in JSON with its kind.
func (k kind) declared(object []byte) ([]byte, error) {
	d, err := parse(object)
	if err != nil {
		return nil, err
	}
	d.set("apiVersion", k.APIVersion)
	d.set("kind", k.Kind.Kind)
	return d.bytes()
}

// document is an object in JSON of which only the top is decoded. All else stays the bytes it is.
type document map[string]json.RawMessage

func parse(b []byte) (document, error) {
	var d document
	if err := json.Unmarshal(b, &d); err != nil {
		return nil, err
	}
	if d == nil {
		return nil, fmt.Errorf("null is no object")
	}
	return d, nil
}

func (d document) bytes() ([]byte, error) { return json.Marshal(d) }

func (d document) set(field, value string) {
	b, _ := json.Marshal(value) // a string always can be
	d[field] = b
}

// text is a field that is a string, "" if it is not.
func (d document) text(field string) (s string) {
	_ = json.Unmarshal(d[field], &s)
	return s
}

// in is a field that is an object; an empty one if it is not there.
func (d document) in(field string) document {
	inner := document{}
	_ = json.Unmarshal(d[field], &inner)
	if inner == nil {
		return document{}
	}
	return inner
}

// status is that of an object, or {} if it has none.
func (d document) status() json.RawMessage {
	if b, ok := d["status"]; ok && string(b) != "null" {
		return b
	}
	return json.RawMessage("{}")
}

// with gives a document with another value of a field, which is removed if the value is empty.
func (d document) with(field string, value json.RawMessage) document {
	out := make(document, len(d)+1)
	for k, v := range d {
		out[k] = v
	}
	if len(value) == 0 {
		delete(out, field)
	} else {
		out[field] = value
	}
	return out
}

// same reports whether two values of JSON say the same. Nothing, null and an empty object do.
func same(a, b json.RawMessage) bool {
	return bytes.Equal(a, b) || reflect.DeepEqual(value(a), value(b))
}

func value(b json.RawMessage) any {
	if len(b) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return string(b)
	}
	if m, ok := v.(map[string]any); ok && len(m) == 0 {
		return nil
	}
	return v
}
