package renewals

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/heartbeat"
	"github.com/weir-edge/weir/impl/lease"
	"github.com/weir-edge/weir/impl/pki"
)

const (
	// parallel is how many Leases are written at a time, of all pools.
	parallel = 64
	// patience is for how long the Leases of one report may be written. Then there is the next report.
	patience = heartbeat.Attempt
	// apart is between two reports of a pool that are looked at, however many come.
	apart = heartbeat.RollEvery / 4
	// sure is for how long the authority of a pool is taken to be the same, unless its keys are seen to change.
	sure = 10 * time.Minute
	// again is when it is looked for the key of an authority again, if there is none or it cannot be read.
	again = time.Minute
	// rarely is how often a pool is reported in whose report something is wrong.
	rarely = time.Minute
)

// keeper takes the reports of all pools. It is safe for concurrent use, for one request of each pool at a time. A
// request is the name of a pool.
type keeper struct {
	lease  func(ctx context.Context, pool string) (*coordinationv1.Lease, error) // nil: there is none
	cache  client.Reader                                                         // of Nodes, and of their Leases
	client client.Client                                                         // its reads are from no cache
	// nil without an error: nobody signs for the pool here.
	signer func(ctx context.Context, pool string) (*pki.Authority, error)
	// the sum of a pool's signed documents; nil: nobody knows it.
	documents func(ctx context.Context, pool string) string
	clock     clock.PassiveClock
	began     time.Time
	metrics   *Metrics
	log       *slog.Logger
	slots     chan struct{}

	mu    sync.Mutex
	pools map[string]*pool
}

// pool is what is known of one. Its fields belong to the request that is under way.
type pool struct {
	name    string
	account *heartbeat.Account // nil: no report was judged yet
	nodes   map[string]*sight
	text    string    // the report that was taken last
	receipt string    // of it; "": it is written
	at      time.Time // when
	told    time.Time // of something wrong
	// unsigned is a report that was counted as such.
	unsigned string

	mu     sync.Mutex
	key    *pki.Authority // nil: there is none
	failed error          // why the key cannot be read
	until  time.Time      // it is looked for again
}

// of is what is known of a pool.
func (k *keeper) of(name string) *pool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pools[name] == nil {
		k.pools[name] = &pool{name: name, nodes: map[string]*sight{}}
	}
	return k.pools[name]
}

// forget forgets a pool that has gone.
func (k *keeper) forget(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.pools, name)
	k.metrics.last.DeleteLabelValues(name)
}

// rekeyed says that the authority of a pool may be another one.
func (k *keeper) rekeyed(name string) {
	p := k.of(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = time.Time{}
}

// Reconcile implements reconcile.Reconciler.
func (k *keeper) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	l, err := k.lease(ctx, r.Name)
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case l == nil:
		k.forget(r.Name)
		return reconcile.Result{}, nil
	case l.Spec.HolderIdentity == nil:
		return reconcile.Result{}, nil
	}
	p, text := k.of(r.Name), *l.Spec.HolderIdentity
	if text == p.text {
		return k.answer(ctx, p, l), nil
	}
	if wait := apart - k.clock.Since(p.at); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	p.text, p.receipt, p.at = text, "", k.clock.Now()
	report, err := heartbeat.ParseReport(text)
	if err != nil {
		k.count(p, "invalid", err)
		return reconcile.Result{}, nil
	}
	key, err := k.keyOf(ctx, p)
	if key == nil {
		if err != nil {
			return k.fail(p, err), nil
		}
		p.text = "" // the leader may have no other, and somebody may bring the key
		if text != p.unsigned {
			p.unsigned = text
			k.count(p, "unsigned", fmt.Errorf("no Secret %s/%s%s has the key of its authority", contract.KeyNamespace,
				contract.AuthorityPrefix, p.name))
		}
		return reconcile.Result{RequeueAfter: again}, nil
	}
	if p.account == nil {
		last, _ := heartbeat.OpenReceipt(l.Annotations[contract.ReceiptAnnotation], p.name, pki.Vouches,
			[]*x509.Certificate{key.Cert()})
		p.account = heartbeat.NewAccount(last.Period)
	}
	renewed, err := k.take(ctx, p, report)
	if err == nil {
		receipt := p.account.Receipt(k.clock.Since(k.began), k.clock.Now(), report, renewed)
		if k.documents != nil {
			receipt.Documents = k.documents(ctx, p.name)
		}
		p.receipt, err = receipt.Sign(key, p.name)
	}
	if err != nil {
		return k.fail(p, err), nil
	}
	k.metrics.reports.WithLabelValues("taken").Inc()
	k.metrics.last.WithLabelValues(p.name).Set(float64(k.clock.Now().Unix()))
	return k.answer(ctx, p, l), nil
}

// fail lets a report be looked at again: the leader may have no other.
func (k *keeper) fail(p *pool, err error) reconcile.Result {
	p.text = ""
	k.count(p, "failed", err)
	return reconcile.Result{RequeueAfter: apart}
}

