package identity

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
