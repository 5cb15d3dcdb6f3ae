package certificates

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-edge/weir/impl/bulletin"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/trust"
)

const (
	lookEvery   = 10 * time.Minute // after which a pool is looked at anyway
	resignsFor  = 5 * time.Minute  // after a switch, in which what the authority before has signed is signed again
	resignEvery = 30 * time.Second
	mostNames   = 5 // of nodes, in an Event
	doneKey     = contract.RotateAnnotation
	signerRole  = "signer"
	nextRole    = "next"
	beforeRole  = "before"
	refusedText = "RotationRefused"
	// by which the bundle after a theft is above the thief's: the clocks of a pool do not differ by more.
	leastAbove = time.Minute
)

// RotatorConfig is what a Rotator is made of. All fields are required.
type RotatorConfig struct {
	Client client.Client
	Reader client.Reader // not from a cache
	// Kept reports false when it knows without a request that the pool has no ConfigMap of its authority. Each news of a
	// node asks for a look at its pool, and most looks at a pool without an authority end here.
	Kept   func(ctx context.Context, pool string) bool
	Events events.EventRecorder
	Clock  clock.PassiveClock
	// Away are the nodes of a pool that have not told that they hold the bundle of a number, or a later one.
	Away func(ctx context.Context, pool string, number uint64) (nodes []string, err error)
	// Ends is told when the authority of a pool ends. It must not wait.
	Ends func(pool string, end time.Time)
	// Switched is called when another authority signs, and again for a while: what the one before has signed for the pool
	// has to be signed again.
	Switched func(ctx context.Context, pool string) error
	Metrics  *Metrics
	Log      *slog.Logger
}

// Rotator replaces the authorities of pools: when somebody asks for it by an annotation, and when they are due. See the
// package comment.
type Rotator struct {
	RotatorConfig
	vault vault
	said  map[string]time.Time // when it was told last that the authority of a pool ends
}

// NewRotator returns one that does nothing yet.
func NewRotator(c RotatorConfig) *Rotator {
	return &Rotator{c, vault{c.Client, c.Reader, c.Clock}, map[string]time.Time{}}
}

