package revocation

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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

	"github.com/weir-edge/weir/impl/bulletin"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/limit"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/trust"
)

const (
	lag   = 100 * time.Millisecond // after which a cache has heard of what was written
	again = time.Hour              // after which a pool is looked at anyway: its authority may be another one
	soon  = 15 * time.Second       // and while a deletion is not confirmed

	mostReturned = 64 // lines that are looked at of what hubs gave back
)

// Revoker revokes what nodes had. See the package comment.
type Revoker struct {
	Config
	quiet *limit.Quiet
}

// New returns one that does nothing yet.
func New(c Config) *Revoker { return &Revoker{c, limit.NewQuiet(c.Clock, c.Log)} }

// Reconcile implements reconcile.Reconciler: a request is the name of a pool.
func (r *Revoker) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	pool := q.Name
	if len(validation.IsDNS1123Subdomain(contract.DenylistPrefix+pool)) > 0 { // nor has it an authority
		return reconcile.Result{}, nil
	}
	s, err := r.look(ctx, pool)
	if ctx.Err() != nil { // who takes over does it
		err = nil
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), err == nil && s.stale:
		return reconcile.Result{RequeueAfter: lag}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("pool %s: %w", pool, err)
	case len(s.unconfirmed) > 0: // an answer may come at any time
		return reconcile.Result{RequeueAfter: soon}, nil
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// look compares a pool with its roster. stale says that the cache is behind. Something that fails does not keep the
// rest: who left and could not be revoked stays on the roster, and who could not be granted anything comes there later.
func (r *Revoker) look(ctx context.Context, pool string) (s seen, err error) {
	var nodes corev1.NodeList
	if err := r.Client.List(ctx, &nodes, client.MatchingLabels{contract.NodePoolLabel: pool}); err != nil {
		return s, err
	}
	kept, err := notes(ctx, r.Reader, contract.KeyNamespace, contract.RosterPrefix+pool)
	if err != nil {
		return s, err
	}
	before, unread := read(kept)
	for _, name := range unread {
		r.leftOut("line", "a line of the roster of a pool cannot be read: what its node had is not revoked if it was deleted",
			"pool", pool, "node", name)
	}
	now := map[string]member{}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		now[n.Name] = memberOf(n).since(before[n.Name])
	}
	var left []gone
	var errs []error
	for name, m := range before {
		if now[name].UID == m.UID {
			continue
		}
		away, deleted, err := r.away(ctx, pool, name, m)
		switch {
		case err != nil:
			now[name], errs = m, append(errs, err)
		case !away:
			s.stale, now[name] = true, m
		default:
			left = append(left, gone{name, m, deleted})
		}
	}
	slices.SortFunc(left, func(a, b gone) int { return strings.Compare(a.name, b.name) })
	barred, barring := bar(ctx, &r.Config, pool, left, true)
	denying := r.deny(ctx, pool, left, now)
	granted := maps.Clone(now)
	if barring != nil || denying != nil {
		for _, g := range left {
			now[g.name] = g.member
			delete(granted, g.name)
		}
	}
	s.unconfirmed = unconfirmed(barred, pool, now)
	if barring == nil {
		announce(&r.Config, pool, left, barred)
	}
	errs = append(errs, barring, denying, tell(ctx, &r.Config, pool, s.unconfirmed))
	ghosts, err := r.ghosts(ctx, pool, granted)
	if err != nil {
		return s, errors.Join(append(errs, err)...)
	}
	if _, err := bar(ctx, &r.Config, pool, ghosts, false); err != nil {
		return s, errors.Join(append(errs, err)...)
	}
	data, over, err := encode(now, before)
	if err != nil {
		return s, errors.Join(append(errs, err)...)
	}
	for _, g := range ghosts {
		delete(granted, g.name)
	}
	for _, name := range over {
		delete(granted, name)
	}
	if n := len(over); n > 0 {
		r.Metrics.leftOut.WithLabelValues("node").Add(float64(n))
		errs = append(errs,
			fmt.Errorf("%d nodes, %s for one, have no room on its roster of %d nodes and %d bytes, and get no certificates: "+
				"make two pools of it", n, over[0], MaxNodes, maxRoster))
	}
	if err := Grant(ctx, &r.Config, pool, slices.Sorted(maps.Keys(granted))); err != nil {
		errs = append(errs, err)
		maps.DeleteFunc(data, func(name, _ string) bool { return before[name].UID != now[name].UID })
	}
	return s, errors.Join(append(errs, write(ctx, r.Client, kept, data))...)
}

