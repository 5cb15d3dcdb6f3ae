package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/lru"

	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/limit"
)

const (
	allowTTL = 5 * time.Minute // how long an allowance is remembered
	// watchTTL is the same of a watch. kube-apiserver asks nobody again as long as a watch goes on, five to ten minutes
	// with client-go, so the hub asks once for two of them.
	watchTTL = 10 * time.Minute
	denyTTL  = 30 * time.Second // how long a denial is
	doubtTTL = time.Second      // how long what was remembered counts while nothing is known of the cloud
	// they come from the one that may do nothing, and must not cost others their allowances.
	maxRefusals   = 1024
	reviewTimeout = 10 * time.Second
)

// verdict is what the cloud said, or would say by what is remembered; the refusal, if any, is the answer to the caller.
type verdict struct {
	refusal  *apierrors.StatusError
	expires  time.Time
	recalled bool
	used     *atomic.Bool // an allowance of a watch was used since; nil: it is another one
}

// question is a watch that a caller may have.
type question struct {
	key verdictKey
	of  identity.Attributes
}

// maxQuestions bounds those of one token that are asked again together.
const maxQuestions = 16

// verdictKey is a hash of the caller's credentials and of what it asks for. Tokens are not kept.
type verdictKey [sha256.Size]byte

// Authorizer decides who may read from relays: as the cloud says, remembered for a while. It never fails open.
type Authorizer struct {
	AuthorizerConfig
	ctx context.Context // bounds reviews, which outlive the request that began them

	flights           singleflight.Group
	allowed, refusals *lru.Cache // of verdict by verdictKey

	mu      sync.Mutex
	watches *lru.Cache // of []question by verdictKey of a token and no question
}

// NewAuthorizer makes one that remembers nothing yet.
func NewAuthorizer(c AuthorizerConfig) *Authorizer {
	return &Authorizer{
		AuthorizerConfig: c, ctx: context.Background(), allowed: lru.New(limit.MaxVerdicts), refusals: lru.New(maxRefusals),
		watches: lru.New(limit.MaxVerdicts),
	}
}

// Start binds reviews to the life of the hub.
func (z *Authorizer) Start(ctx context.Context) {
	if z.ctx = ctx; z.Stay != nil {
		z.Stay.Start(ctx)
	}
}

// Authorize returns nil if the caller may do it, else the answer to give.
func (z *Authorizer) Authorize(ctx context.Context, who Caller, header http.Header,
	a identity.Attributes) *apierrors.StatusError {
	key := newKey(who, header, a)
	if v, ok := z.lookup(key, header); ok {
		z.Count("cached")
		if v.used != nil {
			v.used.Store(true)
		}
		return v.refusal
	}
	select {
	case <-ctx.Done():
		return answer.Unavailable(ErrUnavailable.Error())
	case r := <-z.fly(uplink.LapsedAs(z.ctx, ctx), key, who, credentialsOf(header), a, false):
		if busy := BusyStatus(r.Err); busy != nil {
			return busy
		}
		if r.Err != nil {
			return answer.Unavailable(ErrUnavailable.Error() + ": " + r.Err.Error())
		}
		return r.Val.(verdict).refusal
	}
}

// Learn has the cloud asked whether the caller may do it, unless that is known, and waits for no answer. What the cloud
// says counts for the time without it. ctx is that of a request of the caller.
func (z *Authorizer) Learn(ctx context.Context, who Caller, header http.Header, a identity.Attributes) {
	key := newKey(who, header, a)
	if _, ok := z.lookup(key, header); !ok {
		z.fly(uplink.LapsedAs(z.ctx, ctx), key, who, credentialsOf(header), a, false)
	}
}

// credentialsOf are the headers that say who the caller is or wants to be.
func credentialsOf(header http.Header) http.Header {
	credentials := http.Header{}
	for name, values := range header {
		if isCredential(name) {
			credentials[name] = slices.Clone(values)
		}
	}
	return credentials
}

// fly has the cloud asked, by one for all who want to know. early: also if an allowance is valid for half of its time
// yet.
func (z *Authorizer) fly(ctx context.Context, key verdictKey, who Caller, credentials http.Header,
	a identity.Attributes, early bool) <-chan singleflight.Result {
	return z.flights.DoChan(string(key[:]), func() (any, error) {
		v, ok := z.lookup(key, credentials) // decided since the caller looked
		if ok && (!early || v.refusal != nil || v.expires.Sub(z.Clock.Now()) > watchTTL/2) {
			return v, nil
		}
		ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
		defer cancel()
		if away, until := z.Cloud.IsAway(); !away { // who waits for an answer when the cloud is found to be away gets none
			defer context.AfterFunc(until, cancel)()
		}
		v, err := z.ask(ctx, key, who, credentials, a)
		if err == nil && v.used != nil && who.Kind != ThisNode { // the node's connection is open in any case
			z.also(uplink.LapsedAs(z.ctx, ctx), key, who, credentials, a)
		}
		return v, err
	})
}

// also asks again about the other watches of a caller that were used, now that there is a connection for it, which
// costs forty times a question. What is denied so is denied from then on.
func (z *Authorizer) also(ctx context.Context, key verdictKey, who Caller, credentials http.Header,
	a identity.Attributes) {
	token := newKey(who, credentials, identity.Attributes{})
	z.mu.Lock()
	var all []question
	if known, ok := z.watches.Get(token); ok {
		all = known.([]question)
	}
	all = slices.DeleteFunc(slices.Clone(all), func(q question) bool { return q.key == key })
	z.watches.Add(token, append(all, question{key, a})[max(0, len(all)+1-maxQuestions):])
	z.mu.Unlock()
	for _, q := range all {
		v, ok := found(z.allowed, q.key)
		if ok && v.used != nil && v.used.Load() {
			z.fly(ctx, q.key, who, credentials, q.of, true)
		}
	}
}

