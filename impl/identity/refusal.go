package identity

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RefusalError says why a caller is not known. The reason is for the log; Status is what to answer.
type RefusalError struct {
	Reason string
	// Unsure tells that the cloud might take it.
	Unsure bool
	kind   string // the reason without what the caller has chosen
}

func (r *RefusalError) Error() string { return r.Reason }

func refuse(format string, args ...any) *RefusalError {
	return &RefusalError{Reason: fmt.Sprintf(format, args...), kind: format}
}

func unsure(format string, args ...any) *RefusalError {
	return &RefusalError{Reason: fmt.Sprintf(format, args...), Unsure: true, kind: format}
}

// Status is the answer to the caller.
func (r *RefusalError) Status() *apierrors.StatusError {
	if r.Unsure {
		return unavailable("the cloud is away, and the hub cannot tell who is calling")
	}
	return apierrors.NewUnauthorized("Unauthorized")
}

// unavailable names no time to wait: client-go would ask ten times before it told anybody.
func unavailable(why string) *apierrors.StatusError { return apierrors.NewServiceUnavailable(why) }

// Authorize is Verify and then Allowed: it tells who may do this read, or else what to answer.
func (j *Judge) Authorize(header http.Header, certified bool, a Attributes) (User, *apierrors.StatusError) {
	u, err := j.Verify(header, certified)
	if err != nil {
		var r *RefusalError
		if errors.As(err, &r) {
			return u, r.Status()
		}
		return u, unavailable("the hub cannot tell who is calling")
	}
	d := j.decide(u, a)
	if d == allowed {
		return u, nil
	}
	j.log.Say(slog.LevelWarn, string(u.at.caller[:]), "the cloud is away, and a read is refused", "user", u.Name, "read", a.String(), "reason", d.String())
	if d == denied {
		return u, apierrors.NewForbidden(schema.GroupResource{Group: a.Group, Resource: a.Resource}, a.Name,
			errors.New("the cloud denied it to "+u.Name+" when it was there"))
	}
	return u, unavailable("the cloud is away, and has not been seen to decide whether " + u.Name + " may do this")
}
