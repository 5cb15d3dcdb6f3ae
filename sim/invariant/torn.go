package invariant

import (
	"maps"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-edge/weir/sim/client"
)

// lacks are objects, by key, that a client has not, though they were there at the version that it had.
type lacks map[string]lack

type lack struct {
	uid string
	at  uint64
}

// settle reports whether an event is about an object that is lacked. From then on it is not.
func (l lacks) settle(op client.Op) bool {
	if l[op.Item.Key].uid != op.Item.UID {
		return false
	}
	delete(l, op.Item.Key)
	return true
}

// filled is a state with what may be missing in it until it changes.
func (l lacks) filled(state map[string]client.Item, v *View, version uint64) map[string]client.Item {
	if len(l) == 0 {
		return state
	}
	state = maps.Clone(state)
	now := v.at(version)
	for key, x := range l {
		it, is := now[key]
		if _, has := state[key]; is && !has && it.UID == x.uid && it.Version <= x.at && v.changes(it, version) {
			state[key] = it
		}
	}
	return state
}

// deletes reports whether an event is a deletion of the history.
func (v *View) deletes(op client.Op) bool {
	i := v.after(op.Version) - 1
	return i >= 0 && v.events[i].version == op.Version && v.events[i].typ == watch.Deleted &&
		v.events[i].item.Key == op.Item.Key
}

// removes reports whether an object was deleted behind a version.
func (v *View) removes(it client.Item, version uint64) bool {
	for _, e := range v.events[v.after(version):] {
		if e.typ == watch.Deleted && e.item.Key == it.Key && e.item.UID == it.UID {
			return true
		}
	}
	return false
}

// changes reports whether the next that happens to an object behind a version happens to this very one.
func (v *View) changes(it client.Item, version uint64) bool {
	for _, e := range v.events[v.after(version):] {
		if e.item.Key == it.Key {
			return e.item.UID == it.UID
		}
	}
	return false
}
