package source

import (
	"fmt"
	"time"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source/hop"
)

// follows compares what a relay that is the upstream says of its history with a history; nil: any will do. Nobody else
// says anything.
func follows(mine *relay.History) hop.Check {
	return func(theirs relay.History, age time.Duration) error {
		if mine == nil {
			return nil
		}
		return member.Follows(*mine, theirs, age)
	}
}

// lost says that what a relay holds is of a history that the cloud has left.
func lost(s relay.Status, proof string) error {
	return &member.AnotherHistoryError{History: s.History.Next(s.Version), Proof: proof}
}

// contradiction is the proof by an object whose version is not later than the relay's, and which the relay does not
// hold so.
func contradiction(s relay.Status, o *wire.Object) error {
	return lost(s, fmt.Sprintf("%s is at version %d, which is not what it was at %d", o.Key, o.Version, s.Version))
}

func sameObject(a, b *wire.Object) bool { return a.UID == b.UID && a.Version == b.Version }