// seen is what a look has seen.
type seen struct {
	stale       bool     // the cache is behind
	unconfirmed []string // nodes that were deleted, and nobody has confirmed it
}

// leftOut tells of something that counts for nothing, so that all others go on, and counts it.
func (r *Revoker) leftOut(what, msg string, args ...any) {
	r.Metrics.leftOut.WithLabelValues(what).Inc()
	r.quiet.Say(slog.LevelError, what, msg, args...)
}

// away asks kube-apiserver whether a node of the roster is not in the pool any more: a cache that is behind must not
// cost a node its certificates.
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

// deny writes the pool's list: with those who left, or again if the authority that signed it is not the one that signs
// now. Addresses of those who are there do not count as those of somebody who left: his own certificates are known by
// their keys as well.
func (r *Revoker) deny(ctx context.Context, pool string, left []gone, there map[string]member) error {
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
		r.Log.Warn("the cluster was restored from a backup, and its pool knows of a node whose certificates were "+
			"revoked since", "pool", pool, "node", e.Node, "uid", e.UID)
	}
	others := map[string]bool{}
	for _, m := range there {
		for _, h := range m.Hosts {
			others[h] = true
		}
	}
	for _, g := range left {
		hosts := slices.DeleteFunc(slices.Clone(g.Hosts), func(h string) bool { return others[h] })
		more = append(more, trust.Denial{
			Node: g.name, UID: g.UID, Deleted: g.deleted, Replica: g.Replica, Hosts: hosts,
			Keys: slices.Sorted(maps.Keys(g.Keys)), Before: now.UTC().Truncate(time.Second),
		})
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
		r.Log.Info("the certificates of a node are revoked", "node", g.name, "uid", g.UID, "pool", pool,
			"cause", g.cause(), "number", next.Number)
	}
	for _, e := range dropped {
		r.Metrics.dropped.Inc()
		r.Log.Error("the denylist is full: certificates of a node that was deleted are valid again; replace the authority "+
			"of the pool", "pool", pool, "node", e.Node, "deleted", e.Before)
	}
	return nil
}

// Resign signs the list of a pool again if another authority signs now.
func (r *Revoker) Resign(ctx context.Context, pool string) error { return r.deny(ctx, pool, nil, nil) }

// open reads the pool's list. current says that there is nothing to write again: there is none, or the authority signed
// it that signs now. A list that no authority of the pool signed was written by somebody else.
func (r *Revoker) open(kept *corev1.ConfigMap, pool string, s *pki.Succession) (l trust.Denylist, current bool) {
	text := []byte(kept.Data[contract.DenylistKey])
	// after a rotation an empty list is signed: without one, lists of the authority before would go on to count.
	if len(text) == 0 {
		return trust.Denylist{Pool: pool}, s.SignsAt.IsZero() || r.Clock.Now().Before(s.SignsAt)
	}
	l, by, err := trust.OpenDenylist(text, pool, s.Trusted())
	if err == nil && by.Equal(s.Signer.Cert()) {
		return l, true
	}
	if err != nil {
		r.Log.Error("the denylist of a pool is invalid, and is begun again: members of the pool that hold it go on with it",
			"pool", pool, "err", err)
		return trust.Denylist{Pool: pool}, false
	}
	return l, false
}