func (z *Authorizer) ask(ctx context.Context, key verdictKey, who Caller, credentials http.Header,
	a identity.Attributes) (verdict, error) {
	asking, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	if z.Cloud.Unknown() {
		other := func() bool {
			_, ok := z.remembered(who, credentials, a)
			return ok
		}
		asking = uplink.Impatient(asking, z.Clock, other, func() { leave(uplink.ErrGivenUp) })
	}
	allowed, reason, refused, err := z.Review(asking, who, credentials, a)
	switch {
	case err == nil:
	case BusyStatus(err) != nil: // nobody was asked, so nothing that is remembered counts
		return verdict{}, err
	case errors.Is(context.Cause(asking), uplink.ErrGivenUp):
		return z.recall(key, who, credentials, a, err, doubtTTL)
	case z.Cloud.AwayBy(err):
		return z.recall(key, who, credentials, a, err, denyTTL)
	default: // what a caller can bring about must not make an old decision count
		z.Count("unavailable")
		return verdict{}, err
	}
	v := verdict{expires: z.Clock.Now().Add(denyTTL)}
	code := http.StatusForbidden
	switch {
	case allowed:
		z.Count("allowed")
		code = http.StatusOK
		v.expires = z.Clock.Now().Add(allowTTL)
		if a.Verb == "watch" {
			v.expires, v.used = z.Clock.Now().Add(watchTTL), new(atomic.Bool)
		}
	case refused != nil && (refused.ErrStatus.Code != http.StatusForbidden || who.Kind != Anonymous):
		outcome := "refused"
		if refused.ErrStatus.Code == http.StatusForbidden {
			outcome = "denied"
		}
		z.Count(outcome)
		v.refusal = refused
		code = int(refused.ErrStatus.Code)
	default:
		z.Count("denied")
		v.refusal = answer.Forbidden(userOf(who, credentials), a, reason)
	}
	z.Judge.Learn(credentials, who.Kind == ThisNode, a, code)
	z.remember(key, v)
	return v, nil
}

// remembered is what the cloud would say, nil if it would allow it; ok is false if that is not known.
func (z *Authorizer) remembered(who Caller, credentials http.Header, a identity.Attributes) (
	refusal *apierrors.StatusError, ok bool) {
	_, refusal = z.Judge.Authorize(credentials, who.Kind == ThisNode, a)
	return refusal, refusal == nil || refusal.ErrStatus.Code != http.StatusServiceUnavailable
}

// recall says what the cloud would, if that is known. It is asked again after ttl.
func (z *Authorizer) recall(key verdictKey, who Caller, credentials http.Header, a identity.Attributes, why error,
	ttl time.Duration) (verdict, error) {
	refusal, ok := z.remembered(who, credentials, a)
	if !ok {
		z.Count("unavailable")
		return verdict{}, fmt.Errorf("nothing is remembered of it: %w", why)
	}
	z.Count("remembered")
	v := verdict{refusal: refusal, expires: z.Clock.Now().Add(ttl), recalled: true}
	z.remember(key, v)
	return v, nil
}

// lookup finds a verdict that is still valid. An allowance does not if the cloud has refused the token since, wherever
// that was; a refusal not if the cloud cannot say it any more: it may have been one in passing.
func (z *Authorizer) lookup(key verdictKey, header http.Header) (v verdict, ok bool) {
	away, _ := z.Cloud.IsAway()
	if v, ok = found(z.refusals, key); !ok || !z.Clock.Now().Before(v.expires) || away && !v.recalled {
		v, ok = found(z.allowed, key)
		ok = ok && z.Clock.Now().Before(v.expires) && (away && v.recalled || !z.Judge.Revoked(header))
	}
	return v, ok
}

func found(c *lru.Cache, key verdictKey) (verdict, bool) {
	v, ok := c.Get(key)
	if !ok {
		return verdict{}, false
	}
	return v.(verdict), true
}

func (z *Authorizer) remember(key verdictKey, v verdict) {
	if v.refusal != nil {
		if !v.recalled {
			z.allowed.Remove(key)
		}
		z.refusals.Add(key, v)
		return
	}
	z.refusals.Remove(key)
	z.allowed.Add(key, v)
}

// Size is how many verdicts are remembered.
func (z *Authorizer) Size() int { return z.allowed.Len() + z.refusals.Len() }

func newKey(who Caller, header http.Header, a identity.Attributes) verdictKey {
	var names []string
	for name := range header {
		if isCredential(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var r room
	b := put(r[:0], who.Kind.String())
	for _, name := range names {
		b = put(b, name)
		for _, v := range header[name] {
			b = put(b, v)
		}
		b = put(b, "")
	}
	for _, s := range [...]string{
		"", a.Verb, a.Group, a.Version, a.Resource, a.Subresource, a.Namespace, a.Name, a.FieldSelector,
		a.LabelSelector,
	} {
		b = put(b, s)
	}
	return sha256.Sum256(b)
}

// userOf is the name of a caller whom the cloud has authenticated, for messages: "" if it is not known here.
func userOf(who Caller, credentials http.Header) string {
	if u := credentials.Get("Impersonate-User"); u != "" {
		return u
	}
	if who.User != "" {
		return who.User
	}
	return who.Account(credentials)
}
