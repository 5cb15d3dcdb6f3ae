package identity

import (
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
)

// RefusalError says why a caller is not known. The reason is for the log; Status is what to answer.
type RefusalError struct {
	Reason string
	// Unsure tells that the cloud might take it.
	Unsure bool
}

func (r *RefusalError) Error() string { return r.Reason }

func refuse(reason string) *RefusalError { return &RefusalError{Reason: reason} }
func unsure(reason string) *RefusalError { return &RefusalError{Reason: reason, Unsure: true} }

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
	j.log.say("the cloud is away, and a read is refused", "user", u.Name, "read", a.String(), "reason", d.String())
	if d == denied {
		return u, apierrors.NewForbidden(schema.GroupResource{Group: a.Group, Resource: a.Resource}, a.Name,
			errors.New("the cloud denied it to "+u.Name+" when it was there"))
	}
	return u, unavailable("the cloud is away, and has not been seen to decide whether " + u.Name + " may do this")
}

// quiet says each thing once in a while: a pod that tries each second must not fill a disk.
type quiet struct {
	clock  clock.PassiveClock
	logger *slog.Logger

	mu   sync.Mutex
	said map[string]time.Time
}

const (
	quietFor = 10 * time.Minute
	maxSaid  = 256
)

func (q *quiet) say(msg string, args ...string) {
	key, now := msg, q.clock.Now()
	all := make([]any, len(args))
	for i, a := range args {
		all[i] = a[:min(len(a), 512)]
		key += "\x00" + a[:min(len(a), 512)]
	}
	q.mu.Lock()
	at, ok := q.said[key]
	told := ok && now.Sub(at).Abs() < quietFor
	if !told {
		if len(q.said) >= maxSaid || q.said == nil {
			q.said = map[string]time.Time{}
		}
		q.said[key] = now
	}
	q.mu.Unlock()
	if !told {
		q.logger.Warn(msg, all...)
	}
}
