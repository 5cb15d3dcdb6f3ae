package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/revocation"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

// lives is where nodes and pools are now that are not as the scenario has them.
type lives struct {
	mu    sync.Mutex
	at    map[string]string // node → pool that it went to
	unfed map[string]bool   // pools whose coordinator is asked by nobody
}

// present are the nodes that are in a pool now.
func (r *run) present(p scenario.Pool) (nodes []string) {
	r.lives.mu.Lock()
	defer r.lives.mu.Unlock()
	for _, n := range nodesOf(p) {
		if to, went := r.lives.at[n]; !went || to == p.Name {
			nodes = append(nodes, n)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(r.lives.at)) {
		if r.lives.at[n] == p.Name && !slices.Contains(nodes, n) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// leads notes who feeds a pool now: a coordinator that hubs were led away from falls behind, and nobody asks it.
func (r *run) leads(ctx context.Context, p scenario.Pool) {
	told, _, err := r.told(ctx, p)
	if err != nil || told == nil { // what was told before goes on
		return
	}
	r.lives.mu.Lock()
	defer r.lives.mu.Unlock()
	if r.lives.unfed == nil {
		r.lives.unfed = map[string]bool{}
	}
	r.lives.unfed[p.Name] = told.Annotations[contract.LeaderHubMode] == contract.ModeLeaderHubs
}

func (r *run) unfed(pool string) bool {
	r.lives.mu.Lock()
	defer r.lives.mu.Unlock()
	return r.lives.unfed[pool]
}

// Move implements scenario.Movers.
func (r *run) Move(ctx context.Context, at *scenario.Aim, to string) (scenario.Going, error) {
	return scenario.Going{
		Hold: func(ctx context.Context) error { return r.movedFor(ctx, at, to) },
		Heal: func(ctx context.Context) error {
			if err := r.move(ctx, at.Node, at.Pool.Name); err != nil {
				return err
			}
			return r.until(ctx, settlePatience, func() (bool, string) { return r.hasMoved(ctx, at.Node, to, at.Pool.Name) })
		},
	}, r.move(ctx, at.Node, to)
}

// move takes a node to another pool, as anyone who operates the cluster does: by the label of its Node, and by the
// flags of its hub.
func (r *run) move(ctx context.Context, node, to string) error {
	movable, ok := r.site.(runtime.Movable)
	if !ok {
		return errors.New("hubs do not move there")
	}
	c := &changed{name: node}
	var err error
	if c.in, err = r.objects(scenario.NodeObject); err != nil {
		return err
	}
	if err := c.patch(ctx, map[string]any{
		"metadata": map[string]any{"labels": map[string]any{contract.NodePoolLabel: to}},
	}); err != nil {
		return err
	}
	if err := movable.Move(node, to); err != nil {
		return err
	}
	hub, err := r.site.Part(runtime.HubOf(node))
	if err != nil {
		return err
	}
	r.Lost([]string{node})
	if err := hub.Stop(ctx); err != nil {
		return err
	}
	r.lives.mu.Lock()
	if r.lives.at == nil {
		r.lives.at = map[string]string{}
	}
	r.lives.at[node] = to
	r.lives.mu.Unlock()
	r.Lost([]string{node})
	return hub.Start(ctx)
}

// movedFor lasts as long as the node is in the other pool, and notes when all was as it should be there.
func (r *run) movedFor(ctx context.Context, at *scenario.Aim, to string) error {
	if err := r.until(ctx, at.Fault.For, func() (bool, string) {
		return r.hasMoved(ctx, at.Node, at.Pool.Name, to)
	}); err != nil {
		return fmt.Errorf("%s has not moved to %s: %w", at.Node, to, err)
	}
	r.outages.mu.Lock()
	r.applied = max(r.applied, time.Since(at.Began))
	r.outages.mu.Unlock()
	return sleep(ctx, time.Until(at.Began.Add(at.Fault.For)))
}

// hasMoved reports whether a node that was in one pool is in another: its grants are of that pool alone, and its hub
// leads or follows there.
func (r *run) hasMoved(ctx context.Context, node, from, to string) (bool, string) {
	for _, pool := range []string{from, to} {
		for _, role := range []string{revocation.HubRole, revocation.ScopeRole} {
			has, err := r.granted(ctx, role, pool, node)
			if err != nil {
				return false, err.Error()
			}
			if has != (pool == to) {
				return false, fmt.Sprintf("waiting for the grant %s of %s in %s: it is there: %v", role, node, pool, has)
			}
		}
		p := r.s.PoolOf(scenario.Fault{Pool: pool})
		if by, why := r.goesBy(ctx, p); !by {
			return false, why
		}
	}
	var s status
	if err := r.ask(ctx, runtime.HubOf(node), &s); err != nil || s.Pool != to || !s.holds() {
		return false, fmt.Sprintf("waiting for the hub of %s: it is %s of %s in %s (%v)", node, s.Role, s.Source, s.Pool, err)
	}
	return true, ""
}

// granted reports whether the user of a hub is named in the binding of a pool.
func (r *run) granted(ctx context.Context, role, pool, node string) (bool, error) {
	name := revocation.Binding(role, pool, nil).Name
	b, err := r.admin.RbacV1().ClusterRoleBindings().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
		return s.Name == contract.HubUserPrefix+pool+":"+node
	}), nil
}
