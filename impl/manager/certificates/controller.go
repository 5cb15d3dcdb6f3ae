package certificates

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/impl/pki"
)

const (
	workers  = 4
	lag      = 100 * time.Millisecond
	mostWait = 10 * time.Second // of a request, for an authority that signs before it has to
	longText = 500              // of an Event's note and a condition's message

	deniedReason = "WeirDenied"
	failedReason = "WeirRefused" // approved by somebody else, and not signed
)

// Config of a Controller. All fields are required.
type Config struct {
	Cache  cache.Cache   // whose watch tells of requests; see Trim
	Client client.Client // writes
	Reader client.Reader // not from the cache
	Events events.EventRecorder
	Clock  clock.WithTicker
	Sign   bool // else another signer signs what is approved
	// Begin is when a certificate of a node has to begin at the earliest that is asked for, because those before are
	// refused, and lets what is signed until an end be revoked. An error: that is not known yet, or, a *pki.MismatchError,
	// not possible.
	Begin func(ctx context.Context, pool string, node *corev1.Node, asked *x509.CertificateRequest, end time.Time) (
		time.Time, error)
	// Granted reports whether it is written that a node is there, so that what it gets can be revoked, and what its users
	// may do at kube-apiserver. Before that nothing is approved or signed for it.
	Granted func(ctx context.Context, pool string, node *corev1.Node) (bool, error)
	Gate    *manifests.Gate // until requests may be read
	Metrics *Metrics
	Log     *slog.Logger
}

// Controller approves and signs requests while its Start runs.
type Controller struct {
	Config
	vault vault
}

// New returns a controller that does nothing yet.
func New(c Config) *Controller { return &Controller{c, vault{c.Client, c.Reader, c.Clock}} }

// Trim leaves of a request in the cache what says whether there is anything to do. What is in it is read when it is
// judged.
func Trim(o any) (any, error) {
	r, ok := o.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return o, nil
	}
	slim := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: r.Name, UID: r.UID, ResourceVersion: r.ResourceVersion},
	}
	slim.Spec.SignerName = r.Spec.SignerName
	for _, c := range r.Status.Conditions {
		slim.Status.Conditions = append(slim.Status.Conditions,
			certificatesv1.CertificateSigningRequestCondition{Type: c.Type})
	}
	if len(r.Status.Certificate) > 0 {
		slim.Status.Certificate = []byte{0}
	}
	return slim, nil
}

// Start implements manager.Runnable. It waits until requests may be watched at all: a cluster that lacks the grant for
// it must not lose the rest of weir-manager.
func (c *Controller) Start(ctx context.Context) error {
	requests := manifests.Listed(c.Reader, &certificatesv1.CertificateSigningRequestList{})
	if !c.Gate.Granted(ctx, "certificates; --certificates=off does without", requests) {
		return nil
	}
	ours := handler.TypedEnqueueRequestsFromMapFunc(
		func(_ context.Context, r *certificatesv1.CertificateSigningRequest) []reconcile.Request {
			if !concerns(r) {
				return nil
			}
			return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(r)}}
		})
	return manifests.Control(ctx, "certificates", c, workers,
		source.Kind(c.Cache, &certificatesv1.CertificateSigningRequest{}, ours))
}

// Reconcile implements reconcile.Reconciler: it takes the next step of one request.
func (c *Controller) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	r := &certificatesv1.CertificateSigningRequest{}
	if err := c.Reader.Get(ctx, q.NamespacedName, r); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !concerns(r) {
		return reconcile.Result{}, nil
	}
	err := c.step(ctx, r)
	switch {
	case apierrors.IsConflict(err): // somebody else has done something about it
		return reconcile.Result{RequeueAfter: lag}, nil
	case errors.Is(err, errNotGranted): // soon, mostly
		return reconcile.Result{RequeueAfter: min(max(lag, c.Clock.Since(r.CreationTimestamp.Time)), time.Minute)}, nil
	}
	var later *laterError
	if errors.As(err, &later) {
		c.Log.Info("a request waits", "request", r.Name, "why", later.error)
		return reconcile.Result{RequeueAfter: min(later.wait, mostWait)}, nil
	}
	return reconcile.Result{}, err
}

// laterError is of what has to wait, and is no failure.
type laterError struct {
	error
	wait time.Duration
}

