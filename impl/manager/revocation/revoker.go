package revocation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/denylist"
	"github.com/weir-edge/weir/impl/pki"
)

const (
	lag   = 100 * time.Millisecond // after which a cache has heard of what was written
	again = time.Hour              // after which a pool is looked at anyway: its authority may be another one

	// MaxNodes are on a roster: an object has a megabyte.
	MaxNodes = 5000
)

// Revoker takes back what nodes had. See the package comment.
type Revoker struct{ Config }

// Reconcile implements reconcile.Reconciler: a request is the name of a pool.
func (r *Revoker) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	pool := q.Name
	if len(validation.IsDNS1123Subdomain(contract.DenylistPrefix+pool)) > 0 { // nor has it an authority
		return reconcile.Result{}, nil
	}
	stale, err := r.look(ctx, pool)
	if ctx.Err() != nil { // who takes over does it
		err = nil
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), err == nil && stale:
		return reconcile.Result{RequeueAfter: lag}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("pool %s: %w", pool, err)
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// look compares a pool with its roster. stale says that the cache is behind.
func (r *Revoker) look(ctx context.Context, pool string) (stale bool, err error) {
	var nodes corev1.NodeList
	if err := r.Client.List(ctx, &nodes, client.MatchingLabels{contract.NodePoolLabel: pool}); err != nil {
		return false, err
	}
	if n := len(nodes.Items); n > MaxNodes {
		return false, fmt.Errorf("it has %d nodes, and certificates of %d at most can be taken back: make two pools of it", n, MaxNodes)
	}
	kept, err := notes(ctx, r.Reader, contract.KeyNamespace, contract.RosterPrefix+pool)
	if err != nil {
		return false, err
	}
	before, now := read(kept), map[string]member{}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		now[n.Name] = memberOf(n).since(before[n.Name])
	}
	var left []gone
	for name, m := range before {
		if now[name].UID == m.UID {
			continue
		}
		away, deleted, err := r.away(ctx, pool, name, m)
		switch {
		case err != nil:
			return false, err
		case !away:
			stale, now[name] = true, m
		default:
			left = append(left, gone{name, m, deleted})
		}
	}
	slices.SortFunc(left, func(a, b gone) int { return strings.Compare(a.name, b.name) })
	if err := bar(ctx, &r.Config, pool, left); err != nil {
		return false, err
	}
	if err := r.deny(ctx, pool, left); err != nil {
		return false, err
	}
	ghosts, err := r.ghosts(ctx, pool, now)
	if err != nil {
		return false, err
	}
	if err := bar(ctx, &r.Config, pool, ghosts); err != nil {
		return false, err
	}
	granted := maps.Clone(now)
	for _, g := range ghosts {
		delete(granted, g.name)
	}
	if err := Grant(ctx, &r.Config, pool, slices.Sorted(maps.Keys(granted))); err != nil {
		return false, err
	}
	data, err := encode(now)
	if err != nil {
		return false, err
	}
	return stale, write(ctx, r.Client, kept, data)
}

// away asks kube-apiserver whether a node of the roster is not in the pool any more: a cache that is behind must not cost a node its certificates.
func (r *Revoker) away(ctx context.Context, pool, name string, m member) (away, deleted bool, err error) {
	var n corev1.Node
	switch err := r.Reader.Get(ctx, types.NamespacedName{Name: name}, &n); {
	case apierrors.IsNotFound(err):
		return true, true, nil
	case err != nil:
		return false, false, fmt.Errorf("read node %s: %w", name, err)
	}
	deleted = string(n.UID) != m.UID
	return deleted || n.Labels[contract.NodePoolLabel] != pool, deleted, nil
}

// deny writes the pool's list: with those who left, or anew if the authority that signed it is not the one that signs now.
func (r *Revoker) deny(ctx context.Context, pool string, left []gone) error {
	s, err := r.Authority(ctx, pool)
	if err != nil || s == nil { // a pool without an authority has no certificates
		return err
	}
	kept, err := notes(ctx, r.Reader, contract.KeyNamespace, contract.DenylistPrefix+pool)
	if err != nil {
		return err
	}
	now := r.Clock.Now()
	list, current := r.open(kept, pool, s)
	back, err := r.returned(ctx, pool, s)
	if err != nil {
		return err
	}
	number := list.Number
	list, more := list.Recall(now, back...)
	if len(left) == 0 && current && len(more) == 0 && list.Number == number {
		return nil
	}
	for _, e := range more {
		r.Metrics.revoked.WithLabelValues("recalled").Inc()
		r.Log.Warn("the cluster was restored from a backup, and its pool knows of a node whose certificates were taken back since", "pool", pool, "node", e.Node, "uid", e.UID)
	}
	for _, g := range left {
		more = append(more, denylist.Entry{Node: g.name, UID: g.UID, Deleted: g.deleted, Replica: g.Replica, Hosts: g.Hosts, Before: now.UTC().Truncate(time.Second)})
	}
	next, dropped := list.Next(now, more...)
	text, err := next.Sign(s.Signer)
	if err != nil {
		return err
	}
	if err := write(ctx, r.Client, kept, map[string]string{contract.DenylistKey: string(text)}); err != nil {
		return err
	}
	for _, g := range left {
		r.Metrics.revoked.WithLabelValues(g.cause()).Inc()
		r.Log.Info("the certificates of a node are taken back", "node", g.name, "uid", g.UID, "pool", pool, "cause", g.cause(), "number", next.Number)
	}
	for _, e := range dropped {
		r.Metrics.dropped.Inc()
		r.Log.Error("the denylist is full: certificates of a node that was deleted count again; replace the authority of the pool", "pool", pool, "node", e.Node, "deleted", e.Before)
	}
	return nil
}

