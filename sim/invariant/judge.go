package invariant

import (
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-edge/weir/sim/client"
)

// Judge holds a recording against the history as its filter shows it, by the rules of kube-apiserver.
func Judge(v *View, ops []client.Op) Verdict { return Rules{}.Judge(v, ops) }

// Judge holds a recording against the history as its filter shows it.
func (r Rules) Judge(v *View, ops []client.Op) Verdict {
	j := newJudge(v, r)
	for i, op := range ops {
		j.i, j.op = i, op
		j.step()
	}
	j.i = len(ops)
	j.end()
	j.Merged = v.merged(ops, math.MaxUint64)
	return j.Verdict
}

func newJudge(v *View, r Rules) *judge {
	return &judge{
		Verdict: Verdict{Causes: map[string]int{}}, view: v, rules: r, state: map[string]client.Item{}, lacks: lacks{},
	}
}

type judge struct {
	Verdict
	view  *View
	rules Rules
	i     int
	op    client.Op

	state   map[string]client.Item // as the client has it
	full    bool                   // it had a complete state
	had     bool                   // one that was not empty
	reached uint64
	resumed bool                   // a watch was opened, and has shown nothing
	from    uint64                 // where the last watch was opened
	initial map[string]client.Item // of a streaming list under way; nil: none
	again   bool                   // and it is not the first
	watch   openWatch
	cause   string // of the next re-list
	lacks   lacks  // by Rules.Torn
	moved   bool   // it goes on at another server
}

func (j *judge) broken(rule, format string, args ...any) {
	j.Violations = append(j.Violations, Violation{rule, fmt.Sprintf(format, args...), j.i, j.op.At})
}

func (j *judge) step() {
	switch op := j.op; op.What {
	case client.OpError:
		j.Errors++
		j.initial = nil
		j.blame(causeOf(op))
		if op.Malformed {
			j.broken(WellFormed, "%s", op.Err)
		}
	case client.OpClose:
		j.initial = nil
		if j.watch.tooShort(op.At) && op.Err == "" {
			j.blame(causeShort)
		}
	case client.OpOpen:
		j.open()
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
		j.initialEnd()
	case client.OpBookmark:
		j.bookmark()
	case client.OpEvent:
		j.event()
	}
}

// open judges from where a watch was opened.
func (j *judge) open() {
	j.initial, j.resumed, j.watch = nil, j.full && !j.op.Initial, openWatch{at: j.op.At}
	switch {
	case j.op.Initial:
		j.initial, j.again = map[string]client.Item{}, j.full
		return
	case j.full:
		j.Resumes++
	}
	if j.op.Version > j.reached {
		j.broken(Resumable, "a watch was opened at %d, the stream had only reached %d", j.op.Version, j.reached)
	}
	// A client may resume at an older version, and has to be shown again what it had seen.
	j.reached, j.from = j.op.Version, j.op.Version
}

func (j *judge) initialEnd() {
	if j.initial == nil {
		j.broken(Bookmarkable, "the end of initial events at %d, without such events", j.op.Version)
		return
	}
	j.Bookmarks++
	j.watch.shown = true
	state := j.initial
	j.initial, j.again = nil, false
	j.whole(state)
}

// whole judges a complete state at a version: a list, or the end of a streaming one.
func (j *judge) whole(state map[string]client.Item) {
	op := j.op
	j.Lists++
	if j.full {
		j.relisted()
		if op.Version < j.reached && !j.moved {
			j.broken(NeverBack, "a list at %d, the stream had reached %d", op.Version, j.reached)
		}
	}
	want := j.view.at(op.Version)
	switch {
	case op.Version < j.view.start:
		j.broken(Complete, "a list at %d is older than the history, which begins at %d", op.Version, j.view.start)
	case len(state) == 0 && j.had && len(want) > 0:
		j.broken(NeverEmpty, "an empty list at %d, the cloud had %d objects", op.Version, len(want))
	default:
		for _, d := range differences(state, want) {
			j.broken(Complete, "list at %d: %s", op.Version, d)
		}
	}
	j.full, j.had = true, j.had || len(state) > 0
	j.state, j.reached, j.resumed, j.lacks = state, op.Version, false, lacks{}
	j.cause = ""
}

func (j *judge) bookmark() {
	op := j.op
	j.Bookmarks++
	j.watch.shown = true
	if !j.full || j.initial != nil {
		j.broken(Bookmarkable, "a bookmark at %d before the client had a complete state", op.Version)
		return
	}
	if op.Version < j.reached {
		j.broken(NeverBack, "a bookmark at %d, the stream had reached %d", op.Version, j.reached)
		return
	}
	if hidden := j.view.events[j.view.after(j.reached):j.view.after(op.Version)]; len(hidden) > 0 {
		if j.rules.Batches {
			j.Skipped += len(hidden)
		} else {
			j.broken(j.gap(Bookmarkable), "a bookmark at %d hides %d events, the first is %s", op.Version, len(hidden),
				hidden[0])
		}
	}
	j.reached, j.resumed, j.cause = op.Version, false, ""
	if j.rules.Batches {
		for _, d := range differences(j.lacks.filled(j.state, j.view, op.Version), j.view.at(op.Version)) {
			j.broken(Bookmarkable, "state at the bookmark at %d: %s", op.Version, d)
		}
	}
}

// gap is the rule that a missing event breaks: another one if the watch was just opened.
func (j *judge) gap(rule string) string {
	if j.resumed {
		return Resumable
	}
	return rule
}