// take judges a report and renews the nodes in it. It reports which entries were renewed.
func (k *keeper) take(ctx context.Context, p *pool, r heartbeat.Report) ([]bool, error) {
	var nodes corev1.NodeList
	if err := k.cache.List(ctx, &nodes, client.MatchingLabels{contract.NodePoolLabel: p.name}); err != nil {
		return nil, err
	}
	members := make(map[string]bool, len(nodes.Items))
	for i := range nodes.Items {
		members[nodes.Items[i].Name] = true
	}
	for node := range p.nodes {
		if !members[node] {
			p.account.Forget(node)
			delete(p.nodes, node)
		}
	}
	leases := map[string]*coordinationv1.Lease{}
	verdicts := p.account.Judge(k.clock.Since(k.began), r, func(node string) (heartbeat.Anchor, bool) {
		l := &coordinationv1.Lease{}
		at := client.ObjectKey{Namespace: contract.NodeLeaseNamespace, Name: node}
		if !members[node] || k.cache.Get(ctx, at, l) != nil {
			return heartbeat.Anchor{}, false
		}
		anchor, err := heartbeat.ParseAnchor(l.Annotations[contract.AnchorAnnotation])
		if leases[node] = l; p.nodes[node] == nil {
			p.nodes[node] = &sight{}
		}
		return anchor, err == nil
	})
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	errs, renewed := make([]error, len(verdicts)), make([]bool, len(verdicts))
	var all errgroup.Group
	for i, v := range verdicts {
		if v != heartbeat.Renew {
			continue
		}
		all.Go(func() error {
			node := r.Entries[i].Node
			if errs[i] = k.renew(ctx, leases[node], p.nodes[node]); errs[i] == nil {
				renewed[i] = true
			}
			return nil
		})
	}
	_ = all.Wait() // each entry has its own error
	k.tell(p, r, verdicts, errs)
	return renewed, nil
}

// renew renews one Lease, when there is room.
func (k *keeper) renew(ctx context.Context, l *coordinationv1.Lease, s *sight) error {
	select {
	case k.slots <- struct{}{}:
		defer func() { <-k.slots }()
		return s.renew(ctx, k.client, k.clock, l)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// answer writes the receipt of the last report, unless it is written.
func (k *keeper) answer(ctx context.Context, p *pool, l *coordinationv1.Lease) reconcile.Result {
	if p.receipt == "" {
		return reconcile.Result{}
	}
	answer := &lease.Patch{}
	answer.Annotate(contract.ReceiptAnnotation, p.receipt)
	if len(l.ManagedFields) > 0 { // they would come back to the leader with each answer
		answer.Unmanage()
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := send(ctx, k.client, client.ObjectKeyFromObject(l), answer); err != nil {
		k.warn(p, "what was renewed for a pool cannot be answered", "err", err)
		return reconcile.Result{RequeueAfter: apart}
	}
	p.receipt = ""
	return reconcile.Result{}
}

// keyOf is the authority that signs for a pool.
func (k *keeper) keyOf(ctx context.Context, p *pool) (*pki.Authority, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := k.clock.Now(); !now.Before(p.until) {
		if p.key, p.failed = k.signer(ctx, p.name); p.key != nil {
			p.until = now.Add(sure)
		} else {
			p.until = now.Add(again)
		}
	}
	return p.key, p.failed
}

// tell counts what became of each entry, and reports what is wrong.
func (k *keeper) tell(p *pool, r heartbeat.Report, verdicts []heartbeat.Verdict, errs []error) {
	var first error
	wrong := 0
	for i, v := range verdicts {
		outcome, err := v.String(), errs[i]
		switch {
		case errors.Is(err, errCutOff):
			outcome, err = heartbeat.CutOff.String(), nil
		case err != nil:
			outcome = "failed"
		case v == heartbeat.Renew:
			outcome = "renewed"
		case v == heartbeat.Wrong, v == heartbeat.Unknown:
			err = fmt.Errorf("node %s is %s", r.Entries[i].Node, v)
		}
		k.metrics.beats.WithLabelValues(outcome).Inc()
		if err != nil {
			if wrong++; first == nil {
				first = err
			}
		}
	}
	if wrong > 0 {
		k.warn(p, "nodes of a report are not renewed", "nodes", len(verdicts), "wrong", wrong, "first", first)
	}
}

// count counts a report that is not taken.
func (k *keeper) count(p *pool, outcome string, err error) {
	k.metrics.reports.WithLabelValues(outcome).Inc()
	k.warn(p, "the report of a pool is not taken: its nodes renew themselves", "outcome", outcome, "err", err)
}

func (k *keeper) warn(p *pool, what string, about ...any) {
	if now := k.clock.Now(); p.told.IsZero() || now.Sub(p.told) >= rarely {
		p.told = now
		k.log.Warn(what, append([]any{"pool", p.name}, about...)...)
	}
}
