package hub

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
)

const (
	mirrorRetry  = 500 * time.Millisecond
	announceLook = 2 * time.Second
)

// mirror keeps the Lease of this node in the coordinator. One write is under way at a time, on condition of the version: what was
// overtaken cannot undo what came later.
type mirror struct {
	coordinator *coordinator
	node        string
	timeout     time.Duration        // of one write
	now         func() time.Duration // of the heartbeat.Node
	clock       clock.WithTicker
	logger      *slog.Logger
	metrics     *metrics

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
}

func newMirror(c *coordinator, node string, timeout time.Duration, now func() time.Duration, clk clock.WithTicker, logger *slog.Logger, m *metrics) *mirror {
	x := &mirror{
		coordinator: c, node: node, timeout: timeout, now: now, clock: clk, logger: logger, metrics: m,
		poke: make(chan struct{}, 1), turn: make(chan struct{}, 1),
	}
	x.turn <- struct{}{}
	return x
}

// state mirrors a heartbeat soon, instead of one before that was not yet. It never blocks.
func (m *mirror) state(s heartbeat.Statement, lease *coordinationv1.Lease) {
	m.mu.Lock()
	m.pending = &mirrored{s, lease}
	m.mu.Unlock()
	select {
	case m.poke <- struct{}{}:
	default:
	}
}

// next is what to write now, nil if there is nothing that is worth it.
func (m *mirror) next() *mirrored {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pending != nil && m.now() > m.pending.Until {
		m.pending = nil
		m.metrics.mirrored.WithLabelValues("late").Inc()
	}
	return m.pending
}

// run writes until ctx ends.
func (m *mirror) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if m.next() == nil {
			select {
			case <-ctx.Done():
			case <-m.poke:
			}
			continue
		}
		if err := m.flush(ctx); err != nil && ctx.Err() == nil {
			m.logger.Debug("cannot mirror a heartbeat; trying again", "err", err)
			m.metrics.mirrored.WithLabelValues("failed").Inc()
			sleep(ctx, m.clock, mirrorRetry)
		}
	}
	return nil
}

// flush writes what is pending.
func (m *mirror) flush(ctx context.Context) error {
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
		l.Spec = coordinationv1.LeaseSpec{HolderIdentity: s.lease.Spec.HolderIdentity, LeaseDurationSeconds: s.lease.Spec.LeaseDurationSeconds}
		setRenewTime(l, s.Renew)
		setDelegated(l, s.Delegated)
	})
	if err != nil {
		return err
	}
	m.metrics.mirrored.WithLabelValues("written").Inc()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pending == s {
		m.pending = nil
	}
	return nil
}

// withdraw takes back that the node is cut off, and has the coordinator's word for it, or returns an error after heartbeat.Withdraw.
func (m *mirror) withdraw(ctx context.Context) error {
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
	if m.held != nil && !isDelegated(m.held) {
		return nil
	}
	return m.write(ctx, func(l *coordinationv1.Lease) { setDelegated(l, false) })
}

// write changes the Lease, or creates it, also to withdraw: a creation that is still under way must fail.
func (m *mirror) write(ctx context.Context, change func(*coordinationv1.Lease)) (err error) {
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	for range 3 {
		if m.held == nil {
			if m.held, err = m.read(ctx); err != nil {
				return err
			}
		}
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: contract.NodeLeaseNamespace, Name: m.node}}
		method, path := http.MethodPost, nodeLeasesPath
		if m.held != nil {
			l = m.held.DeepCopy()
			method, path = http.MethodPut, nodeLeasesPath+"/"+m.node
		}
		change(l)
		setAddress(l, m.coordinator.address())
		l.TypeMeta = metav1.TypeMeta{APIVersion: leaseKind.APIVersion, Kind: leaseKind.Kind}
		m.held = nil // not known, unless the answer tells
		var out coordinationv1.Lease
		var code int
		code, err = m.coordinator.do(ctx, method, path, l, &out)
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

// tell has the address at which this hub shows its relays in the Lease of its node: a coordinator that reads from nobody asks there.
func (m *mirror) tell(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-m.turn:
	}
	defer func() { m.turn <- struct{}{} }()
	if m.held, err = m.read(ctx); err != nil || m.held != nil && m.held.Annotations[contract.PoolAddress] == m.coordinator.address() {
		return err
	}
	return m.write(ctx, func(*coordinationv1.Lease) {})
}

// announce tells it again and again, while nobody leads because no hub reaches the cloud.
func (m *mirror) announce(ctx context.Context, alone func() bool) error {
	for ctx.Err() == nil {
		sleep(ctx, m.clock, announceLook+rand.N(announceLook))
		if alone() {
			if err := m.tell(ctx); err != nil && ctx.Err() == nil {
				m.logger.Debug("cannot tell the coordinator where this hub shows its relays; trying again", "err", err)
			}
		}
	}
	return nil
}

// read returns nil if there is no Lease.
func (m *mirror) read(ctx context.Context) (*coordinationv1.Lease, error) {
	var l coordinationv1.Lease
	switch code, err := m.coordinator.do(ctx, http.MethodGet, nodeLeasesPath+"/"+m.node, nil, &l); {
	case code == http.StatusNotFound:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &l, nil
}
