package relayed

import (
	"slices"
	"strings"

	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/request"
)

// Target is a request for an object or collection of a relayed resource.
type Target struct {
	*request.Request
	Rights identity.Attributes // of a read
	Relay  *relay.Relay        // of the resource
}

// key is the object's as relays have it, "" if it has no name.
func (t *Target) key() string { return t.keyOf(t.Name) }

// keyOf is that of another object in the same place.
func (t *Target) keyOf(name string) string {
	if t.In() == "" || name == "" {
		return name
	}
	return t.In() + "/" + name
}

// covers reports whether a read is about an object.
func (t *Target) covers(key string) bool {
	namespace, name, namespaced := strings.Cut(key, "/")
	if !namespaced {
		namespace, name = "", key
	}
	return (t.Namespace == "" || t.Namespace == namespace) && (t.Rights.Name == "" || t.Rights.Name == name)
}

// OfNode reports whether a read is of a node's own Node or pods. What the node itself reads of these is node-scope
// where it is kept for the time without the cloud, also if a relay has the resource: its statuses, its registration and
// the tokens of its pods are judged then by what was kept, and what it wrote meanwhile is laid over that. It is what
// the node reads without Weir, too: its own share of the resource, from the cloud itself.
func (t *Target) OfNode(node string) bool {
	switch {
	case t.Resource.Group != "":
		return false
	case t.Resource.Name == "nodes":
		return t.Rights.Name == node
	case t.Resource.Name != "pods":
		return false
	}
	return t.Verb == "get" || t.Only("spec.nodeName") == node
}

// Router finds the requests that are about relayed resources, those that it says are when it is asked. What it does not
// recognize goes to the cloud untouched.
type Router func() []*relay.Relay

// connects are the subresources that open a way to something else, whatever the method: nothing of the object is
// written.
var connects = []string{"attach", "exec", "log", "portforward", "proxy"}

// Route returns nil for a request that is not about a relayed resource. Reads are those that a relay can answer: none
// of a subresource, of another version of the API, or over WebSocket. Writes are all that may change an object that a
// relay holds.
func (rt Router) Route(r *request.Request) *Target {
	if !r.IsResource || r.Odd || r.Upgrade || strings.HasSuffix(r.Path, "/") {
		return nil
	}
	relays := rt()
	i := slices.IndexFunc(relays, func(held *relay.Relay) bool {
		res := held.Resource()
		return r.Resource.Group == res.Group && r.Resource.Name == res.Resource && (r.In() == "" || res.Namespaced) &&
			(r.Resource.Version == res.Version || r.Writes() && res.Group != "")
	})
	if i < 0 {
		return nil
	}
	t := &Target{Request: r, Relay: relays[i]}
	switch {
	case r.Writes():
		if r.Rest != "" || slices.Contains(connects, r.Subresource) {
			return nil
		}
		return t
	case !r.Reads() || r.Subresource != "":
		return nil
	case r.Verb == "get" && (r.Resource.Name == "namespaces" || r.Namespace == "" && t.Relay.Resource().Namespaced):
		// a Namespace is the cloud's to answer.
		return nil
	}
	t.Rights, _ = identity.AttributesOf(r)
	return t
}