// Reconcile implements reconcile.Reconciler: a request is the name of a pool.
func (r *Rotator) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	due, err := r.look(ctx, q.Name)
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err): // another manager has done something
		return reconcile.Result{RequeueAfter: lag}, nil
	case err != nil && ctx.Err() == nil: // else anyone who takes over does it
		return reconcile.Result{}, fmt.Errorf("authority of pool %s: %w", q.Name, err)
	}
	wait := lookEvery
	if !due.IsZero() {
		wait = max(lag, min(wait, due.Sub(r.Clock.Now())))
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// kept is the authority of a pool as it is in the cluster.
type kept struct {
	pool   string
	told   *corev1.ConfigMap
	secret *corev1.Secret  // nil: it is lost
	s      *pki.Succession // nil: it cannot be used
	why    error           // of that
	above  uint64          // the least number of the next bundle; 0: any
}

func (r *Rotator) read(ctx context.Context, pool string) (*kept, error) {
	if !r.Kept(ctx, pool) {
		return nil, nil
	}
	k := &kept{pool: pool, told: &corev1.ConfigMap{}, secret: &corev1.Secret{}}
	key := types.NamespacedName{Namespace: contract.KeyNamespace, Name: keyName(pool)}
	if err := r.Reader.Get(ctx, key, k.told); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	switch err := r.Reader.Get(ctx, key, k.secret); {
	case apierrors.IsNotFound(err):
		k.secret, k.why = nil, errors.New("its Secret is lost")
		return k, nil
	case err != nil:
		return nil, err
	}
	if k.s, k.why = pki.LoadSuccession(k.secret.Data); k.why == nil {
		if k.why = pki.CheckAuthority(k.s.Signer.Cert(), pool); k.why != nil {
			k.s = nil
		}
	}
	return k, nil
}

// look takes the next step of a pool, if there is one, and says when the one after it is due.
func (r *Rotator) look(ctx context.Context, pool string) (due time.Time, err error) {
	k, err := r.read(ctx, pool)
	if err != nil || k == nil { // a pool without an authority gets one when it needs it
		return due, err
	}
	text, asked := k.told.Annotations[contract.RotateAnnotation]
	if asked && k.secret != nil && k.secret.Annotations[doneKey] == text {
		asked = false // it was carried out, and anyone who did that could not say so
	}
	now := r.Clock.Now()
	if k.s != nil {
		if err := r.recall(ctx, k, now); err != nil {
			return due, err
		}
	}
	switch {
	case asked:
		return due, r.obey(ctx, k, text, now)
	case k.s == nil:
		return due, nil // whoever needs it tells of that; somebody has to decide
	case k.s.Next != nil || k.s.MaySign(now) != nil:
		if due, err = r.settle(ctx, k, now); err != nil || due.IsZero() {
			return due, err
		}
	case len(k.s.Before) > 0 && !now.Before(k.s.RetireAt):
		return due, r.take(ctx, k, "", "AuthorityRetired", k.s.Retire(now))
	case k.s.Next == nil && k.s.MaySign(now) == nil && r.renewal(pool).Due(k.s.Signer.Cert()):
		err := r.prepare(k, now, pki.Usual())
		var no *pki.MismatchError
		if errors.As(err, &no) { // too many are trusted: it is tried again, to its end
			r.Log.Warn("the authority of a pool is due, and is not replaced", "pool", pool, "err", err)
			break
		}
		return due, r.take(ctx, k, "", "AuthorityPrepared", err)
	}
	r.measure(k, now)
	if !now.Before(k.s.SignsAt) && now.Sub(k.s.SignsAt) < resignsFor {
		if err := r.Switched(ctx, pool); err != nil {
			return due, err
		}
		due = now.Add(resignEvery)
	}
	p := trust.ProgressOf(k.s, now)
	if due.IsZero() {
		due = p.Due
	}
	return due, r.tell(ctx, k, text, p)
}

// settle lets the next authority sign, or the one in the place of a lost one, when all of the pool have told that they
// know it. A hub that is away is waited for until SignsAt. It says when to look again; the zero time: the step was
// taken.
func (r *Rotator) settle(ctx context.Context, k *kept, now time.Time) (due time.Time, err error) {
	last, err := trust.Last([]byte(k.told.Data[contract.TrustKey]), k.pool)
	if err != nil {
		return k.s.SignsAt, r.vault.publish(ctx, k.told, k.pool, k.s, 0, nil)
	}
	away, err := r.Away(ctx, k.pool, last.Number)
	if err != nil {
		return due, err
	}
	// A client that reports nothing, a person's program for one, has a moment as well.
	least := last.Issued.Add(pki.LeastSettle)
	if now.Before(k.s.SignsAt) && (len(away) > 0 || now.Before(least)) {
		if len(away) == 0 && least.Before(k.s.SignsAt) {
			return least, nil
		}
		return k.s.SignsAt, nil
	}
	if k.s.Next == nil { // it has signed nothing so far
		k.s.SignsAt = now
		return due, r.take(ctx, k, "", "AuthoritySwitched", nil)
	}
	if k.s.SignsAt.After(now) {
		k.s.SignsAt = now
	}
	if err := r.take(ctx, k, "", "AuthoritySwitched", k.s.Switch(now)); err != nil {
		return due, err
	}
	if n := len(away); n > 0 {
		names := strings.Join(away[:min(n, mostNames)], ", ")
		r.event(k, corev1.EventTypeWarning, "MembersAway",
			fmt.Sprintf("pool %s: %d nodes did not tell that they know the authority that signs now (%s): they follow when "+
				"they are back", k.pool, n, names))
	}
	return due, nil
}

// recall takes what hubs gave back: a bundle that this cluster has forgotten, because it was restored from a backup. It
// counts if the authority that signs here vouches for it. Those whom it trusts go on to count, so that what they signed
// does until it is renewed; their keys are lost. The next bundle is above it.
func (r *Rotator) recall(ctx context.Context, k *kept, now time.Time) error {
	back := &corev1.ConfigMap{}
	key := types.NamespacedName{Namespace: contract.KeyNamespace, Name: contract.ReturnedPrefix + k.pool}
	if err := r.Reader.Get(ctx, key, back); err != nil || back.Data[contract.TrustKey] == "" {
		return client.IgnoreNotFound(err)
	}
	last, err := trust.Last([]byte(k.told.Data[contract.TrustKey]), k.pool)
	if err != nil {
		last = trust.Bundle{}
	}
	trusted, number, err := trust.Later([]byte(back.Data[contract.TrustKey]), k.pool, k.s.Signer.Cert())
	if err != nil {
		r.Log.Warn("a trust bundle that hubs gave back is invalid", "pool", k.pool, "err", err)
		return nil
	}
	if number <= last.Number {
		return nil
	}
	if err := bulletin.At(now).Number(number); err != nil {
		r.Log.Warn("a trust bundle that hubs gave back is invalid", "pool", k.pool, "err", err)
		return nil
	}
	k.above = number + 1
	if !k.s.Recall(trusted, now) {
		return r.tell(ctx, k, "", trust.ProgressOf(k.s, now))
	}
	r.Log.Warn("the authority of a pool was replaced after the backup from which this cluster was restored: it signs "+
		"again, and its successors count until what they signed is renewed", "pool", k.pool)
	return r.take(ctx, k, "", "AuthorityRecalled", nil)
}

func (r *Rotator) renewal(pool string) pki.Renewal {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(pool))
	return pki.Renewal{Clock: r.Clock, Seed: sum.Sum64()}
}

