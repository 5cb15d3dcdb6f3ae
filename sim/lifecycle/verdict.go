package lifecycle

import "fmt"

// Verdict is what was counted in a Run.
type Verdict struct {
	// What must not be.
	Wrong, Missed, Unjust, WrongMarks, Risen, Left int
	// What shows that something happened: pods evicted, evictions refused by policies, heartbeats forwarded, Leases
	// renewed by weir-manager, nodes that turned Unknown, pods marked as not ready.
	Evicted, Denied, Forwarded, Pooled, Unknown, Marked int

	Details []string // of what must not be
}

// Fine reports whether nothing happened that must not.
func (v Verdict) Fine() bool { return v.Wrong+v.Missed+v.Unjust+v.WrongMarks+v.Risen+v.Left == 0 }

// Add counts two together.
func (v *Verdict) Add(o Verdict) {
	v.Wrong, v.Missed, v.Unjust, v.WrongMarks, v.Left = v.Wrong+o.Wrong, v.Missed+o.Missed, v.Unjust+o.Unjust,
		v.WrongMarks+o.WrongMarks, v.Left+o.Left
	v.Evicted, v.Denied, v.Forwarded = v.Evicted+o.Evicted, v.Denied+o.Denied, v.Forwarded+o.Forwarded
	v.Unknown, v.Marked = v.Unknown+o.Unknown, v.Marked+o.Marked
	v.Pooled, v.Risen = v.Pooled+o.Pooled, v.Risen+o.Risen
}

// String is all numbers in a line.
func (v Verdict) String() string {
	return fmt.Sprintf(
		"wrong_evictions %d, missed_evictions %d, not_ready_while_delegated %d, wrong_marks %d, dead_renewed %d,"+
			" left_over %d (pods evicted %d, evictions denied %d, heartbeats forwarded %d, renewed %d, nodes unknown %d,"+
			" pods marked %d)",
		v.Wrong, v.Missed, v.Unjust, v.WrongMarks, v.Risen, v.Left, v.Evicted, v.Denied, v.Forwarded, v.Pooled, v.Unknown,
		v.Marked)
}
