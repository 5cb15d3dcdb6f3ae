package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/fence"
	"github.com/weir-edge/weir/impl/coordinator/store"
)

const (
	fedKey       = "/weir/fed"
	fedRetry     = 200 * time.Millisecond
	claimTimeout = 5 * time.Second
)

// claim is what a replica says of itself when the leader begins to feed it.
type claim struct {
	Replica string `json:"replica"`
	Term    string `json:"term"`
}

// fed knows which of several replicas the leader feeds: the one that claimed it last. A claim is one write to etcd for each
// change of the leader, or of the replica that it uses. Everybody else follows that replica; if it was itself fed until then, its
// feeds end, so that there is one even while two believe to have the leader's ear. Were that one wrong, the leader would come
// back at once and claim anew.
type fed struct {
	self   string
	store  *store.Store
	moved  func(error) // the leader feeds another replica, says the error
	clock  clock.WithTicker
	logger *slog.Logger

	claiming sync.Mutex // held by one claim at a time

	mu       sync.Mutex
	last     claim
	revision int64
	change   chan struct{} // closed at a change of last
}

func newFed(self string, s *store.Store, c clock.WithTicker, logger *slog.Logger) *fed {
	return &fed{self: self, store: s, clock: c, logger: logger, change: make(chan struct{})}
}

// now is the last claim, and a channel that is closed when there is a later one.
func (f *fed) now() (claim, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last, f.change
}

// claim says that this replica is fed under a term, unless one was fed under a later one. nil is the only replica, which need not say so.
func (f *fed) claim(ctx context.Context, t contract.Term) error {
	if f == nil {
		return nil
	}
	f.claiming.Lock()
	defer f.claiming.Unlock()
	mine := claim{f.self, t.String()}
	if last, _ := f.now(); last == mine {
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
			return fmt.Errorf("read who is fed: %w", err)
		}
		if err := f.read(n).refuses(t); err != nil {
			return err
		}
		revision, err := f.store.WriteNote(ctx, fedKey, raw, n.Revision)
		if err != nil {
			return fmt.Errorf("tell the other replicas who is fed: %w", err)
		}
		if revision > 0 {
			f.saw(mine, revision)
			return nil
		}
	}
}

// refuses tells why a feed may not be begun after a claim: that was made under a later term. A replica that was away knows of that
// from nowhere else, if it is the same node that leads.
func (c claim) refuses(t contract.Term) error {
	if last, err := contract.ParseTerm(c.Term); err == nil && last.Incarnation == t.Incarnation && last.Version > t.Version {
		return &fence.RefusedError{Reason: "term", Message: fmt.Sprintf("term %s is over, replica %s is fed under %s", t, c.Replica, last)}
	}
	return nil
}

// mine tells, by the word of a majority, whether no other replica has claimed to be fed since this one did.
func (f *fed) mine(ctx context.Context) (bool, error) {
	if f == nil {
		return true, nil
	}
	n, err := f.store.ReadNote(ctx, fedKey)
	if err != nil {
		return false, fmt.Errorf("read who is fed: %w", err)
	}
	return f.take(n).Replica == f.self, nil
}

// run follows the claims until ctx ends.
func (f *fed) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := f.store.FollowNote(ctx, fedKey, func(n store.Note) { f.take(n) }); err != nil && ctx.Err() == nil {
			f.logger.Debug("the watch of who is fed ended", "err", err)
		}
		t := f.clock.NewTimer(fedRetry)
		select {
		case <-t.C():
		case <-ctx.Done():
			t.Stop()
		}
	}
	return nil
}

func (f *fed) take(n store.Note) claim {
	c := f.read(n)
	if c != (claim{}) {
		f.saw(c, n.Revision)
	}
	return c
}

// read is the claim of a note; none if there is none.
func (f *fed) read(n store.Note) (c claim) {
	if n.Value == nil {
		return c
	}
	if err := json.Unmarshal(n.Value, &c); err != nil {
		f.logger.Warn("cannot read who is fed", "note", string(n.Value), "err", err)
		return claim{}
	}
	return c
}

// saw notes a claim. Earlier ones come late.
func (f *fed) saw(c claim, revision int64) {
	f.mu.Lock()
	if revision <= f.revision {
		f.mu.Unlock()
		return
	}
	f.last, f.revision = c, revision
	close(f.change)
	f.change = make(chan struct{})
	f.mu.Unlock()
	f.logger.Info("the leader feeds", "replica", c.Replica, "term", c.Term)
	if c.Replica != f.self {
		f.moved(fmt.Errorf("%w %s under term %s", errFedElsewhere, c.Replica, c.Term))
	}
}

var errFedElsewhere = errors.New("the leader feeds replica")
