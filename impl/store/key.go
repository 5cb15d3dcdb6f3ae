package store

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"strings"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
)

// Resource is what requests ask for.
type Resource = request.Resource

// maxKey bounds a key, in bytes: callers choose selectors and names, and the engine takes 32 KiB at most.
const maxKey = 4 << 10

// Tokens is what tokens of service accounts are kept as. No path of the API has that name.
var Tokens = Resource{Version: "v1", Name: "serviceaccounts/token"}

// Key names an object of a resource.
type Key struct{ Namespace, Name string }

func parseKey(s string) Key {
	namespace, name, _ := strings.Cut(s, "\x00")
	return Key{namespace, name}
}

func (k Key) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

func (k Key) encode() string { return k.Namespace + "\x00" + k.Name }

// Form is how the bytes of an object are written: its encoding, and whether they are all of it or a
// PartialObjectMetadata.
type Form uint8

// The forms that are kept. Tables are not: the cloud prints them, they are no objects, and who asks for one takes
// objects too.
const (
	Protobuf Form = iota
	JSON
	ProtobufMetadata
	JSONMetadata
	forms
)

func (f Form) metadata() bool { return f >= ProtobufMetadata }

// full is the form of whole objects in the same encoding.
func (f Form) full() Form { return f & 1 }

func (f Form) encoding() wire.Encoding { return wire.Encoding(f & 1) }

func (f Form) String() string {
	if f >= forms {
		return fmt.Sprintf("form %d", uint8(f))
	}
	return [...]string{"protobuf", "json", "protobuf metadata", "json metadata"}[f]
}

// Shape is what a component asks for: a list, and the watch that goes on from it. A get is one that selects a name.
type Shape struct {
	Component      string // see ComponentOf
	Resource       Resource
	Form           Form
	Namespace      string // "" is all
	Labels, Fields string // selectors, as asked
}

// One is the shape of a get.
func One(component string, r Resource, f Form, k Key) Shape {
	return Shape{Component: component, Resource: r, Form: f, Namespace: k.Namespace, Fields: "metadata.name=" + k.Name}
}

func (s Shape) encode() string {
	return strings.Join([]string{
		s.Component, s.Resource.Group, s.Resource.Version, s.Resource.Name, string(rune('0' + s.Form)), s.Namespace, s.Labels,
		s.Fields,
	}, "\x00")
}

func parseShape(key string) (s Shape, ok bool) {
	p := strings.Split(key, "\x00")
	if len(p) != 8 || len(p[4]) != 1 || p[4][0] < '0' || p[4][0] >= '0'+byte(forms) {
		return s, false
	}
	return Shape{p[0], Resource{Group: p[1], Version: p[2], Name: p[3]}, Form(p[4][0] - '0'), p[5], p[6], p[7]}, true
}

func (s Shape) validate() error {
	for name, v := range map[string]string{
		"component": s.Component, "resource": s.Resource.Name, "version": s.Resource.Version,
	} {
		if v == "" {
			return fmt.Errorf("store: a shape without a %s", name)
		}
	}
	if s.Form >= forms {
		return fmt.Errorf("store: %v: want protobuf or json, or metadata of them", s.Form)
	}
	key := s.encode()
	if len(key) > maxKey {
		return fmt.Errorf("store: a shape of %d bytes: at most %d", len(key), maxKey)
	}
	if strings.Count(key, "\x00") != 7 {
		return fmt.Errorf("store: a zero byte in a shape of %v", s.Resource)
	}
	return nil
}

// id is what its members are filed under: a hash of the shape. A shape that gets the id of another one finds members
// that do not add up, and counts as not known.
func (s Shape) id() string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s.encode()))
	return string(binary.BigEndian.AppendUint64(nil, h.Sum64()))
}

// scope tells which keys the shape has all of, if it selects by nothing but namespace and name. Only such a shape
// proves that an object does not exist.
func (s Shape) scope() (namespace, name string, ok bool) {
	if s.Labels != "" {
		return "", "", false
	}
	if s.Fields == "" {
		return s.Namespace, "", true
	}
	sel, err := fields.ParseSelector(s.Fields)
	if err != nil {
		return "", "", false
	}
	namespace = s.Namespace
	for _, r := range sel.Requirements() {
		switch {
		case r.Operator != "=" && r.Operator != "==":
			return "", "", false
		case r.Field == "metadata.name" && name == "":
			name = r.Value
		case r.Field == "metadata.namespace" && (namespace == "" || namespace == r.Value):
			namespace = r.Value
		default:
			return "", "", false
		}
	}
	return namespace, name, true
}

// ComponentOf names who sends a request: the first word of its User-Agent, whom the cloud has authenticated if that is
// not the node itself, and in whose name it asks, if it asks in another's. Components of all kinds are built without a
// name of their own. Shapes of one component stand side by side.
func ComponentOf(userAgent, owner, as string) string {
	name, _, _ := strings.Cut(userAgent, "/")
	name, _, _ = strings.Cut(name, " ")
	name = strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '_'
		}
		return r
	}, name)
	if name = name[:min(len(name), 64)]; name == "" {
		name = "unnamed"
	}
	word := strings.NewReplacer("\x00", "_", " ", "_")
	if owner != "" || as != "" {
		name += " " + word.Replace(owner[:min(len(owner), 256)])
	}
	if as != "" {
		name += " " + word.Replace(as[:min(len(as), 256)])
	}
	return name
}

// Owner is whom the cloud has authenticated for a component, "" for the node itself. What a caller can choose is no
// part of it, so bounds go by it.
func Owner(component string) string {
	_, rest, _ := strings.Cut(component, " ")
	owner, _, _ := strings.Cut(rest, " ")
	return owner
}
