package store

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/process"
	"github.com/weir-edge/weir/impl/source/hop"
)

const (
	fedKey       = "/weir/fed"
	fedRetry     = 200 * time.Millisecond
	claimTimeout = 5 * time.Second
)

// claim is what a replica says of itself when it begins to read the leader.
type claim struct {
	Replica string `json:"replica"`
	Term    string `json:"term"`
}

// Fed knows which of several replicas reads the leader: the one that claimed it last, because the leader writes its
// Lease there. A claim is one write to etcd for each change of the leader, or of the replica that it uses. Everybody
// else reads that replica, so that there is one even while two replicas believe that the leader uses them. Were that
// one wrong, the leader would write its Lease elsewhere, and that replica claim again.
type Fed struct {
	self   string
	others func(name string) *hop.Upstream
	store  *Store
	Moved  func() // the last claim is another one
	clock  clock.WithTicker
	logger *slog.Logger

	claiming sync.Mutex // held by one claim at a time

	mu       sync.Mutex
	last     claim
	revision int64
}

// NewFed makes it. Moved is to be set before Run.
func NewFed(of *Replicas, s *Store, c clock.WithTicker, logger *slog.Logger) *Fed {
	return &Fed{self: of.self, others: of.Upstream, store: s, clock: c, logger: logger}
}

// Reads implements pull.Replicas.
func (f *Fed) Reads() (name string, up *hop.Upstream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last.Replica, f.others(f.last.Replica)
}

// Claim says that this replica reads the leader of a term, unless it has said so last.
func (f *Fed) Claim(ctx context.Context, t contract.Term) error {
	f.claiming.Lock()
	defer f.claiming.Unlock()
	mine := claim{f.self, t.String()}
	f.mu.Lock()
	last := f.last
	f.mu.Unlock()
	if last == mine {
		return nil
	}
	raw, err := json.Marshal(mine)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	for {
		n, err := f.store.ReadNote(ctx, fedKey)
		if err != nil {
			return fmt.Errorf("read which replica reads the leader: %w", err)
		}
		revision, err := f.store.WriteNote(ctx, fedKey, raw, n.Revision)
		if err != nil {
			return fmt.Errorf("tell the other replicas which one reads the leader: %w", err)
		}
		if revision > 0 {
			f.saw(mine, revision)
			return nil
		}
	}
}

// Mine tells, by the word of a majority, whether no other replica has claimed to read the leader since this one did.
func (f *Fed) Mine(ctx context.Context) (bool, error) {
	n, err := f.store.ReadNote(ctx, fedKey)
	if err != nil {
		return false, fmt.Errorf("read which replica reads the leader: %w", err)
	}
	return f.take(n).Replica == f.self, nil
}

// Run follows the claims until ctx ends.
func (f *Fed) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := f.store.FollowNote(ctx, fedKey, func(n Note) { f.take(n) }); err != nil && ctx.Err() == nil {
			f.logger.Debug("the watch of the replica that reads the leader ended", "err", err)
		}
		process.Pause(ctx, f.clock, fedRetry)
	}
	return nil
}

func (f *Fed) take(n Note) claim {
	c := f.read(n)
	if c != (claim{}) {
		f.saw(c, n.Revision)
	}
	return c
}

// read is the claim of a note; none if there is none.
func (f *Fed) read(n Note) (c claim) {
	if n.Value == nil {
		return c
	}
	if err := json.Unmarshal(n.Value, &c); err != nil {
		f.logger.Warn("cannot read which replica reads the leader", "note", string(n.Value), "err", err)
		return claim{}
	}
	return c
}

// saw notes a claim. Earlier ones come late.
func (f *Fed) saw(c claim, revision int64) {
	f.mu.Lock()
	if revision <= f.revision {
		f.mu.Unlock()
		return
	}
	f.last, f.revision = c, revision
	f.mu.Unlock()
	f.logger.Info("the leader is read by", "replica", c.Replica, "term", c.Term)
	f.Moved()
}
