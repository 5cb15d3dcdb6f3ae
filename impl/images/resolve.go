package images

import (
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/images/desk"
)

// pollTag is how often a desk is asked for what another node asks a registry.
const pollTag = 250 * time.Millisecond

// resolver finds what tags lead to, and sees what registries say of them.
type resolver struct {
	*tagBook
	account *account
	timer   clock.Clock
	away    func() bool
	judged  func(registry string) bool // see Config.Judged
	listed  func(desk.Digest) bool
}

// resolve finds what a tag leads to, and by whose word; "": the registry is to be asked.
func (x *resolver) resolve(req *http.Request, ref reference) (d desk.Digest, from string) {
	away := x.away()
	if !away && x.judged != nil && x.judged(ref.registry) {
		return d, ""
	}
	end := x.timer.Now().Add(desk.Resolve)
	for x.account.pool != nil {
		answer, err := x.account.ask(req.Context(), desk.Ask{Tag: ref.name()})
		if err != nil {
			break
		}
		r := answer.Resolution
		if r != nil {
			x.learn(ref.name(), r.Digest, x.timer.Now().Add(-r.Age))
		}
		switch {
		case r != nil && r.Age <= desk.Fresh:
			return r.Digest, "pool"
		case away && r != nil:
			return r.Digest, "kept"
		case away || !answer.Resolving || !x.timer.Now().Before(end):
			end = time.Time{}
		}
		if end.IsZero() {
			break
		}
		select {
		case <-x.timer.After(pollTag):
		case <-req.Context().Done():
			return d, ""
		}
	}
	if away {
		if d, ok := x.last(ref.name()); ok {
			return d, "kept"
		}
	}
	return d, ""
}

// see sees whether a question for a manifest shows what a registry has said of a tag, and tells the pool.
func (x *resolver) see(req *http.Request, ref reference) {
	if req.Method == http.MethodHead || ref.registry == "" { // the client was given the digest by somebody else
		x.exclude(ref, ref.digest)
		return
	}
	name, at := x.guess(ref, req.Header.Get("Accept"), x.listed)
	if name == "" {
		return
	}
	x.learn(name, ref.digest, at)
	if x.account.pool == nil {
		return
	}
	_, _ = x.account.ask(req.Context(), desk.Ask{Resolved: []desk.Resolution{{
		Tag: name, Digest: ref.digest, Age: max(x.timer.Since(at), 0),
	}}}) // who cannot be told now is told with all that is known
}
