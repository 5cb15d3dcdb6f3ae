package revocation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	poolv1 "github.com/weir-edge/weir/impl/pool"
)

const (
	// DeletedUnconfirmed is the reason of Events, and of the condition poolv1.DeletionsConfirmed.
	DeletedUnconfirmed = "DeletedUnconfirmed"
	named              = 5 // nodes in a message
)

// Answer is what a person types about nodes whose deletion nobody has confirmed.
func Answer(names []string) string {
	some, more := strings.Join(names[:min(len(names), named)], " "), ""
	if n := len(names) - named; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Sprintf("to take them back: kubectl weir node restore %s%s; if they are lost or stolen: kubectl weir "+
		"node revoke %[1]s%[2]s", some, more)
}

// announce tells of nodes whose deletion nobody has confirmed, when that is first seen.
func announce(r *Config, pool string, left []gone, barred map[string]string) {
	for _, g := range left {
		if b, ok := ParseBarred(barred[g.name]); !g.deleted || !ok || b.UID != g.UID || !b.Unconfirmed {
			continue
		}
		text := fmt.Sprintf("node %s of pool %s was deleted, and nobody has confirmed it: its certificates are revoked, "+
			"and it cannot register itself again; %s", g.name, pool, Answer([]string{g.name}))
		about := &corev1.Node{
			TypeMeta: metav1.TypeMeta{
				APIVersion: "v1", Kind: "Node",
			}, ObjectMeta: metav1.ObjectMeta{Name: g.name, UID: types.UID(g.UID)},
		}
		r.Events.Eventf(about, nil, corev1.EventTypeWarning, DeletedUnconfirmed, "Revoke", "%s", text)
		r.Log.Warn("a node was deleted, and nobody has confirmed it: its certificates are revoked all the same",
			"node", g.name, "uid", g.UID, "pool", pool, "answer", Answer([]string{g.name}))
	}
}

// tell keeps the condition poolv1.DeletionsConfirmed of the Pool, if there is one. It is there while it is False.
func tell(ctx context.Context, r *Config, pool string, unconfirmed []string) error {
	r.Metrics.unconfirmed.WithLabelValues(pool).Set(float64(len(unconfirmed)))
	if len(unconfirmed) == 0 {
		r.Metrics.unconfirmed.DeleteLabelValues(pool)
	}
	var p poolv1.Pool
	var uncached *cache.ErrResourceNotCached
	switch err := r.Client.Get(ctx, types.NamespacedName{Name: pool}, &p); {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err), errors.As(err, &uncached): // none, or the kind is not there
		return nil
	case err != nil:
		return fmt.Errorf("read Pool %s: %w", pool, err)
	}
	var changed bool
	if len(unconfirmed) == 0 {
		changed = meta.RemoveStatusCondition(&p.Status.Conditions, poolv1.DeletionsConfirmed)
	} else {
		c := metav1.Condition{
			Type: poolv1.DeletionsConfirmed, Status: metav1.ConditionFalse, Reason: DeletedUnconfirmed,
			LastTransitionTime: metav1.Time{Time: r.Clock.Now().Truncate(time.Second)},
			Message: fmt.Sprintf("%d nodes were deleted, and nobody has confirmed it: their certificates are revoked; %s",
				len(unconfirmed), Answer(unconfirmed)),
		}
		if changed = meta.SetStatusCondition(&p.Status.Conditions, c); changed {
			r.Events.Eventf(&p, nil, corev1.EventTypeWarning, DeletedUnconfirmed, "Revoke", "%s", c.Message)
		}
	}
	if !changed {
		return nil
	}
	if err := r.Client.Status().Update(ctx, &p); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("status of Pool %s: %w", pool, err)
	}
	return nil
}
