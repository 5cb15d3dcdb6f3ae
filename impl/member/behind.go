package member

import "time"

// BehindPatience is for how long an upstream that is fresh may be behind a relay's history before the relay takes up
// the upstream's. All of a pool may have begun again, without a disk, after the cloud was restored: then nobody else
// has counted. What shows a sign of the cloud after the relay knew, is right: the cloud was asked since it was
// restored.
const BehindPatience = 20 * time.Second

// Behind is an upstream that is seen to be in an earlier history than a relay. That the relay is fed from elsewhere for
// a moment changes nothing: a hub whose patience with the pool's cache is shorter than BehindPatience goes to the cloud
// and comes back, again and again.
type Behind struct {
	upstream    string
	mine        uint64    // the history of the relay
	since, seen time.Time // first, and last
}

// Yields notes that an upstream is behind, and reports for how long it has been, and whether that and its age prove
// that it is right. mine is the number of the relay's history. age is the time since the upstream's last sign of the
// cloud; below 0: not known. The count begins again when the upstream was not seen to be behind for longer than
// BehindPatience.
func (b *Behind) Yields(upstream string, mine uint64, age time.Duration, now time.Time) (
	waited time.Duration, yields bool) {
	if b.upstream != upstream || b.mine != mine || now.Sub(b.seen) > BehindPatience {
		*b = Behind{upstream: upstream, mine: mine, since: now}
	}
	b.seen = now
	waited = now.Sub(b.since)
	return waited, waited >= BehindPatience && age >= 0 && age < waited
}

// Ended notes that an upstream is not behind.
func (b *Behind) Ended(upstream string) {
	if b.upstream == upstream {
		*b = Behind{}
	}
}
