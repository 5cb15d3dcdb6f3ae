package invariant

import "github.com/weir-edge/weir/sim/client"

// merged counts the events of a history, up to a version, that a stream was not shown one by one: it had a complete
// state of before, and got a list of after, a later event of the same object, or nothing. What a list shows counts as
// not shown, and so do the initial events of a streaming one.
func (v *View) merged(ops []client.Op, through uint64) int {
	first, begun := uint64(0), false
	initial := false // events of a streaming list are under way
	type event struct {
		version uint64
		key     string
	}
	shown := map[event]bool{}
	for _, op := range ops {
		switch op.What {
		case client.OpOpen:
			initial = op.Initial
		case client.OpList, client.OpInitialEnd:
			if initial = false; !begun {
				first, begun = op.Version, true
			}
		case client.OpEvent:
			if begun && !initial {
				shown[event{op.Version, op.Item.Key}] = true
			}
		}
	}
	if !begun {
		return 0
	}
	n := 0
	for _, e := range v.events[v.after(first):] {
		if e.version <= through && !shown[event{e.version, e.item.Key}] {
			n++
		}
	}
	return n
}

// reached is the newest version that a stream has shown since it had a complete state.
func reached(ops []client.Op) (version uint64) {
	begun := false
	for _, op := range ops {
		switch op.What {
		case client.OpList, client.OpInitialEnd:
			begun, version = true, max(version, op.Version)
		case client.OpEvent, client.OpBookmark:
			if begun {
				version = max(version, op.Version)
			}
		}
	}
	return version
}
