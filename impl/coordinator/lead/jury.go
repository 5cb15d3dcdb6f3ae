package lead

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/store"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/process"
	"github.com/weir-edge/weir/impl/relay"
)

const (
	noteKey   = "/weir/jury"
	juryRetry = 200 * time.Millisecond // after the watch of the note broke
	look      = time.Second            // between two looks at an open case
	deciding  = 5 * time.Second        // for etcd and the Lease to answer
)

// Notes are values that all replicas see; see store.Store.
type Notes interface {
	ReadNote(ctx context.Context, key string) (store.Note, error)
	WriteNote(ctx context.Context, key string, value []byte, over int64) (int64, error)
	FollowNote(ctx context.Context, key string, take func(store.Note)) error
}

// JuryConfig is what a Jury is made of. All of it is needed.
type JuryConfig struct {
	Notes  Notes
	Leader func() member.Leader
	Free   func(context.Context, member.Leader) error // takes the election Lease from a leader
	Relays func() []*relay.Relay
	Lied   func() // counts
	Clock  clock.WithTicker
	Logger *slog.Logger
}

// Jury decides whether the leader of the pool lied. See the package comment.
type Jury struct {
	JuryConfig

	mu       sync.Mutex
	state    JuryState
	revision int64
	seen     map[int64]time.Time // when an entry was first seen here
}

// NewJury makes one that knows of nothing.
func NewJury(c JuryConfig) *Jury { return &Jury{JuryConfig: c, seen: map[int64]time.Time{}} }

// Run follows the note, and decides, until ctx ends.
func (j *Jury) Run(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := j.Notes.FollowNote(ctx, noteKey, func(n store.Note) { _ = j.take(n) }); err != nil && ctx.Err() == nil {
				j.Logger.Debug("the watch of what is doubted ended", "err", err)
			}
			process.Pause(ctx, j.Clock, juryRetry)
		}
	}()
	for ctx.Err() == nil {
		process.Pause(ctx, j.Clock, look)
		if j.State().Case == nil {
			continue
		}
		if err := j.decide(ctx); err != nil && ctx.Err() == nil {
			j.Logger.Warn("cannot decide whether the leader lied; trying again", "err", err)
		}
	}
	<-done
	return nil
}

// State is what is known.
func (j *Jury) State() JuryState {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.state
}

// Doubt is what is doubted now, nil if nothing is.
func (j *Jury) Doubt() *contract.Doubt {
	if c := j.State().Case; c != nil {
		return &c.Doubt
	}
	return nil
}

// Floor is the first history of the cloud of a resource that does not come from a leader that lied; 0: any.
func (j *Jury) Floor(resource string) uint64 { return j.State().Floors[resource] }

// Refuses tells why a node may not write the election Lease with itself as the holder, "" if it may. age is how long
// ago the Lease was written, by this coordinator's clock; renews, that the node holds it.
func (j *Jury) Refuses(node string, renews bool, age time.Duration) string {
	m, ok := j.State().marked(node, j.age)
	switch {
	case !ok || !m.Lied:
		return ""
	case renews && j.Leader().Term.String() != m.Term: // it took the Lease since, because nobody else wanted it
		return ""
	case !renews && age >= Deference:
		return ""
	}
	return fmt.Sprintf("the pool's hubs found that the cloud contradicts what node %s fed as leader: it leaves the "+
		"Lease to others until nobody has wanted it for %v",
		node, Deference)
}

// Hear takes what the hub of a node says.
func (j *Jury) Hear(ctx context.Context, node string, d contract.Doubt) error {
	return j.change(ctx, func(s JuryState) (JuryState, error) {
		next, err := s.hear(node, d, j.Leader().Node, j.age)
		if err == nil && next.Case != s.Case {
			j.Logger.Warn("a hub compared the leader's word with the cloud's", "leader", d.Leader, "node", node,
				"contradicted", d.Confirmed,
				"resource", d.Resource, "namespace", d.Namespace, "name", d.Name)
		}
		return next, err
	})
}

// decide closes the case if that can be done, and takes the Lease from a leader that lied.
func (j *Jury) decide(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, deciding)
	defer cancel()
	var c *Case
	lied, decided, leader := false, false, member.Leader{}
	err := j.change(ctx, func(s JuryState) (next JuryState, err error) {
		leader, c = j.Leader(), s.Case
		term := ""
		if c != nil && leader.Node == c.Leader {
			term = leader.Term.String()
		}
		next, lied, decided = s.decide(term, j.age, s.raise(j.floors()))
		return next, nil
	})
	switch {
	case err != nil || !decided:
		return err
	case !lied:
		j.Logger.Warn("the leader is not found to lie: the hubs that said so are not heard for a while", "leader", c.Leader,
			"confirmed", c.Confirm, "denied", c.Deny)
		return nil
	}
	j.Lied()
	j.Logger.Error("the leader of the pool lied: hubs found that the cloud contradicts its data. It loses the Lease, "+
		"and all is listed again", "leader", c.Leader,
		"confirmed", c.Confirm, "denied", c.Deny, "resource", c.Resource, "namespace", c.Namespace, "name", c.Name)
	if leader.Node != c.Leader {
		return nil
	}
	if err := j.Free(ctx, leader); err != nil { // its next renewal is refused
		j.Logger.Warn("cannot take the Lease from a leader that lied: others wait until it expires", "leader", c.Leader,
			"err", err)
	}
	return nil
}

// floors are the histories after those that the relays are in.
func (j *Jury) floors() map[string]uint64 {
	all := map[string]uint64{}
	for _, r := range j.Relays() {
		if s := r.Status(); s.Synced {
			all[r.Resource().String()] = s.History.Next(s.Version).Number
		}
	}
	return all
}

// change writes another state in place of the present one, if it is another.
func (j *Jury) change(ctx context.Context, how func(JuryState) (JuryState, error)) error {
	for {
		n, err := j.Notes.ReadNote(ctx, noteKey)
		if err != nil {
			return fmt.Errorf("read what is doubted: %w", err)
		}
		if err := j.take(n); err != nil {
			return err
		}
		s := j.State()
		next, err := how(s)
		if err != nil || next.Serial == s.Serial && next.Case == s.Case {
			return err
		}
		raw, err := json.Marshal(next)
		if err != nil {
			return err
		}
		revision, err := j.Notes.WriteNote(ctx, noteKey, raw, n.Revision)
		if err != nil {
			return fmt.Errorf("write what is doubted: %w", err)
		}
		if revision > 0 {
			return j.take(store.Note{Value: raw, Revision: revision})
		}
	}
}

// take notes a state. Earlier ones come late.
func (j *Jury) take(n store.Note) error {
	if n.Value == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if n.Revision <= j.revision {
		return nil
	}
	var s JuryState
	if err := json.Unmarshal(n.Value, &s); err != nil {
		return fmt.Errorf("read what is doubted: %w", err)
	}
	j.state, j.revision = s, n.Revision
	now, seen := j.Clock.Now(), map[int64]time.Time{}
	for serial := range s.serials() {
		at, ok := j.seen[serial]
		if !ok {
			at = now
		}
		seen[serial] = at
	}
	j.seen = seen
	return nil
}

// age implements Ages.
func (j *Jury) age(serial int64) time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	if at, ok := j.seen[serial]; ok {
		return j.Clock.Since(at)
	}
	return 0
}
