package beat

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"log/slog"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/heartbeat"
	"github.com/weir-edge/weir/impl/lease"
	"github.com/weir-edge/weir/impl/pki"
)

// RollCall is this hub's part in the roll call of its pool: it hands in an entry for each heartbeat, and hears by
// receipts whether the Lease of its node is renewed for that. A nil one does nothing. It is safe for concurrent use.
type RollCall struct {
	RollCallConfig
	began time.Time

	mu    sync.Mutex
	cover *heartbeat.Cover
	heard heartbeat.Notice // the last one that counts
}

// Desk is where entries are handed in.
type Desk interface {
	HandIn(ctx context.Context, e heartbeat.Entry) (heartbeat.Notice, error)
}

// RollCallConfig is what a roll call is made of.
type RollCallConfig struct {
	Node, Pool string
	Desk       Desk
	Trusted    func() []*x509.Certificate // who may sign receipts
	// Confirm is told the sum of the pool's signed documents, as the cloud had them after a time; nil: nobody is told.
	Confirm func(documents string, after time.Time)
	Clock   clock.PassiveClock
	Logger  *slog.Logger
}

// NewRollCall makes that of a hub that has heard of no receipt.
func NewRollCall(c RollCallConfig) *RollCall {
	seed := func() (s [16]byte) {
		_, _ = rand.Read(s[:]) // which never fails
		return s
	}
	return &RollCall{RollCallConfig: c, began: c.Clock.Now(), cover: heartbeat.NewCover(c.Node, seed)}
}

// beat takes a heartbeat of the kubelet, hands in its entry, and reports whether the pool brings it to the cloud. If
// the hub passes it, calm says how: see heartbeat.Cover. reaches: this hub could bring it itself. An entry for the
// period that is known is of no use once another one is open, so what is answered is heard first.
func (r *RollCall) beat(ctx context.Context, reaches bool) (covered, calm bool) {
	if r == nil {
		return false, false
	}
	ctx, cancel := context.WithTimeout(ctx, heartbeat.Withdraw)
	defer cancel()
	r.mu.Lock()
	r.cover.Beat(r.Clock.Since(r.began))
	entry := r.cover.Entry(reaches)
	r.mu.Unlock()
	for range 2 {
		n, err := r.Desk.HandIn(ctx, entry)
		if err != nil {
			r.Logger.Debug("the pool's roll call does not hear of a heartbeat", "err", err)
			break
		}
		if !r.hear(n) {
			break
		}
		r.mu.Lock()
		entry = r.cover.Entry(reaches)
		r.mu.Unlock()
		if entry.Period == 0 {
			break
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cover.Covered(), r.cover.Calm()
}

// lapses is how long the last heartbeat left to the pool waits for a receipt; false: another one is due before.
func (r *RollCall) lapses() (wait time.Duration, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.cover.Lapses()
	return at - r.Clock.Since(r.began), ok
}

// ask hears the newest receipt, and hands nothing in.
func (r *RollCall) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, heartbeat.Withdraw)
	defer cancel()
	if n, err := r.Desk.HandIn(ctx, heartbeat.Entry{Node: r.Node}); err == nil {
		r.hear(n)
	}
}

// hear reads a notice, and reports whether it opens a period that was not known. A receipt that says that the node was
// renewed for a heartbeat was signed after that heartbeat: that is how old what else it says may be, whoever kept it.
func (r *RollCall) hear(n heartbeat.Notice) (later bool) {
	receipt, later, after := r.read(n)
	if !after.IsZero() && receipt.Documents != "" && r.Confirm != nil {
		r.Confirm(receipt.Documents, after)
	}
	return later
}

// read reads a notice. after is the time of a heartbeat of which no receipt was known before; zero: it has none.
func (r *RollCall) read(n heartbeat.Notice) (receipt heartbeat.Receipt, later bool, after time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n == r.heard || n.Receipt == "" {
		return receipt, false, after
	}
	receipt, err := heartbeat.OpenReceipt(n.Receipt, r.Pool, pki.Vouches, r.Trusted())
	if err != nil {
		r.Logger.Debug("the pool's roll call has a receipt that does not count", "err", err)
		return receipt, false, after
	}
	r.heard = n
	before, _ := r.cover.Renewed()
	later = r.cover.Hear(receipt, n.Roster)
	if at, ever := r.cover.Renewed(); ever && at > before {
		after = r.began.Add(at)
	}
	return receipt, later, after
}

// Period is the newest that is known to be open.
func (r *RollCall) Period() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cover.Period()
}

// anchor is what the Lease of the node has to carry, "" if nothing.
func (r *RollCall) anchor() string {
	if r == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cover.Anchor()
}

// shared reports whether others may write the Lease of the node.
func (r *RollCall) shared() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cover.Shared()
}

// least is the renewTime to pass in the place of another.
func (r *RollCall) least(own time.Time) time.Time {
	if r == nil {
		return own
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cover.Least(r.Clock.Since(r.began), own)
}

// direct takes the Lease as the cloud has it after a heartbeat that this hub passed.
func (r *RollCall) direct(l *coordinationv1.Lease) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cover.Direct(lease.RenewTime(l), lease.AlongOf(l).Anchor)
}

// Renewed is when the last heartbeat came of which there is a receipt; zero: there is none.
func (r *RollCall) Renewed() time.Time {
	if r == nil {
		return time.Time{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ever := r.cover.Renewed()
	if !ever {
		return time.Time{}
	}
	return r.began.Add(at).UTC()
}
