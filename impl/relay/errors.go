package relay

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errNotReady is the answer before the first list: never an empty list.
func errNotReady(res Resource) error {
	return unavailable("the cache of %s is not synced yet", res.GroupResource())
}

// errAhead is the answer to a read that is ahead of the cache after waiting for it
// (storage.NewTooLargeResourceVersionError).
func errAhead(version, reached uint64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", version, reached), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{
		{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"},
	}
	return err
}

func errTooOld(version, oldest uint64) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", version, oldest))
}

// unavailable asks the client to come back in a second.
func unavailable(why string, args ...any) error {
	err := apierrors.NewServiceUnavailable(fmt.Sprintf(why, args...))
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return err
}

// StatusOf is what a client is told of an error.
func StatusOf(err error) metav1.Status {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	s := status.Status()
	s.Kind, s.APIVersion = "Status", "v1"
	return s
}
