package membership

import (
	"time"

	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/hub/relayed"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/role"
)

// Account is where it is gathered. All of it is needed.
type Account struct {
	Version     string
	Started     time.Time
	Cloud       *uplink.Cloud
	Sources     *relayed.Sources
	Consistency *relayed.Consistency
	Served      *answer.Served
	Role        func() role.Role
	Cause       func() string // why it is Pending
	Images      func() digest.Images
	Edges       func() digest.Edges // that fail
}

var roles = map[role.Role]digest.Role{
	role.Leader: digest.Leader, role.Follower: digest.Follower, role.Pending: digest.Pending,
}

// Digest is what there is to tell now.
func (a *Account) Digest() digest.Digest {
	d := digest.Digest{
		Version: a.Version, Role: roles[a.Role()], Age: a.age(), Started: a.Started, Served: a.Served.Bytes(answer.ByRelay),
		Images: a.Images(), Edges: a.Edges(),
	}
	if d.Role == digest.Pending {
		d.Cause = a.Cause()
	}
	for _, c := range uplink.Counted {
		b := a.Cloud.Bytes(c)
		d.Down, d.Up = d.Down+b.Down, d.Up+b.Up
		if c == uplink.ClassPool {
			d.Feed = b.Down + b.Up
		}
	}
	return d
}

// age is that of the oldest relay, 0 if nobody reads any. What the cloud does not give is in none.
func (a *Account) age() (oldest time.Duration) {
	for _, f := range a.Sources.All() {
		if f.Unavailable() {
			continue
		}
		age, ok := a.Consistency.Age(f.Relay)
		if !ok || !f.Relay.Status().Synced {
			return digest.Unknown
		}
		oldest = max(oldest, age)
	}
	return oldest
}
