package relay

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// Resource names one Kubernetes resource that a relay holds.
type Resource struct {
	Group      string // "" is the core group
	Version    string
	Resource   string // plural, as in URLs
	Kind       string
	ListKind   string // of its lists; "": Kind with List behind it. The definition of a custom resource may say otherwise
	Singular   string
	ShortNames []string
	Namespaced bool

	encoding wire.Encoding
	builtin  *Builtin       // nil: a custom resource
	compiled func() Message // nil: there is no compiled type
}

// ParseResource reads "resource.version.group", as in "endpointslices.v1.discovery.k8s.io" and, for the core
// group, "endpoints.v1." (the form of schema.ParseResourceArg). Resources that are not built into Kubernetes
// need their kind: "widgets.v1.example.com=Widget"; a cluster-scoped one ends in "!": "zones.v1.example.com=Zone!".
func ParseResource(s string) (Resource, error) {
	name, kind, custom := strings.Cut(s, "=")
	parts := strings.SplitN(name, ".", 3)
	if len(parts) < 2 || parts[0] == "" || parts[1] == "" || custom && kind == "" {
		return Resource{},
			fmt.Errorf("resource %q: want resource.version.group, e.g. endpointslices.v1.discovery.k8s.io or endpoints.v1., "+
				"and =Kind behind a custom resource", s)
	}
	r := Resource{Resource: parts[0], Version: parts[1], Namespaced: true}
	if len(parts) == 3 {
		r.Group = parts[2]
	}
	if r.Group == "" && r.Resource == "secrets" {
		return Resource{},
			fmt.Errorf("resource %q: Secrets are not for a pool, since each of its nodes may read all that the pool has; "+
				"they stay with the nodes whose pods use them", s)
	}
	if b := FindBuiltin(r.Group, r.Version, r.Resource); b != nil {
		r.Kind, r.Singular, r.ShortNames, r.Namespaced = b.Kind, cmp.Or(b.Singular, strings.ToLower(b.Kind)), b.Short,
			!b.ClusterScoped
		r.builtin, r.compiled, r.encoding = b, b.Type(), wire.Protobuf
		if custom && strings.TrimSuffix(kind, "!") != r.Kind {
			return Resource{}, fmt.Errorf("resource %q: its kind is %s", s, r.Kind)
		}
		return r, nil
	}
	if !custom {
		return Resource{},
			fmt.Errorf(
				"resource %q is not one that Weir knows: %s; a custom resource needs its kind, as in widgets.v1.example.com=Widget",
				s, strings.Join(builtinNames(), ", "))
	}
	if r.Group == "" {
		return Resource{}, fmt.Errorf("resource %q: a custom resource has a group", s)
	}
	r.Kind, r.Namespaced = strings.TrimSuffix(kind, "!"), !strings.HasSuffix(kind, "!")
	r.Singular, r.encoding = strings.ToLower(r.Kind), wire.JSON
	return r, nil
}

// NewResource names a resource of whatever kind, of which objects are held in an encoding. Built-in types that are
// compiled in can be answered in JSON when they are held as protobuf; all others only as they are held.
func NewResource(group, version, resource string, kind wire.Kind, namespaced bool, enc wire.Encoding) Resource {
	r := Resource{
		Group: group, Version: version, Resource: resource, Kind: kind.Kind, Singular: strings.ToLower(kind.Kind),
		Namespaced: namespaced, encoding: enc,
	}
	if enc == wire.Protobuf {
		if r.builtin = FindBuiltin(group, version, resource); r.builtin == nil {
			r.builtin = &Builtin{
				Group: group, Version: version, Resource: resource, Kind: kind.Kind, ClusterScoped: !namespaced,
			}
		}
		r.compiled = r.builtin.Type()
	}
	return r
}

// Exposed warns of what is often not meant for each node of a pool to read; "" for all else.
func (r Resource) Exposed() string {
	if r.Group == "" && r.Resource == "configmaps" {
		return "each node of the pool may read all ConfigMaps of the cluster: they should hold nothing that is secret"
	}
	return ""
}

// String is the form that ParseResource reads, without the kind.
func (r Resource) String() string { return r.Resource + "." + r.Version + "." + r.Group }

// APIVersion is "v1" or "discovery.k8s.io/v1".
func (r Resource) APIVersion() string {
	if r.Group == "" {
		return r.Version
	}
	return r.Group + "/" + r.Version
}

// Path is the root of the resource's group and version: "/api/v1" or "/apis/discovery.k8s.io/v1".
func (r Resource) Path() string {
	if r.Group == "" {
		return "/api/" + r.Version
	}
	return "/apis/" + r.Group + "/" + r.Version
}

// Encoding is the form in which a relay of this resource is fed: protobuf for built-in types, else JSON.
func (r Resource) Encoding() wire.Encoding { return r.encoding }

// WireKind is what bodies of this resource declare.
func (r Resource) WireKind() wire.Kind { return wire.Kind{APIVersion: r.APIVersion(), Kind: r.Kind} }

// KindOfList is what lists of this resource declare.
func (r Resource) KindOfList() string { return cmp.Or(r.ListKind, r.Kind+"List") }

// GroupResource is the form used in messages of kube-apiserver: "endpointslices.discovery.k8s.io".
func (r Resource) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Resource}
}

// Known reports whether more is known of the resource than its name: it is built into Kubernetes, or held as protobuf.
func (r Resource) Known() bool { return r.builtin != nil }

// New is an empty object of the compiled type, nil if there is none.
func (r Resource) New() Message {
	if r.compiled == nil {
		return nil
	}
	return r.compiled()
}

// schema is what the compiled type knows, nil if there is none.
func (r Resource) schema() *wire.Schema {
	m := r.New()
	if m == nil {
		return nil
	}
	return wire.NewSchema(reflect.TypeOf(m).Elem())
}

// Warning is what kube-apiserver says with each answer; "" for most.
func (r Resource) Warning() string {
	if r.builtin == nil {
		return ""
	}
	return r.builtin.Warning
}
