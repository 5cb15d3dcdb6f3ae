package beat

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/heartbeat"
	"github.com/weir-edge/weir/impl/lease"
	"github.com/weir-edge/weir/impl/process"
)

const (
	mirrorRetry  = 500 * time.Millisecond
	announceLook = 2 * time.Second
)

// Mirror keeps the Lease of this node in the coordinator. One write is under way at a time, on condition of the
// version: what was overtaken cannot undo what came later.
type Mirror struct {
	MirrorConfig

	poke chan struct{}
	turn chan struct{}         // holds a token while nobody writes
	held *coordinationv1.Lease // as the coordinator has it, nil: not known; whoever has the token may look

	mu      sync.Mutex
	pending *mirrored
}

// mirrored is a heartbeat that is to be mirrored.
type mirrored struct {
	heartbeat.Statement
	lease *coordinationv1.Lease // as the kubelet wrote it
	until time.Time
	done  func()
}

// MirrorConfig is what a mirror is made of.
type MirrorConfig struct {
	Coordinator Coordinator
	Node        string
	Timeout     time.Duration // of one write
	Clock       clock.WithTicker
	Logger      *slog.Logger
	Count       func(outcome string) // written, failed (and tried again), late (given up)
}

// NewMirror makes what knows nothing of the Lease yet.
func NewMirror(c MirrorConfig) *Mirror {
	m := &Mirror{MirrorConfig: c, poke: make(chan struct{}, 1), turn: make(chan struct{}, 1)}
	m.turn <- struct{}{}
	return m
}

// state mirrors a heartbeat soon, instead of one before that was not yet. It never blocks.
func (m *Mirror) state(s heartbeat.Statement, l *coordinationv1.Lease, until time.Time, written func()) {
	m.mu.Lock()
	m.pending = &mirrored{s, l, until, written}
	m.mu.Unlock()
	select {
	case m.poke <- struct{}{}:
	default:
	}
}

// next is what to write now, nil if there is nothing that is worth it.
func (m *Mirror) next() *mirrored {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pending != nil && m.Clock.Now().After(m.pending.until) {
		m.pending = nil
		m.Count("late")
	}
	return m.pending
}

// Run writes until ctx ends.
func (m *Mirror) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if m.next() == nil {
			select {
			case <-ctx.Done():
			case <-m.poke:
			}
			continue
		}
		if err := m.flush(ctx); err != nil && ctx.Err() == nil {
			m.Logger.Debug("cannot mirror a heartbeat; trying again", "err", err)
			m.Count("failed")
			process.Pause(ctx, m.Clock, mirrorRetry)
		}
	}
	return nil
}

// flush writes what is pending.
func (m *Mirror) flush(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-m.turn:
	}
	defer func() { m.turn <- struct{}{} }()
	s := m.next()
	if s == nil {
		return nil
	}
	err := m.write(ctx, func(l *coordinationv1.Lease) {
		l.OwnerReferences = s.lease.OwnerReferences
		l.Spec = coordinationv1.LeaseSpec{
			HolderIdentity: s.lease.Spec.HolderIdentity, LeaseDurationSeconds: s.lease.Spec.LeaseDurationSeconds,
		}
		lease.SetRenewTime(l, s.Renew)
		lease.SetDelegated(l, s.Delegated)
	})
	if err != nil {
		return err
	}
	m.Count("written")
	s.done()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pending == s {
		m.pending = nil
	}
	return nil
}

// withdraw withdraws that the node is cut off, and has the coordinator's word for it, or returns an error after
// heartbeat.Withdraw.
func (m *Mirror) withdraw(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, heartbeat.Withdraw)
	defer cancel()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-m.turn:
	}
	defer func() { m.turn <- struct{}{} }()
	m.mu.Lock()
	m.pending = nil
	m.mu.Unlock()
	if m.held != nil && !lease.IsDelegated(m.held) {
		return nil
	}
	return m.write(ctx, func(l *coordinationv1.Lease) { lease.SetDelegated(l, false) })
}

// write changes the Lease, or creates it, also to withdraw: a creation that is still under way must fail.
func (m *Mirror) write(ctx context.Context, change func(*coordinationv1.Lease)) (err error) {
	ctx, cancel := context.WithTimeout(ctx, m.Timeout)
	defer cancel()
	for range 3 {
		if m.held == nil {
			if m.held, err = m.read(ctx); err != nil {
				return err
			}
		}
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: contract.NodeLeaseNamespace, Name: m.Node}}
		method, path := http.MethodPost, lease.Path
		if m.held != nil {
			l = m.held.DeepCopy()
			method, path = http.MethodPut, lease.Path+"/"+m.Node
		}
		change(l)
		m.Coordinator.SetAddress(l)
		l.TypeMeta = metav1.TypeMeta{APIVersion: lease.Kind.APIVersion, Kind: lease.Kind.Kind}
		m.held = nil // not known, unless the answer tells
		var out coordinationv1.Lease
		var code int
		code, err = m.Coordinator.Do(ctx, method, path, l, &out)
		switch {
		case err == nil:
			m.held = &out
			return nil
		case code != http.StatusConflict && code != http.StatusNotFound:
			return err
		}
	}
	return err
}

// tell has the address at which this hub shows its relays in the Lease of its node: a coordinator that reads from
// nobody asks there.
func (m *Mirror) tell(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, m.Timeout)
	defer cancel()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-m.turn:
	}
	defer func() { m.turn <- struct{}{} }()
	if m.held, err = m.read(ctx); err != nil {
		return err
	}
	if m.held != nil {
		as := m.held.DeepCopy()
		if m.Coordinator.SetAddress(as); as.Annotations[contract.PoolAddress] == m.held.Annotations[contract.PoolAddress] {
			return nil
		}
	}
	return m.write(ctx, func(*coordinationv1.Lease) {})
}

// Announce tells it again and again, while nobody leads because no hub reaches the cloud.
func (m *Mirror) Announce(ctx context.Context, alone func() bool) error {
	for ctx.Err() == nil {
		process.Pause(ctx, m.Clock, announceLook+rand.N(announceLook))
		if alone() {
			if err := m.tell(ctx); err != nil && ctx.Err() == nil {
				m.Logger.Debug("cannot tell the coordinator where this hub shows its relays; trying again", "err", err)
			}
		}
	}
	return nil
}

// read returns nil if there is no Lease.
func (m *Mirror) read(ctx context.Context) (*coordinationv1.Lease, error) {
	var l coordinationv1.Lease
	switch code, err := m.Coordinator.Do(ctx, http.MethodGet, lease.Path+"/"+m.Node, nil, &l); {
	case code == http.StatusNotFound:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &l, nil
}
