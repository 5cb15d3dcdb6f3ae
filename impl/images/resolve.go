package images

import (
	"context"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/exchange"
)

// pollTag is how often a desk is asked for what another node asks a registry.
const pollTag = 250 * time.Millisecond

// resolver finds what tags lead to, and sees what registries say of them.
type resolver struct {
	*tagBook
	account *account
	timer   clock.Clock
	away    func() bool
	left    func(context.Context) bool // the cloud is away, which is found out now; nil: away knows
	judged  func(registry string) bool // see Config.Judged
	listed  func(exchange.Digest) bool
}

// resolve finds what a tag leads to, and by whose word; "": the registry is to be asked. While the cloud is there, what
// the registry said within a minute counts: to this node, or to two others. While it is away, the last of that counts,
// and if there is none, the word of one member that no other one contradicts.
func (x *resolver) resolve(req *http.Request, ref reference) (d exchange.Digest, from string) {
	away := x.away()
	var lone *exchange.Digest
	if away || x.judged == nil || !x.judged(ref.registry) {
		lone = x.hear(req.Context(), ref.name(), away)
		if d, age, ok := x.last(ref.name()); ok && age <= exchange.TagFresh && x.account.pool != nil {
			return d, "pool"
		}
	}
	d, _, known := x.last(ref.name())
	switch {
	case !known && lone == nil: // the registry may know
		return d, ""
	case !away && (x.left == nil || !x.left(req.Context())): // in the first seconds of a cut, nobody knows of it
		return d, ""
	case !known:
		return *lone, "lone"
	}
	return d, "kept"
}

// hear asks the pool what a tag leads to, and keeps what two members say. It waits for others that ask the registry. It
// returns the word of one member that no other contradicts; nil: there is none.
func (x *resolver) hear(ctx context.Context, name string, away bool) *exchange.Digest {
	for end := x.timer.Now().Add(exchange.ResolveWait); x.account.pool != nil; {
		if _, age, ok := x.last(name); ok && age <= exchange.TagFresh {
			return nil
		}
		answer, err := x.account.ask(ctx, exchange.ImagesAsk{Tag: name})
		if err != nil {
			return nil
		}
		r := answer.Resolution
		if r != nil && r.Witnesses >= exchange.TagWitnesses {
			x.learn(name, r.Digest, x.timer.Now().Add(-r.Age), false)
		}
		switch {
		case !away && answer.Resolving && x.timer.Now().Before(end):
		case r != nil && r.Witnesses < exchange.TagWitnesses:
			return &r.Digest
		default:
			return nil
		}
		select {
		case <-x.timer.After(pollTag):
		case <-ctx.Done():
			return nil
		}
	}
	return nil
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
	x.learn(name, ref.digest, at, true)
	if x.account.pool == nil {
		return
	}
	_, _ = x.account.ask(req.Context(), exchange.ImagesAsk{Resolved: []exchange.Resolution{{
		Tag: name, Digest: ref.digest, Age: max(x.timer.Since(at), 0),
	}}}) // who cannot be told now is told with all that is known
}