func (c *Controller) step(ctx context.Context, r *certificatesv1.CertificateSigningRequest) error {
	f, err := examine(ctx, c.Reader, r)
	approved := has(r, certificatesv1.CertificateApproved)
	if err == nil && f != nil {
		err = c.known(ctx, f)
	}
	if err == nil && f != nil && f.token != "" && !approved {
		err = c.vault.spend(ctx, f.token, f.identity.Kind, f.node, r.UID)
	}
	switch {
	case err != nil && refusal(err) == nil:
		return err // not known yet: it is tried again
	case err != nil:
		return c.refuse(ctx, r, f, refusal(err))
	case f == nil:
		return nil
	case !approved:
		return c.approve(ctx, r, f)
	case c.Sign:
		return c.sign(ctx, r, f)
	}
	return nil
}

// errNotGranted says that it is not written yet that the node is there.
var errNotGranted = errors.New("the node is not known to its pool yet")

// known reports whether it is written that a node is there, and what its users may do. What a node has that nobody has
// written down cannot be revoked from it; and a user that may do nothing yet is worse than none.
func (c *Controller) known(ctx context.Context, f *finding) error {
	ok, err := c.Granted(ctx, f.subject.Pool, f.node)
	if err == nil && !ok {
		err = errNotGranted
	}
	return err
}

func (c *Controller) approve(ctx context.Context, r *certificatesv1.CertificateSigningRequest, f *finding) error {
	if err := c.conclude(ctx, "approval", r, certificatesv1.CertificateApproved, approvedReason,
		approval(f.node.Name, f.node.UID)); err != nil {
		return err
	}
	c.Metrics.requests.WithLabelValues("approved").Inc()
	c.Log.Info("certificate approved", "request", r.Name, "kind", f.identity.Kind, "node", f.node.Name,
		"pool", f.subject.Pool, "life", f.life)
	return nil
}

func (c *Controller) sign(ctx context.Context, r *certificatesv1.CertificateSigningRequest, f *finding) error {
	s, err := c.vault.open(ctx, f.subject.Pool)
	if err != nil {
		return err
	}
	if now := c.Clock.Now(); s.MaySign(now) != nil {
		return &laterError{s.MaySign(now), s.SignsAt.Sub(now)}
	}
	now := c.Clock.Now()
	begin, err := c.Begin(ctx, f.subject.Pool, f.node, f.request, now.Add(f.life))
	if no := refusal(err); no != nil {
		return c.refuse(ctx, r, f, no)
	}
	if err != nil {
		return fmt.Errorf("request %s: %w", r.Name, err)
	}
	if r.Status.Certificate, err = s.Signer.AnswerFrom(begin, f.identity, f.subject, f.request, now, f.life); err != nil {
		return fmt.Errorf("request %s: %w", r.Name, err)
	}
	if err := c.Client.SubResource("status").Update(ctx, r); err != nil {
		return fmt.Errorf("request %s: write the certificate: %w", r.Name, err)
	}
	c.Metrics.requests.WithLabelValues("signed").Inc()
	c.Log.Info("certificate signed", "request", r.Name, "kind", f.identity.Kind, "node", f.node.Name,
		"pool", f.subject.Pool, "life", f.life)
	return nil
}

// refuse denies a request. One that somebody else approved fails: it can be denied no more.
func (c *Controller) refuse(ctx context.Context, r *certificatesv1.CertificateSigningRequest, f *finding,
	why *pki.MismatchError) error {
	subresource, kind, reason, result := "approval", certificatesv1.CertificateDenied, deniedReason, "denied"
	if has(r, certificatesv1.CertificateApproved) {
		subresource, kind, reason, result = "status", certificatesv1.CertificateFailed, failedReason, "failed"
	}
	text := why.Error()
	text = strings.ToValidUTF8(text[:min(len(text), longText)], "")
	if err := c.conclude(ctx, subresource, r, kind, reason, text); err != nil {
		return err
	}
	c.Metrics.requests.WithLabelValues(result).Inc()
	pool, node := f.where()
	c.Metrics.refused.WithLabelValues(why.Field, pool, node).Inc()
	c.Events.Eventf(r, nil, corev1.EventTypeWarning, reason, "JudgeRequest", "%s", text)
	c.Log.Warn("certificate refused", "request", r.Name, "signer", r.Spec.SignerName, "requester", r.Spec.Username,
		"pool", pool, "node", node, "why", text)
	return nil
}

// conclude adds a condition, at the version of the request that was judged.
func (c *Controller) conclude(
	ctx context.Context, subresource string, r *certificatesv1.CertificateSigningRequest,
	t certificatesv1.RequestConditionType, reason, message string,
) error {
	r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: t, Status: corev1.ConditionTrue, Reason: reason, Message: message,
		LastUpdateTime: metav1.NewTime(c.Clock.Now()),
	})
	if err := c.Client.SubResource(subresource).Update(ctx, r); err != nil {
		return fmt.Errorf("request %s: write that it is %s: %w", r.Name, t, err)
	}
	return nil
}