func (r *Rotator) prepare(k *kept, now time.Time, p pki.Plan) error {
	next, err := pki.NewPoolAuthority(k.pool, now)
	if err != nil {
		return err
	}
	return k.s.Prepare(next, now, p)
}

// obey carries an order out, or refuses it.
func (r *Rotator) obey(ctx context.Context, k *kept, text string, now time.Time) error {
	o, plan, err := trust.ParseOrder(text)
	reason := "AuthorityPrepared"
	switch {
	case err != nil:
	case o.StolenKey:
		reason = "AuthorityReplaced"
		// Above all that a thief can have made others believe: its numbers are an hour ahead at most.
		k.above = bulletin.Next(0, now.Add(bulletin.Ahead+leastAbove))
		if k.s, err = r.fresh(k, nil, now, plan); err != nil {
			return err
		}
	case o.LostKey && k.s != nil:
		err = &pki.MismatchError{
			Field: "order", Value: "lost key", Allowed: "a rotation without --lost-key: the key is there",
		}
	case o.LostKey:
		reason = "AuthorityReplaced"
		if k.s, err = r.replacement(k, now, plan); err != nil {
			return err
		}
	case k.s == nil:
		err = &pki.MismatchError{
			Field: "order", Value: "rotate", Allowed: "a rotation with --lost-key: the key cannot be used: " + k.why.Error(),
		}
	default:
		err = r.prepare(k, now, plan)
	}
	if err == nil {
		return r.take(ctx, k, text, reason, nil)
	}
	var p trust.Progress
	if k.s != nil {
		p = trust.ProgressOf(k.s, now)
	}
	p.Order, p.Refused = o.ID, err.Error()
	r.event(k, corev1.EventTypeWarning, refusedText, err.Error())
	r.Log.Warn("a rotation of the authority of a pool is refused", "pool", k.pool, "err", err)
	return r.tell(ctx, k, text, p)
}

// replacement is an authority in the place of a lost one.
func (r *Rotator) replacement(k *kept, now time.Time, p pki.Plan) (*pki.Succession, error) {
	lost, err := pki.ParseCertificates([]byte(k.told.Data[contract.AuthorityKey]))
	if err != nil {
		r.Log.Warn("nobody knows which authorities a pool trusted: none of their certificates is valid any more",
			"pool", k.pool,
			"err", err)
	}
	return r.fresh(k, slices.DeleteFunc(lost, func(c *x509.Certificate) bool {
		return pki.CheckAuthority(c, k.pool) != nil
	}), now, p)
}

// fresh is an authority for which nobody vouches. What those of before have signed goes on to count, if they are given.
func (r *Rotator) fresh(k *kept, before []*x509.Certificate, now time.Time, p pki.Plan) (*pki.Succession, error) {
	a, err := pki.NewPoolAuthority(k.pool, now)
	if err != nil {
		return nil, err
	}
	return pki.Recover(before, a, now, p)
}

