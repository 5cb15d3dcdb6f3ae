package shelter

import (
	"context"
	"net/http"
	"time"

	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/member"
)

// tellLapsed is how often the log says that this node's certificate has expired.
const tellLapsed = 10 * time.Minute

// Admit takes a caller with a certificate of this node that has expired, or that only the node's own authority has
// signed, for the node while the cloud is away, for as long as is allowed: nobody can renew it then. That is decided
// for each request. The one that is returned ends when the cloud is back, and nothing of it is sent there, then or
// later: the hub's own certificate would give it a name that it can no longer prove. So it reads, and writes nothing
// but heartbeats, which show that the node lives. done is to be called when it is over. While the cloud is there, the
// latter of the two is the node as long as the certificate counts by which the hub is the node there.
func (s *Shelter) Admit(req *http.Request, who access.Caller) (_ *http.Request, _ access.Caller, done func()) {
	if who.Lapsed.IsZero() || s.Judge.Now().After(who.Lapsed) {
		return req, who, func() {}
	}
	away, until := s.Cloud.IsAway()
	switch {
	case away:
		s.tellLapsed(who.Lapsed)
		ctx, cancel := context.WithCancel(uplink.Lapse(req.Context()))
		stop := context.AfterFunc(until, cancel)
		return req.WithContext(ctx), access.Caller{Kind: access.ThisNode, User: who.User}, func() {
			stop()
			cancel()
		}
	case who.Local && s.NodeCounts():
		return req, access.Caller{Kind: access.ThisNode, User: who.User}, func() {}
	case s.Cloud.Reach() == member.CloudUnknown:
		s.Cloud.Ask()
		who.Refusal = answer.Unavailable(
			"the client certificate has expired, and it is not known yet whether the cloud is away, so that it counts")
	}
	return req, who, func() {}
}

func (s *Shelter) tellLapsed(until time.Time) {
	now, last := s.Clock.Now().UnixNano(), s.toldLapsed.Load()
	if (last == 0 || now-last >= int64(tellLapsed)) && s.toldLapsed.CompareAndSwap(last, now) {
		s.Logger.Warn("the certificate by which this node calls its hub has expired; it counts while the cloud is away",
			"until", until.UTC().Format(time.RFC3339))
	}
}
