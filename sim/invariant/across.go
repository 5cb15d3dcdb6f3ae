package invariant

import (
	"fmt"
	"math"
	"time"

	"github.com/weir-edge/weir/sim/client"
)

// Era is a history of a cloud that was restored from a backup, as a stream's filter shows it, and when it began. The
// first one began before all streams.
type Era struct {
	View *View
	From time.Time
}

// JudgeAcross holds a recording against several histories of one cloud. A stream goes on in the one that it knows until
// it lists after the next one has begun; there, and only there, versions may go back. That list is a re-list, and every
// stream has to make it.
func (r Rules) JudgeAcross(eras []Era, ops []client.Op) Verdict {
	all := Verdict{Causes: map[string]int{}}
	begin := 0
	for i, era := range eras {
		last, end := i == len(eras)-1, len(ops)
		if !last {
			end = listedSince(ops, begin, eras[i+1].From)
		}
		j := newJudge(era.View, r)
		for k := begin; k < end; k++ {
			j.i, j.op = k, ops[k]
			j.step()
		}
		j.i = end
		// the list by which it goes on in the next history shows it what it has to.
		j.Merged = era.View.merged(ops[begin:end], reached(ops[begin:end]))
		switch {
		case last:
			j.Merged = era.View.merged(ops[begin:end], math.MaxUint64)
			j.end()
		case end == len(ops):
			j.op = client.Op{At: eras[i+1].From}
			j.broken(Complete, "the stream never listed in the history that the cloud was given at %s",
				eras[i+1].From.Format(time.TimeOnly))
			all.add(j.Verdict)
			return all
		default:
			j.relisted()
		}
		all.add(j.Verdict)
		begin = end
	}
	return all
}

// listedSince is the index, from an index on, of the first list, or beginning of a streaming one, after a time;
// len(ops) if there is none.
func listedSince(ops []client.Op, from int, since time.Time) int {
	for i := from; i < len(ops); i++ {
		if op := ops[i]; op.At.After(since) && (op.What == client.OpList || op.What == client.OpOpen && op.Initial) {
			return i
		}
	}
	return len(ops)
}

// add adds what another judge says of a later part of the same stream.
func (v *Verdict) add(o Verdict) {
	v.Violations = append(v.Violations, o.Violations...)
	v.Adds, v.Updates, v.Deletes = v.Adds+o.Adds, v.Updates+o.Updates, v.Deletes+o.Deletes
	v.Bookmarks, v.Lists, v.Relists = v.Bookmarks+o.Bookmarks, v.Lists+o.Lists, v.Relists+o.Relists
	v.Resumes, v.Errors, v.Skipped, v.Missing = v.Resumes+o.Resumes, v.Errors+o.Errors, v.Skipped+o.Skipped,
		v.Missing+o.Missing
	v.Merged += o.Merged
	for cause, n := range o.Causes {
		v.Causes[cause] += n
	}
}

// Since widens a history to an earlier version, from which on nothing is known to have happened until it was taken
// down.
func (h *History) Since(version uint64) error {
	if version > h.start {
		return fmt.Errorf("the history begins at %d, which is before %d", h.start, version)
	}
	h.start = version
	return nil
}
