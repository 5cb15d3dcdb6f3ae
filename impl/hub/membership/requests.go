package membership

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/role"
)

const statusLimit = 2 * time.Second // for an answer to AskStatus

// requests are those that the member makes of the coordinator. They run beside the loop, and report to it.
type requests struct {
	coordinator *coordinator.Client
	limit       time.Duration        // of one
	now         func() time.Duration // of the machine
	failed      func()               // one failed: perhaps the coordinator is away
	logger      *slog.Logger

	results    chan role.Result
	answers    chan member.Answer
	tried, won atomic.Int64 // elections
}

// status asks the coordinator what it has, and reports the answer.
func (q *requests) status(ctx context.Context) {
	limit, cancel := context.WithTimeout(ctx, statusLimit)
	s, err := q.coordinator.Status(limit)
	cancel()
	if err != nil {
		s = nil
		q.logger.Debug("ask the coordinator for its status", "err", err)
	}
	select {
	case q.answers <- member.Answer{Status: s}:
	case <-ctx.Done():
	}
}

// do does an action and reports its result.
func (q *requests) do(ctx context.Context, a role.Action) {
	r := role.Result{Kind: a.Kind, Sent: q.now()}
	limit, cancel := context.WithTimeout(ctx, q.limit)
	err := q.perform(limit, a, &r)
	cancel()
	if err != nil && r.Outcome == role.OK {
		r.Outcome = role.Failed
		q.failed() // perhaps the coordinator is away
	}
	if err != nil {
		q.logger.Debug("request to the coordinator", "what", a.Kind.String(), "outcome", r.Outcome.String(), "err", err)
	}
	if a.Kind == role.Acquire {
		q.tried.Add(1)
		if r.Outcome == role.OK {
			q.won.Add(1)
		}
	}
	select {
	case q.results <- r:
	case <-ctx.Done():
	}
}

func (q *requests) perform(ctx context.Context, a role.Action, r *role.Result) (err error) {
	var conflict bool
	switch a.Kind {
	case role.ReadElection:
		r.Lease, err = q.coordinator.ReadLease(ctx, contract.ElectionLease)
	case role.ReadSync:
		r.Lease, err = q.coordinator.ReadLease(ctx, contract.InformerSync)
	case role.RenewSync:
		r.Lease, conflict, err = q.coordinator.WriteLease(ctx, contract.InformerSync, a.Lease, false)
	case role.Acquire, role.Renew, role.Release:
		r.Lease, conflict, err = q.coordinator.WriteLease(ctx, contract.ElectionLease, a.Lease, a.Kind == role.Acquire)
	}
	if conflict {
		r.Outcome = role.Conflict
	}
	if err == nil && (a.Kind == role.Acquire || a.Kind == role.ReadStatus) {
		// Read after the write: if the coordinator loses its disk in between, the term names a life that never saw the Lease.
		var s *member.PoolStatus
		if s, err = q.coordinator.Status(ctx); err == nil {
			r.Incarnation, r.Ready = s.Incarnation, s.Ready
		}
	}
	return err
}
