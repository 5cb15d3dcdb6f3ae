package source

import (
	"errors"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// barredPatience is for how long an upstream has to say that this client may not read before a relay that holds
// something believes it: a kube-apiserver that has just started says so before it knows its own rules.
const barredPatience = 5 * time.Second

// Status makes the error one that a relay can answer with, and tell others.
func (e *StatusError) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Code: int32(e.Code), Reason: e.Reason, Message: e.Message}
}

// denied tells whether an upstream has answered that there is nothing for this client, and says so.
func (f *Feeder) denied(up *Upstream, err error) {
	var s *StatusError
	now := f.cfg.Clock.Now()
	switch {
	case !errors.As(err, &s) || s.Code != http.StatusForbidden:
		f.barred = time.Time{}
	case f.barred.IsZero():
		f.barred = now
	}
	switch {
	case s == nil, up.Hearsay, up.admits() != nil:
	case s.Code == http.StatusNotFound, s.Code == http.StatusMethodNotAllowed,
		s.Code == http.StatusForbidden && (now.Sub(f.barred) >= barredPatience || !f.cfg.Relay.Status().Synced):
		f.cfg.Denied(up, s)
	}
}
