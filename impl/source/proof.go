package source

import (
	"fmt"
	"time"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source/hop"
)

// historyError is the proof that the upstream's versions are of another history than those of the relay (rule 7).
type historyError struct {
	history relay.History // the one that the upstream's are of
	proof   string
	yield   bool // take it even if it is an earlier one
}

func (e *historyError) Error() string { return "the history of the cloud is another one: " + e.proof }

// behindError says that an upstream does not know yet what this relay knows, or counts from elsewhere.
type behindError struct {
	theirs, mine uint64
	age          time.Duration // since the upstream's last sign of the cloud; < 0: not known
}

func (e *behindError) Error() string {
	if e.theirs > e.mine {
		return fmt.Sprintf("the upstream says that it is in history %d of the cloud, which cannot follow %d", e.theirs,
			e.mine)
	}
	return fmt.Sprintf("the upstream is still in history %d of the cloud, this relay in %d", e.theirs, e.mine)
}

// follows compares what a relay that is the upstream says of its history with a history; nil: any will do. Nobody else
// says anything.
func follows(mine *relay.History) hop.Check {
	return func(theirs relay.History, age time.Duration) error {
		switch {
		case mine == nil || theirs.Number == mine.Number:
			return nil
		case theirs.Number < mine.Number, !mine.Near(theirs):
			// that nobody can have missed so many is no proof: it may have begun again.
			return &behindError{theirs.Number, mine.Number, age}
		}
		return &historyError{
			history: theirs, proof: fmt.Sprintf("the upstream is in history %d, this relay in %d", theirs.Number, mine.Number),
		}
	}
}

// lost says that what a relay holds is of a history that the cloud has left.
func lost(s relay.Status, proof string) error {
	return &historyError{history: s.History.Next(s.Version), proof: proof}
}

// contradiction is the proof by an object whose version is not later than the relay's, and which the relay does not
// hold so.
func contradiction(s relay.Status, o *wire.Object) error {
	return lost(s, fmt.Sprintf("%s is at version %d, which is not what it was at %d", o.Key, o.Version, s.Version))
}

func sameObject(a, b *wire.Object) bool { return a.UID == b.UID && a.Version == b.Version }
