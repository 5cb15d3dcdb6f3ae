package invariant

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-edge/weir/sim/client"
)

// Rules that a stream can break.
const (
	Ordered      = "ordered"
	Unique       = "unique"
	Reliable     = "reliable"
	Bookmarkable = "bookmarkable"
	Filtered     = "filtered"
	Complete     = "complete"
	NeverBack    = "never backward"
	NeverEmpty   = "never empty"
)

// Violation is one break of a promise.
type Violation struct {
	Rule   string
	Detail string
	Op     int // index in the recording
	At     time.Time
}

// Verdict is what a judge says of one stream.
type Verdict struct {
	Violations             []Violation
	Adds, Updates, Deletes int
	Bookmarks              int
	Relists                int // lists, streaming ones too, after the first complete state
	Errors                 int
	Missing                int // events of the history that the stream has not shown at its end
	full, everHadObjects   bool
	reached                uint64
}

// Judge holds a recording against the history as its filter shows it.
func Judge(v *View, ops []client.Op) Verdict {
	j := &judge{view: v}
	for i, op := range ops {
		j.i, j.op = i, op
		j.step()
	}
	if j.full {
		j.Missing = v.Behind(j.reached)
		if j.Missing > 0 {
			j.broken(Reliable, "%d events after %d never came, the first is %s", j.Missing, j.reached, show(v.events[v.after(j.reached)]))
		}
	} else {
		j.broken(Complete, "the stream never had a complete state")
	}
	return j.Verdict
}

type judge struct {
	Verdict
	view    *View
	initial map[string]client.Item // of a streaming list under way; nil: none
	i       int
	op      client.Op
}

func (j *judge) broken(rule, format string, args ...any) {
	j.Violations = append(j.Violations, Violation{rule, fmt.Sprintf(format, args...), j.i, j.op.At})
}

func (j *judge) step() {
	op := j.op
	switch op.What {
	case client.OpError:
		j.Errors++
		j.initial = nil
	case client.OpOpen:
		j.initial = nil
		if op.Initial {
			j.initial = map[string]client.Item{}
		}
		if !op.Initial && op.Version > j.reached {
			j.broken(NeverBack, "a watch was opened at %d, the stream had reached %d", op.Version, j.reached)
		}
	case client.OpList:
		state := make(map[string]client.Item, len(op.Items))
		for _, it := range op.Items {
			if _, twice := state[it.Key]; twice {
				j.broken(Unique, "%s is twice in the list at %d", it.Key, op.Version)
			}
			state[it.Key] = it
		}
		j.whole(state)
	case client.OpInitialEnd:
		if j.initial == nil {
			j.broken(Bookmarkable, "an end of initial events at %d without such events", op.Version)
			return
		}
		j.Bookmarks++
		j.whole(j.initial)
		j.initial = nil
	case client.OpBookmark:
		j.bookmark()
	case client.OpEvent:
		j.event()
	}
}

// whole judges a complete state at a version: a list, or the end of a streaming one.
func (j *judge) whole(state map[string]client.Item) {
	op := j.op
	if j.full {
		j.Relists++
		if op.Version < j.reached {
			j.broken(NeverBack, "a list at %d after %d", op.Version, j.reached)
		}
	}
	if len(state) == 0 && j.everHadObjects {
		if want := j.view.at(op.Version); len(want) > 0 {
			j.broken(NeverEmpty, "an empty list at %d, the cloud had %d objects", op.Version, len(want))
		}
	}
	j.full, j.everHadObjects = true, j.everHadObjects || len(state) > 0
	if op.Version >= j.view.start && op.Version <= j.view.last {
		j.compare(state, j.view.at(op.Version))
	}
	j.reached = op.Version
}

func (j *judge) compare(got, want map[string]client.Item) {
	for k, w := range want {
		g, ok := got[k]
		switch {
		case !ok:
			j.broken(Complete, "%s is missing in the list at %d", k, j.op.Version)
		case g.Version != w.Version || g.UID != w.UID:
			j.broken(Complete, "%s is at %d in the list at %d, the cloud had %d", k, g.Version, j.op.Version, w.Version)
		case g.Hash != w.Hash:
			j.broken(Complete, "%s at %d has another content than in the cloud", k, g.Version)
		}
	}
	for k := range got {
		if _, ok := want[k]; !ok {
			j.broken(Complete, "%s is in the list at %d and was not in the cloud: a ghost", k, j.op.Version)
		}
	}
}

func (j *judge) bookmark() {
	op := j.op
	j.Bookmarks++
	switch {
	case op.Version < j.reached:
		j.broken(NeverBack, "a bookmark at %d after %d", op.Version, j.reached)
		return
	case j.full:
		if i := j.view.after(j.reached); i < len(j.view.events) && j.view.events[i].version <= op.Version {
			j.broken(Bookmarkable, "a bookmark at %d hides %s", op.Version, show(j.view.events[i]))
		}
	}
	j.reached = op.Version
}

func (j *judge) event() {
	op := j.op
	switch op.Type {
	case watch.Added:
		j.Adds++
	case watch.Modified:
		j.Updates++
	case watch.Deleted:
		j.Deletes++
	}
	if j.initial != nil {
		if _, twice := j.initial[op.Item.Key]; twice {
			j.broken(Unique, "%s is twice among the initial events", op.Item.Key)
		}
		j.initial[op.Item.Key] = op.Item
		return
	}
	if op.Version == j.reached {
		j.broken(Unique, "%s %s at %d came again", op.Type, op.Item.Key, op.Version)
		return
	}
	if op.Version < j.reached {
		j.broken(Ordered, "%s %s at %d after %d", op.Type, op.Item.Key, op.Version, j.reached)
		return
	}
	i := j.view.after(j.reached)
	for ; i < len(j.view.events) && j.view.events[i].version < op.Version; i++ {
		j.broken(Reliable, "%s never came, %s at %d did", show(j.view.events[i]), op.Item.Key, op.Version)
	}
	j.reached = op.Version
	if i == len(j.view.events) || j.view.events[i].version != op.Version {
		if op.Version <= j.view.last {
			j.broken(Filtered, "%s %s at %d should not be in this stream", op.Type, op.Item.Key, op.Version)
		}
		return
	}
	want := j.view.events[i]
	switch {
	case op.Item.Key != want.item.Key || op.Item.UID != want.item.UID:
		j.broken(Complete, "at %d came %s, the cloud changed %s", op.Version, op.Item.Key, want.item.Key)
	case op.Type != want.typ:
		j.broken(Filtered, "%s %s at %d, should be %s", op.Type, op.Item.Key, op.Version, want.typ)
	case !want.old && op.Item.Hash != want.item.Hash:
		j.broken(Complete, "%s at %d has another content than in the cloud", op.Item.Key, op.Version)
	}
}

func show(e expected) string { return fmt.Sprintf("%s %s at %d", e.typ, e.item.Key, e.version) }