// take keeps a step that was taken, if nobody else has taken one, and tells of it. The key is kept first: whom nobody
// has the key of is never published.
func (r *Rotator) take(ctx context.Context, k *kept, order, reason string, err error) error {
	if err != nil {
		return err
	}
	secret := k.secret
	if secret == nil {
		secret = &corev1.Secret{ObjectMeta: meta(keyName(k.pool))}
	}
	if secret.Data, err = k.s.Files(); err != nil {
		return err
	}
	if order != "" {
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, doneKey, order)
	}
	if k.secret == nil {
		err = r.Client.Create(ctx, secret)
	} else {
		err = r.Client.Update(ctx, secret)
	}
	if err != nil {
		return err
	}
	now := r.Clock.Now()
	p := trust.ProgressOf(k.s, now)
	r.Metrics.steps.WithLabelValues(p.Step).Inc()
	r.measure(k, now)
	r.Log.Info("the authority of a pool changes", "pool", k.pool, "step", p.Step, "signer", p.Signer, "next", p.Next,
		"trusted", p.Trusted, "due", p.Due)
	if err := r.tell(ctx, k, order, p); err != nil {
		return err
	}
	r.event(k, corev1.EventTypeNormal, reason, fmt.Sprintf("pool %s: %s; %s signs, %d are trusted, next step at %s",
		k.pool, p.Step, p.Signer, p.Trusted, p.Due.Format(time.RFC3339)))
	if reason == "AuthoritySwitched" {
		return r.Switched(ctx, k.pool)
	}
	return nil
}

// tell publishes whom to trust and how far that is. An order that was carried out, or refused, goes.
func (r *Rotator) tell(ctx context.Context, k *kept, order string, p trust.Progress) error {
	var before trust.Progress
	_ = json.Unmarshal([]byte(k.told.Annotations[contract.RotationAnnotation]), &before)
	if o, _, err := trust.ParseOrder(order); err == nil && p.Refused == "" {
		p.Order = o.ID
	}
	if p.Order == "" && p.Refused == "" {
		p.Order, p.Refused = before.Order, before.Refused
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	annotate := func(a map[string]string) {
		a[contract.RotationAnnotation] = string(text)
		if order != "" && a[contract.RotateAnnotation] == order {
			delete(a, contract.RotateAnnotation)
		}
	}
	if k.s == nil { // there is nothing to publish
		annotate(k.told.Annotations)
		return r.Client.Update(ctx, k.told)
	}
	return r.vault.publish(ctx, k.told, k.pool, k.s, k.above, annotate)
}

// event is one of the ConfigMap that says whom to trust.
func (r *Rotator) event(k *kept, kind, reason, text string) {
	about := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{
			APIVersion: "v1", Kind: "ConfigMap",
		}, ObjectMeta: metav1.ObjectMeta{Namespace: k.told.Namespace, Name: k.told.Name, UID: k.told.UID},
	}
	r.Events.Eventf(about, nil, kind, reason, "ReplaceAuthority", "%s", text[:min(len(text), longText)])
}

// measure tells when the authorities of a pool end.
func (r *Rotator) measure(k *kept, now time.Time) {
	pool, s := k.pool, k.s
	end := map[string]time.Time{signerRole: s.Signer.Cert().NotAfter}
	if s.Next != nil {
		end[nextRole] = s.Next.Cert().NotAfter
	}
	for _, c := range s.Before {
		if e, ok := end[beforeRole]; !ok || c.NotAfter.Before(e) {
			end[beforeRole] = c.NotAfter
		}
	}
	for _, role := range []string{signerRole, nextRole, beforeRole} {
		if e, ok := end[role]; ok {
			r.Metrics.ends.WithLabelValues(pool, role).Set(float64(e.Unix()))
		} else {
			r.Metrics.ends.DeleteLabelValues(pool, role)
		}
	}
	last := end[signerRole]
	if s.Next != nil { // it takes over
		last = end[nextRole]
	}
	r.Ends(pool, last)
	if left := last.Sub(now); left < digest.Soon && now.Sub(r.said[pool]) >= sayEvery {
		r.said[pool] = now
		r.Log.Warn("the authority of a pool ends soon", "pool", pool, "end", last, "left", left)
		reason, text := authorityEnds(pool, last, now)
		r.event(k, corev1.EventTypeWarning, reason, text)
	}
}
