package source

import (
	"errors"
	"net/http"
	"time"

	"github.com/weir-edge/weir/impl/source/hop"
)

// barredPatience is for how long an upstream has to say that this client may not read before a relay that holds
// something believes it: a kube-apiserver that has just started says so before it knows its own rules.
const barredPatience = 5 * time.Second

// denied reports whether an upstream has answered that there is nothing for this client, and says so.
func (f *Feeder) denied(up *hop.Upstream, err error) {
	var s *hop.StatusError
	now := f.cfg.Clock.Now()
	switch {
	case !errors.As(err, &s) || s.Code != http.StatusForbidden:
		f.barred = time.Time{}
	case f.barred.IsZero():
		f.barred = now
	}
	switch {
	case s == nil, up.Unconfirmed, up.Admits() != nil:
	case s.Code == http.StatusNotFound, s.Code == http.StatusMethodNotAllowed,
		s.Code == http.StatusForbidden && (now.Sub(f.barred) >= barredPatience || !f.cfg.Relay.Status().Synced):
		f.cfg.Denied(up, s)
	}
}
