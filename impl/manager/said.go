package manager

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/impl/manager/pools"
	"github.com/weir-edge/weir/impl/manager/verdict"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// said follows what Pools say of silence, and what their status has kept of what hubs told. Where the kind is not
// installed, the usual policy counts for every pool.
type said struct {
	cache  cache.Cache
	reader client.Reader   // not from the cache
	gate   *manifests.Gate // until Pools may be read
	board  *board
	hubs   *pools.Ledger
	usual  verdict.Policy // of pools of which nothing else is said
	log    *slog.Logger

	mu      sync.Mutex
	none    bool                                        // the kind cannot be read
	watched toolscache.ResourceEventHandlerRegistration // nil: not yet
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: a replica that only listens knows them when it takes
// over.
func (s *said) NeedLeaderElection() bool { return false }

// known reports whether the board has been told what Pools said at the start. Before, a pool that is to be kept could
// be given up.
func (s *said) known() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.none || s.watched != nil && s.watched.HasSynced()
}

// Start implements manager.Runnable. It waits for the kind, since a watch that is refused would end the whole of
// weir-manager.
func (s *said) Start(ctx context.Context) error {
	if !s.gate.Granted(ctx, "Pools; until then the same counts for all pools that are silent", s.readable) {
		return nil
	}
	return s.watch(ctx)
}

// readable tells why Pools cannot be read, and notes that there is nothing to follow.
func (s *said) readable(ctx context.Context) error {
	err := s.reader.List(ctx, &poolv1.List{}, client.Limit(1))
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.none = true
	}
	return err
}

func (s *said) watch(ctx context.Context) error {
	informer, err := s.cache.GetInformer(ctx, &poolv1.Pool{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch Pools: %w", err)
	}
	registration, err := informer.AddEventHandler(s.handler())
	if err != nil {
		return fmt.Errorf("watch Pools: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched, s.none = registration, false
	return nil
}

func (s *said) handler() toolscache.ResourceEventHandler {
	policies, wrong := map[string]verdict.Policy{}, map[string]string{} // handlers run one at a time
	tell := func() {
		now := maps.Clone(policies)
		s.board.tell(func(_ time.Time, m *verdict.Machine) { m.SetPolicies(s.usual, now) })
	}
	set := func(o any) {
		p, ok := o.(*poolv1.Pool)
		if !ok {
			return
		}
		pools.Restore(s.hubs, p)
		policy, says, err := policyOf(p.Spec.WhenSilent)
		if is := fmt.Sprint(err); err == nil {
			delete(wrong, p.Name)
		} else if is != wrong[p.Name] { // each change of the status comes here
			wrong[p.Name] = is
			s.log.Error("whenSilent of a Pool is invalid: its pods are kept", "pool", p.Name, "err", err)
		}
		if delete(policies, p.Name); says {
			policies[p.Name] = policy
		}
		tell()
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, o any) { set(o) },
		DeleteFunc: func(o any) {
			if name, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(o); err == nil {
				delete(policies, name)
				delete(wrong, name)
				tell()
			}
		},
	}
}

// policyOf reads whenSilent. What is invalid is to keep.
func policyOf(w *poolv1.WhenSilent) (p verdict.Policy, says bool, err error) {
	switch {
	case w == nil:
		return p, false, nil
	case w.Action == poolv1.Keep && w.After == "":
		return p, true, nil
	case w.Action == poolv1.Evict:
		if d, err := time.ParseDuration(w.After); err == nil && d >= 0 {
			return verdict.Policy{Evict: true, After: d}, true, nil
		}
	}
	return p, true, fmt.Errorf("whenSilent: action %q, after %q: want %s, or %s and a duration, for example 1h", w.Action,
		w.After, poolv1.Keep, poolv1.Evict)
}