// returned are the lists that hubs gave back: this cluster has forgotten them, because it was restored from a backup.
// Those that an authority of the pool signed count, trust.MaxDenylists at most of the first mostReturned lines. What
// any hub of the pool wrote there beside them does not.
func (r *Revoker) returned(ctx context.Context, pool string, s *pki.Succession) (all []trust.Denylist, err error) {
	kept, err := notes(ctx, r.Reader, contract.KeyNamespace, contract.ReturnedPrefix+pool)
	if err != nil {
		return nil, err
	}
	lines := trust.DenylistLines([]byte(kept.Data[contract.DenylistKey]))
	for _, line := range lines[:min(len(lines), mostReturned)] {
		l, _, err := trust.OpenDenylist(line, pool, pki.Speakers(s.Trusted()))
		if err == nil {
			err = l.Within(bulletin.At(r.Clock.Now()))
		}
		if err != nil {
			r.leftOut("returned", "a denylist that hubs gave back does not count", "pool", pool, "err", err.Error())
			continue
		}
		if all = append(all, l); len(all) == trust.MaxDenylists {
			break
		}
	}
	return all, nil
}

// ghosts are the Nodes of a pool that the pool knows to be deleted: a backup has brought them back. They stay on the
// roster until somebody deletes them again.
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
				Allowed: "a Node that was not deleted: this one was, and is there again because the cluster was restored from a " +
					"backup; delete it",
			}
		}
	}
	return nil
}

// list is the pool's as it is; an empty one: it has none.
func (r *Revoker) list(ctx context.Context, pool string) (l trust.Denylist, err error) {
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

// Granted reports whether a node may read what its user may: it is on the roster, which is written last. A
// *pki.MismatchError says that it never will.
func (r *Revoker) Granted(ctx context.Context, pool string, node *corev1.Node) (bool, error) {
	roster, err := notes(ctx, r.Reader, contract.KeyNamespace, contract.RosterPrefix+pool)
	if err != nil {
		return false, err
	}
	if all, _ := read(roster); all[node.Name].UID != string(node.UID) {
		return false, nil
	}
	return true, r.ghost(ctx, pool, node)
}

// Begin is when a certificate of a node has to begin at the earliest, which is asked for and is to be signed until an
// end: those that began before are refused. It notes what has to be known of that certificate so that it can be
// revoked. An error says that this is not possible yet; a *pki.MismatchError, that it is not.
func (r *Revoker) Begin(ctx context.Context, pool string, node *corev1.Node, asked *x509.CertificateRequest,
	end time.Time) (time.Time, error) {
	roster, err := notes(ctx, r.Reader, contract.KeyNamespace, contract.RosterPrefix+pool)
	if err != nil {
		return time.Time{}, err
	}
	all, _ := read(roster)
	m, ok := all[node.Name]
	if ok && m.UID != string(node.UID) {
		return time.Time{},
			fmt.Errorf("node %s: the certificates of the Node of this name before it, uid %s, are still to be revoked",
				node.Name, m.UID)
	}
	name, hosts, key := asked.Subject.CommonName, slices.Clone(asked.DNSNames), trust.KeyOf(asked.PublicKey)
	for _, ip := range asked.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	replica := node.Labels[contract.CoordinatorLabel]
	ofAll := name == contract.CoordinatorName
	if ofAll || replica != "" && name == contract.ReplicaUser(pool, replica) {
		if !ok {
			return time.Time{}, fmt.Errorf("node %s is not on the roster of pool %s yet", node.Name, pool)
		}
		m.Replica = cmp.Or(replica, m.Replica)
		if ofAll {
			if err := m.signs(hosts, key, end, r.Clock.Now()); err != nil {
				return time.Time{}, err
			}
		}
		text, err := json.Marshal(m)
		if err != nil {
			return time.Time{}, err
		}
		data := maps.Clone(roster.Data)
		data[node.Name] = string(text)
		if err := write(ctx, r.Client, roster, data); err != nil {
			return time.Time{}, err
		}
	}
	list, err := r.list(ctx, pool)
	return list.Floor(name, hosts, []string{key}), err
}
