package hub

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/weir-edge/weir/impl/offline/writes"
)

// tellLapsed is how often the log says that this node's certificate has expired.
const tellLapsed = 10 * time.Minute

// errLapsed is why no door to the cloud opens for a request.
var errLapsed = errors.New("the client certificate has expired, so nothing is sent to the cloud for it")

// lapsedKey marks requests that came with a certificate that has expired.
type lapsedKey struct{}

func isLapsed(ctx context.Context) bool { return ctx.Value(lapsedKey{}) != nil }

// lapsedAs marks a context as another one is.
func lapsedAs(ctx, as context.Context) context.Context {
	if !isLapsed(as) {
		return ctx
	}
	return context.WithValue(ctx, lapsedKey{}, true)
}

// admit takes a caller with an expired certificate of this node for the node while the cloud is away, for as long as is allowed: nobody can renew it then. That is
// decided for each request. The one that is returned ends when the cloud is back, and nothing of it is sent there, then or later: the hub's own
// certificate would give it a name that it can no longer prove. So it reads, and writes nothing but heartbeats, which show that the node lives. done is to be called when it is over.
func (s *shelter) admit(req *http.Request, who caller) (_ *http.Request, _ caller, done func()) {
	if s == nil || who.lapsed.IsZero() || s.judge.Now().After(who.lapsed) {
		return req, who, func() {}
	}
	away, until := s.gone.state()
	switch {
	case away:
		s.tellLapsed(who.lapsed)
		ctx, cancel := context.WithCancel(context.WithValue(req.Context(), lapsedKey{}, true))
		stop := context.AfterFunc(until, cancel)
		return req.WithContext(ctx), caller{kind: thisNode, user: who.user}, func() {
			stop()
			cancel()
		}
	case s.cloud.reach() == writes.Unknown:
		s.cloud.ask()
		who.refusal = unavailable("the client certificate has expired, and it is not known yet whether the cloud is away, so that it counts")
	}
	return req, who, func() {}
}

func (s *shelter) tellLapsed(until time.Time) {
	now, last := s.clock.Now().UnixNano(), s.toldLapsed.Load()
	if (last == 0 || now-last >= int64(tellLapsed)) && s.toldLapsed.CompareAndSwap(last, now) {
		s.logger.Warn("the certificate by which this node calls its hub has expired; it counts while the cloud is away", "until", until.UTC().Format(time.RFC3339))
	}
}
