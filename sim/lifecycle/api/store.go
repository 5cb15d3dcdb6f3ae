package api

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Object is a version of an object. It does not change.
type Object struct {
	Resource        string
	Namespace, Name string
	Node            string // spec.nodeName

	version uint64
	uid     string
	labels  map[string]string
	raw     []byte         // JSON
	content map[string]any // the same, not to be changed
}

// Decode reads all of it.
func (o *Object) Decode(into any) error { return json.Unmarshal(o.raw, into) }

func newObject(resource string, version uint64, content map[string]any) (*Object, error) {
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	var some struct {
		metav1.ObjectMeta `json:"metadata"`

		Spec struct {
			NodeName string `json:"nodeName"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(raw, &some); err != nil {
		return nil, err
	}
	return &Object{
		Resource: resource, Namespace: some.Namespace, Name: some.Name, Node: some.Spec.NodeName,
		version: version, uid: string(some.UID), labels: some.Labels, raw: raw, content: content,
	}, nil
}

// same reports whether content is that of an object, its version aside.
func same(o *Object, content map[string]any) bool {
	metadata(content)["resourceVersion"] = format(o.version)
	return reflect.DeepEqual(o.content, content)
}

func key(namespace, name string) string { return namespace + "/" + name }

func format(version uint64) string { return strconv.FormatUint(version, 10) }

// change is one of an object: before is nil when it was created, after when it was deleted.
type change struct {
	version       uint64
	before, after *Object
}

// store are the objects of a kind, what became of them, and who watches.
type store struct {
	kind     kind
	objects  map[string]*Object
	history  []change
	oldest   uint64 // a watch resumes from here or later
	watchers map[*stream]*request

	changedAt uint64
}

func newStore(k kind) *store {
	return &store{kind: k, objects: map[string]*Object{}, watchers: map[*stream]*request{}}
}

func (s *store) sorted() []*Object {
	return slices.SortedFunc(maps.Values(s.objects), func(a, b *Object) int {
		if key(a.Namespace, a.Name) < key(b.Namespace, b.Name) {
			return -1
		}
		return 1
	})
}

func (s *store) put(old, o *Object) {
	s.objects[key(o.Namespace, o.Name)] = o
	s.changed(change{o.version, old, o})
}

func (s *store) remove(old *Object, version uint64) {
	delete(s.objects, key(old.Namespace, old.Name))
	s.changed(change{version, old, nil})
}

func (s *store) changed(c change) {
	s.history, s.changedAt = append(s.history, c), c.version
	for w, r := range s.watchers {
		w.show(r, c)
	}
}

// restart ends all watches and forgets what they could resume from.
func (s *store) restart(version uint64) {
	for w := range s.watchers {
		w.end()
	}
	clear(s.watchers)
	s.history, s.oldest = nil, version
}