// Resign signs the list of a pool anew if another authority signs now.
func (r *Revoker) Resign(ctx context.Context, pool string) error { return r.deny(ctx, pool, nil) }

// open reads the pool's list. current says that there is nothing to write anew: there is none, or the authority signed it that signs now. A list that no authority
// of the pool signed was written by somebody else.
func (r *Revoker) open(kept *corev1.ConfigMap, pool string, s *pki.Succession) (l denylist.List, current bool) {
	text := []byte(kept.Data[contract.DenylistKey])
	if len(text) == 0 {
		return denylist.List{Pool: pool}, true
	}
	if l, err := denylist.Open(text, pool, s.Trusted()[:1]); err == nil {
		return l, true
	}
	l, err := denylist.Open(text, pool, s.Trusted())
	if err != nil {
		r.Log.Error("the denylist of a pool does not count, and is begun anew: who holds it in the pool goes on with it", "pool", pool, "err", err)
		return denylist.List{Pool: pool}, false
	}
	return l, false
}

// returned are the lists that hubs gave back: this cluster has forgotten them, because it was restored from a backup. Those that an authority of the pool signed count.
func (r *Revoker) returned(ctx context.Context, pool string, s *pki.Succession) (all []denylist.List, err error) {
	kept, err := notes(ctx, r.Reader, contract.KeyNamespace, contract.ReturnedPrefix+pool)
	if err != nil {
		return nil, err
	}
	for n, line := range denylist.Lines([]byte(kept.Data[contract.DenylistKey])) {
		if n == denylist.MaxLists {
			break
		}
		l, err := denylist.Open(line, pool, s.Trusted())
		if err != nil {
			r.Log.Warn("a denylist that hubs gave back does not count", "pool", pool, "err", err)
			continue
		}
		all = append(all, l)
	}
	return all, nil
}

// ghosts are the Nodes of a pool that the pool knows to be deleted: a backup has brought them back. They stay on the roster until somebody deletes them again.
func (r *Revoker) ghosts(ctx context.Context, pool string, now map[string]member) (all []gone, err error) {
	list, err := r.list(ctx, pool)
	if err != nil {
		return nil, err
	}
	for _, e := range list.Entries {
		if m, ok := now[e.Node]; ok && e.Deleted && e.UID == m.UID {
			all = append(all, gone{e.Node, m, true})
		}
	}
	return all, nil
}

// ghost is why nothing is signed for a Node that the pool knows to be deleted: a backup has brought it back.
func (r *Revoker) ghost(ctx context.Context, pool string, node *corev1.Node) error {
	list, err := r.list(ctx, pool)
	if err != nil {
		return err
	}
	for _, e := range list.Entries {
		if e.Deleted && e.Node == node.Name && e.UID == string(node.UID) {
			return &pki.MismatchError{
				Field: "node", Value: fmt.Sprintf("%s, uid %s", node.Name, node.UID),
				Allowed: "a Node that was not deleted: this one was, and is there again because the cluster was restored from a backup; delete it",
			}
		}
	}
	return nil
}

// list is the pool's as it is; an empty one: it has none.
func (r *Revoker) list(ctx context.Context, pool string) (l denylist.List, err error) {
	kept, err := notes(ctx, r.Reader, contract.KeyNamespace, contract.DenylistPrefix+pool)
	if err != nil || len(kept.Data[contract.DenylistKey]) == 0 {
		return l, err
	}
	s, err := r.Authority(ctx, pool)
	if err != nil || s == nil {
		return l, err
	}
	l, _ = r.open(kept, pool, s)
	return l, nil
}

// Granted tells whether a node may read what its user may: it is on the roster, which is written last. A *pki.MismatchError says that it never will.
func (r *Revoker) Granted(ctx context.Context, pool string, node *corev1.Node) (bool, error) {
	roster, err := notes(ctx, r.Reader, contract.KeyNamespace, contract.RosterPrefix+pool)
	if err != nil || read(roster)[node.Name].UID != string(node.UID) {
		return false, err
	}
	return true, r.ghost(ctx, pool, node)
}

// Begin is when a certificate of a node has to begin at the earliest: those that began before are refused. An error says that this is not known yet.
func (r *Revoker) Begin(ctx context.Context, pool string, node *corev1.Node, commonName string, hosts []string) (time.Time, error) {
	roster, err := notes(ctx, r.Reader, contract.KeyNamespace, contract.RosterPrefix+pool)
	if err != nil {
		return time.Time{}, err
	}
	if m, ok := read(roster)[node.Name]; ok && m.UID != string(node.UID) {
		return time.Time{}, fmt.Errorf("node %s: the certificates of the Node of this name before it, uid %s, are still to be taken back", node.Name, m.UID)
	}
	list, err := r.list(ctx, pool)
	return list.Floor(commonName, hosts), err
}
