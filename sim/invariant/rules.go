package invariant

import (
	"fmt"
	"time"
)

// Rules that a stream can break.
const (
	Ordered      = "ordered"        // events come in the order of their versions
	Unique       = "unique"         // no event, and no object of a list, comes twice
	Reliable     = "reliable"       // no event of the filter is missing
	Resumable    = "resumable"      // a watch goes on right behind the version from which it was opened
	Bookmarkable = "bookmarkable"   // a bookmark hides no event
	Filtered     = "filtered"       // the types of events are those that the selector makes of them
	Complete     = "complete"       // states and contents are those of the cloud at that version
	NeverBack    = "never backward" // no list or bookmark is older than what was seen
	NeverEmpty   = "never empty"    // no list is empty while the cloud has objects, after one that was not
	WellFormed   = "well formed"    // what comes can be read
)

// Rules say what a stream may do beyond what kube-apiserver does.
type Rules struct {
	// Batches allows the differences that a relay sends after the cloud answered 410 (rule 6 of a relay). Only a run in
	// which that happens should allow them: they may leave out versions of an object that others have replaced.
	Batches bool
	// Torn allows, with Batches, a client that leaves such a difference in the middle and goes on at another server, which
	// knows nothing of it: what the first one had yet to show the client lacks until it changes, see Stream.Leaves, and
	// what the difference has deleted is deleted again.
	Torn bool
}

// Violation is one break of a promise.
type Violation struct {
	Rule   string
	Detail string // what came, and what was due
	Op     int    // index in the recording; the number of its ops if the end is what is wrong
	At     time.Time
}

// String is one line about v.
func (v Violation) String() string { return fmt.Sprintf("op %d: %s: %s", v.Op, v.Rule, v.Detail) }

// Verdict is what a judge says of one stream.
type Verdict struct {
	Violations []Violation

	Adds, Updates, Deletes int            // changes, without the objects of lists and the initial events of streaming ones
	Bookmarks              int            // the ends of initial events among them
	Lists                  int            // complete states, streaming ones too
	Relists                int            // all but the first of them, and one that never became complete
	Causes                 map[string]int // of Relists
	Resumes                int            // watches opened after the first complete state
	Errors                 int
	Skipped                int // events that batches left out
	Missing                int // events of the history that the stream has not shown at its end
	Merged                 int // events since the first complete state that did not come one by one, by any rules
}
