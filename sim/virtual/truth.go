package virtual

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/sim/client"
	"github.com/weir-edge/weir/sim/invariant"
)

// identity is what makes a state of an object the one it is.
type identity struct {
	uid     string
	version uint64
}

// history is all that happened to the resource, as its only store knows it.
type history struct {
	era     int    // grows when the store is restored from a backup
	began   uint64 // the version that it was restored to
	version uint64 // of the store; other resources move it too
	events  []*wire.Event
	keys    []string
	uids    int
	view    *invariant.View // that streams are judged by
}

func newHistory(version uint64) *history {
	return &history{version: version, view: invariant.NewView(version)}
}

// eraStride is between the versions of an era but the first one, so that few mean something in two of them.
const eraStride = 4

// advance goes on to a later version.
func (h *history) advance(n int) {
	for range n {
		h.version++
		for h.era > 0 && h.version%eraStride != uint64(h.era)%eraStride {
			h.version++
		}
	}
}

// back is the history that begins from this one, as it was some versions ago.
func (h *history) back(n uint64) *history {
	version := h.version - min(n, h.version-1000)
	return &history{
		era: h.era + 1, began: version, version: version, keys: slices.Clone(h.keys), uids: h.uids,
		events: slices.Clone(h.events[:len(h.events)-len(h.since(version))]), view: h.view.Fork(version),
	}
}

// write makes or changes an object; its former state, if it has one, is told by its UID.
func (h *history) write(key string) *wire.Event {
	h.advance(1)
	now, exists := h.at(key, h.version)
	typ, uid := wire.Modified, now.uid
	if !exists {
		h.uids++
		typ, uid = wire.Added, fmt.Sprintf("uid-%d", h.uids)
	}
	return h.note(typ, newObject(key, uid, h.version))
}

// remove deletes an object.
func (h *history) remove(key string) *wire.Event {
	now, exists := h.at(key, h.version)
	if !exists {
		return nil
	}
	h.advance(1)
	return h.note(wire.Deleted, newObject(key, now.uid, h.version))
}

func (h *history) note(typ string, o *wire.Object) *wire.Event {
	if i := sort.SearchStrings(h.keys, o.Key); i == len(h.keys) || h.keys[i] != o.Key {
		h.keys = append(h.keys[:i], append([]string{o.Key}, h.keys[i:]...)...)
	}
	ev := &wire.Event{Type: typ, Object: o, Version: o.Version}
	h.events = append(h.events, ev)
	h.view.Happens(watch.EventType(typ), itemOf(o), o.Version)
	return ev
}

// since returns the events behind a version.
func (h *history) since(version uint64) []*wire.Event {
	i := sort.Search(len(h.events), func(i int) bool { return h.events[i].Version > version })
	return h.events[i:]
}

// at returns what an object was at a version.
func (h *history) at(key string, version uint64) (identity, bool) {
	es := h.events[:len(h.events)-len(h.since(version))]
	for i := len(es) - 1; i >= 0; i-- {
		if o := es[i].Object; o.Key == key {
			return identity{o.UID, o.Version}, es[i].Type != wire.Deleted
		}
	}
	return identity{}, false
}

// list returns all objects at a version, in the order of a list.
func (h *history) list(version uint64) []*wire.Object {
	last := map[string]*wire.Object{}
	for _, ev := range h.events[:len(h.events)-len(h.since(version))] {
		last[ev.Object.Key] = ev.Object
		if ev.Type == wire.Deleted {
			delete(last, ev.Object.Key)
		}
	}
	items := make([]*wire.Object, 0, len(last))
	for _, key := range h.keys {
		if o := last[key]; o != nil {
			items = append(items, o)
		}
	}
	return items
}

func itemOf(o *wire.Object) client.Item {
	return client.Item{Key: o.Key, UID: o.UID, Version: o.Version}
}

// newObject is an object as a kube-apiserver sends it.
func newObject(key, uid string, version uint64) *wire.Object {
	ns, name, _ := strings.Cut(key, "/")
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: ns, Name: name, UID: types.UID(uid), ResourceVersion: wire.FormatVersion(version),
	}}
	raw, err := s.Marshal()
	if err != nil {
		panic(err)
	}
	o, err := wire.ParseObject(wire.Protobuf, raw)
	if err != nil {
		panic(err)
	}
	return o
}
