package pki

import (
	"time"

	"github.com/weir-edge/weir/impl/contract"
)

// NodeAuthorityLife is how long the authority of a node lives.
const NodeAuthorityLife = 10 * 365 * day

// earliest is before the first Weir. A machine whose clock says less does not know the time.
var earliest = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// NodeTime is what a machine's clock says, but never the time before the first Weir: lives of a node's authority are
// counted by it.
func NodeTime(clock time.Time) time.Time {
	if clock.Before(earliest) {
		return earliest
	}
	return clock
}

// NewNodeAuthority returns the authority of a node, with a fresh key. Those on the node trust it from 1970 on: a
// machine without a battery clock starts there, and has to trust its own hub then as well.
func NewNodeAuthority(node string, clock time.Time) (*Authority, error) {
	if len(node) > maxNode || !subdomain.MatchString(node) {
		return nil, mismatch("node", node, "the name of a Node: small letters, digits, - and ., 253 at most")
	}
	begin := time.Unix(0, 0).Add(mostBackdate)
	return NewAuthority(NodeAuthorityName(node), begin, NodeTime(clock).Add(NodeAuthorityLife).Sub(begin))
}

// NodeAuthorityName is the common name of a node's authority.
func NodeAuthorityName(node string) string { return contract.NodeAuthorityPrefix + node }
