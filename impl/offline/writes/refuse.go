package writes

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-edge/weir/impl/store/queue"
)

// retryLater is the Retry-After of refusals, in seconds. client-go tries a request ten times, so a kubelet hears of a
// refusal within ten seconds, and a cloud that is back within one.
const retryLater = 1

// possible is what a refusal says can be written.
const possible = "until it is back, this node may write its own status, the status of its pods, and events"

// unavailable says that a write has to wait for the cloud. Nothing was done.
func unavailable(why string) *apierrors.StatusError {
	return later(apierrors.NewServiceUnavailable("the cloud is away: " + why))
}

func later(e *apierrors.StatusError) *apierrors.StatusError {
	if e.ErrStatus.Details == nil {
		e.ErrStatus.Details = &metav1.StatusDetails{}
	}
	e.ErrStatus.Details.RetryAfterSeconds = retryLater
	return e
}

// refusal words why a write that nobody can do here is refused.
func refusal(r *write) *apierrors.StatusError {
	switch {
	case r.Group == "coordination.k8s.io" && r.Resource.Name == "leases":
		return unavailable("a lease that is granted on this side may be granted on the other as well, so only the " +
			"heartbeat of this node is answered; try again when the cloud is back")
	case r.is(pods(), "") && (r.verb == "delete" || r.verb == "deletecollection"):
		return unavailable("what was deleted here would come back with the cloud's next list; the kubelet deletes its pods " +
			"when the cloud is back; " + possible)
	case !r.own && r.answerable():
		return unavailable("cannot " + r.verb + " " + r.target.String() +
			" in another name than this node's own: the cloud would take it in the node's name; " + possible)
	case r.late && r.own && r.answerable():
		return unavailable("cannot " + r.verb + " " + r.target.String() + " with a client certificate that has expired: " +
			"the cloud would get it with one that is good; try again with a new one")
	}
	return unavailable("cannot " + r.verb + " " + r.target.String() + "; " + possible)
}

// notQueued words why the queue does not take a write.
func notQueued(err error) *apierrors.StatusError {
	switch {
	case errors.Is(err, queue.ErrTooFast):
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests,
			Message: "the cloud is away: " + err.Error(), Details: &metav1.StatusDetails{RetryAfterSeconds: retryLater},
		}}
	case errors.Is(err, queue.ErrFull):
		return unavailable(err.Error())
	}
	return unavailable("this write cannot be kept: " + err.Error())
}

func groupResource(t target) schema.GroupResource {
	return schema.GroupResource{Group: t.Group, Resource: t.Resource.Name}
}

func notFound(t target) *apierrors.StatusError {
	return apierrors.NewNotFound(groupResource(t), t.name)
}

func conflict(t target, why string) *apierrors.StatusError {
	return apierrors.NewConflict(groupResource(t), t.name, errors.New(why))
}
