package access

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Why a request is refused before it takes anything of others, as the metric says it.
const (
	RefusedAnonymous = "anonymous"       // it has no credential
	refusedRate      = "caller-rate"     // its caller asks the cloud too often
	refusedCaller    = "caller-requests" // its caller has too much under way
	refusedSum       = "requests"        // all callers together have
	refusedUnproven  = "unproven"        // those who have not shown a good credential yet have
)

// busyError says that a bound is reached. Nothing was done.
type busyError struct{ status *apierrors.StatusError }

func (e *busyError) Error() string { return e.status.Error() }

// BusyStatus is the answer to a request that met a bound on its way; nil: it met none.
func BusyStatus(err error) *apierrors.StatusError {
	var busy *busyError
	if errors.As(err, &busy) {
		return busy.status
	}
	return nil
}