func (j *judge) event() {
	j.watch.shown = true
	if j.initial != nil {
		j.initialEvent()
		return
	}
	switch j.op.Type {
	case watch.Added:
		j.Adds++
	case watch.Modified:
		j.Updates++
	case watch.Deleted:
		j.Deletes++
	}
	switch {
	case !j.full:
		j.broken(Complete, "%v before the client had a complete state", j.op)
		return
	case j.rules.Batches:
		j.batched()
	default:
		j.strict()
	}
	j.resumed, j.cause = false, ""
	apply(j.state, j.op.Type, j.op.Item)
	j.had = j.had || len(j.state) > 0
}

// initialEvent judges an event of a streaming list: objects as ADDED in any order, then perhaps changes of them. That
// contents are right is judged at the end of the list.
func (j *judge) initialEvent() {
	op := j.op
	_, there := j.initial[op.Item.Key]
	switch {
	case op.Type == watch.Added && there:
		j.broken(Unique, "%s is twice among the initial events", op.Item.Key)
	case op.Type != watch.Added && !there:
		j.broken(Filtered, "%v among the initial events, which have not ADDED it", op)
	}
	apply(j.initial, op.Type, op.Item)
}

// strict judges an event that has to be the next one of the history.
func (j *judge) strict() {
	op := j.op
	switch {
	case op.Version == j.reached:
		j.broken(Unique, "%v came again, or after a bookmark at it", op)
		return
	case op.Version < j.reached:
		j.broken(Ordered, "%v came when the stream had reached %d", op, j.reached)
		return
	}
	missed := j.view.events[j.view.after(j.reached):]
	for len(missed) > 0 && missed[0].version < op.Version {
		j.broken(j.gap(Reliable), "%v never came, %v did", missed[0], op)
		missed = missed[1:]
	}
	j.reached = op.Version
	if len(missed) == 0 || missed[0].version != op.Version {
		j.broken(Filtered, "%v should not be in this stream", op)
		return
	}
	want := missed[0]
	switch {
	case op.Item.Key != want.item.Key || op.Item.UID != want.item.UID:
		j.broken(Complete, "%v of uid %s, should be %v of uid %s", op, op.Item.UID, want, want.item.UID)
	case op.Type != want.typ:
		j.broken(Filtered, "%v, should be %v", op, want)
	case op.Item.Hash != want.item.Hash && want.typ == watch.Deleted && want.item.Version != want.version:
		j.broken(Filtered, "%v left the selector and has not its previous content", op)
	case op.Item.Hash != want.item.Hash:
		j.broken(Complete, "%v has another content than in the cloud", op)
	}
}

// batched judges an event that may be part of a batch.
func (j *judge) batched() {
	op := j.op
	old, there := j.state[op.Item.Key]
	switch {
	case op.Version < j.reached:
		j.broken(Ordered, "%v came when the stream had reached %d", op, j.reached)
		return
	case op.Version == j.reached && op.Type != watch.Deleted:
		j.broken(Unique, "%v came again, or after a bookmark at it", op)
		return
	}
	if op.Version > j.reached {
		j.Skipped += j.view.after(op.Version-1) - j.view.after(j.reached)
	}
	j.reached = op.Version
	batch := op.Type == watch.Deleted && !j.view.deletes(op)
	if batch && !j.view.removes(op.Item, op.Version) {
		j.broken(Complete, "%v, which the cloud never deleted later", op)
	}
	torn := !there && j.lacks.settle(op)
	if batch && j.rules.Torn {
		j.lacks[op.Item.Key] = lack{op.Item.UID, op.Version}
	}
	switch {
	case torn && (op.Type == watch.Deleted || j.view.genuine(op.Item)):
	case op.Type == watch.Deleted && !there && op.Version == j.from: // a resume in a batch replays all of it
	case op.Type == watch.Deleted && !there:
		j.broken(Unique, "%v, which the client does not have", op)
	case op.Type == watch.Deleted && (old.UID != op.Item.UID || old.Hash != op.Item.Hash):
		j.broken(Filtered, "%v is not the object that the client has", op)
	case op.Type == watch.Deleted:
	case op.Type == watch.Added && there, op.Type == watch.Modified && !there:
		j.broken(Filtered, "%v, and whether the client has the object: %v", op, there)
	case there && old.UID != op.Item.UID:
		j.broken(Filtered, "%v has another uid than the object that the client has", op)
	case !j.view.genuine(op.Item):
		j.broken(Complete, "%v was never in the cloud like that", op)
	}
}

// end judges where the stream stands when all is over.
func (j *judge) end() {
	j.op = client.Op{At: j.op.At}
	if !j.full {
		j.broken(Complete, "the stream never had a complete state")
		return
	}
	if j.initial != nil && j.again {
		j.relisted()
	}
	differ := differences(j.state, j.view.at(^uint64(0)))
	if missed := j.view.events[j.view.after(j.reached):]; len(missed) > 0 {
		if !j.rules.Batches || len(differ) > 0 {
			j.Missing = len(missed)
			j.broken(j.gap(Reliable), "%d events after %d never came, the first is %v", len(missed), j.reached, missed[0])
		}
	}
	if len(j.Violations) == 0 {
		for _, d := range differ {
			j.broken(Complete, "at the end: %s", d)
		}
	}
}

// relisted counts a re-list and its cause.
func (j *judge) relisted() {
	j.Relists++
	if j.cause == "" {
		j.cause = causeUnknown
	}
	j.Causes[j.cause]++
	j.cause = ""
}

// blame keeps the first cause since the stream last made progress.
func (j *judge) blame(cause string) {
	if j.cause == "" {
		j.cause = cause
	}
}

// openWatch is what is known of the watch that was opened last.
type openWatch struct {
	at    time.Time
	shown bool
}

// tooShort reports whether client-go takes the end of the watch at a time for a failure, after which it lists.
func (w openWatch) tooShort(end time.Time) bool { return !w.shown && end.Sub(w.at) < time.Second }
