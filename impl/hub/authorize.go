package hub

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/weir-edge/weir/impl/identity"
)

const (
	allowTTL      = 5 * time.Minute  // how long an allowance is remembered
	denyTTL       = 30 * time.Second // how long a denial is
	doubtTTL      = time.Second      // how long what was remembered counts while nothing is known of the cloud
	maxVerdicts   = 4096             // allowances
	maxRefusals   = 1024             // they come from who may do nothing, and must not cost others their allowances
	reviewTimeout = 10 * time.Second
)

// verdict is what the cloud said; the error, if any, is the answer to the caller.
type verdict struct {
	refusal *apierrors.StatusError
	expires time.Time
}

// verdictKey is a hash of the caller's credentials and of what it asks for. Tokens are not kept.
type verdictKey [sha256.Size]byte

// authorizer decides who may read from relays: as the cloud says, remembered for a while. It never fails open.
type authorizer struct {
	ctx    context.Context // bounds reviews, which outlive the request that began them
	review func(context.Context, caller, http.Header, identity.Attributes) (bool, string, *apierrors.StatusError, error)
	away   func(error) bool // whether a review that failed so failed because the cloud is away
	gone   *link            // the cloud is away
	doubt  func() bool      // whether nothing is known of the cloud yet; then it is asked
	clock  clock.WithTicker
	count  func(outcome string) // cached, allowed, denied, refused, remembered, unavailable
	judge  *identity.Judge      // knows what counts while the cloud is away

	flights           singleflight.Group
	allowed, refusals *lru.Cache // of verdict by verdictKey
}

func newAuthorizer(review func(context.Context, caller, http.Header, identity.Attributes) (bool, string, *apierrors.StatusError, error),
	away func(error) bool, gone *link, doubt func() bool, c clock.WithTicker, count func(string)) *authorizer {
	return &authorizer{
		ctx: context.Background(), review: review, away: away, gone: gone, doubt: doubt, clock: c, count: count, allowed: lru.New(maxVerdicts), refusals: lru.New(maxRefusals),
	}
}

// start binds reviews to the life of the hub.
func (z *authorizer) start(ctx context.Context) { z.ctx = ctx }

// authorize returns nil if the caller may do it, else the answer to give.
func (z *authorizer) authorize(ctx context.Context, who caller, header http.Header, a identity.Attributes) *apierrors.StatusError {
	key := newKey(who, header, a)
	if v, ok := z.lookup(key, header); ok {
		z.count("cached")
		return v.refusal
	}
	credentials := http.Header{}
	for name, values := range header {
		if isCredential(name) {
			credentials[name] = slices.Clone(values)
		}
	}
	flight := z.flights.DoChan(string(key[:]), func() (any, error) {
		if v, ok := z.lookup(key, credentials); ok { // decided between the look above and now
			return v, nil
		}
		ctx, cancel := context.WithTimeout(lapsedAs(z.ctx, ctx), reviewTimeout)
		defer cancel()
		if away, until := z.gone.state(); !away { // who waits for an answer when the cloud is found to be away gets none
			defer context.AfterFunc(until, cancel)()
		}
		return z.ask(ctx, key, who, credentials, a)
	})
	select {
	case <-ctx.Done():
		return unavailable(errUnavailable.Error())
	case r := <-flight:
		if busy := busyStatus(r.Err); busy != nil {
			return busy
		}
		if r.Err != nil {
			return unavailable(errUnavailable.Error() + ": " + r.Err.Error())
		}
		return r.Val.(verdict).refusal
	}
}

func (z *authorizer) ask(ctx context.Context, key verdictKey, who caller, credentials http.Header, a identity.Attributes) (verdict, error) {
	asking, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	if z.doubt() {
		other := func() bool {
			_, ok := z.remembered(who, credentials, a)
			return ok
		}
		asking = impatient(asking, z.clock, other, func() { leave(errGivenUp) })
	}
	allowed, reason, refused, err := z.review(asking, who, credentials, a)
	switch {
	case err == nil:
	case busyStatus(err) != nil: // nobody was asked, so nothing that is remembered counts
		return verdict{}, err
	case errors.Is(context.Cause(asking), errGivenUp):
		return z.recall(key, who, credentials, a, err, doubtTTL)
	case z.away(err):
		return z.recall(key, who, credentials, a, err, denyTTL)
	default: // what a caller can bring about must not make an old decision count
		z.count("unavailable")
		return verdict{}, err
	}
	v := verdict{expires: z.clock.Now().Add(denyTTL)}
	code := http.StatusForbidden
	switch {
	case allowed:
		z.count("allowed")
		code = http.StatusOK
		v.expires = z.clock.Now().Add(allowTTL)
	case refused != nil && (refused.ErrStatus.Code != http.StatusForbidden || who.kind != anonymous):
		outcome := "refused"
		if refused.ErrStatus.Code == http.StatusForbidden {
			outcome = "denied"
		}
		z.count(outcome)
		v.refusal = refused
		code = int(refused.ErrStatus.Code)
	default:
		z.count("denied")
		v.refusal = forbidden(userOf(who, credentials), a, reason)
	}
	z.judge.Learn(credentials, who.kind == thisNode, a, code)
	z.remember(key, v)
	return v, nil
}

// remembered is what the cloud would say, nil if it would allow it; ok is false if that is not known.
func (z *authorizer) remembered(who caller, credentials http.Header, a identity.Attributes) (refusal *apierrors.StatusError, ok bool) {
	_, refusal = z.judge.Authorize(credentials, who.kind == thisNode, a)
	return refusal, refusal == nil || refusal.ErrStatus.Code != http.StatusServiceUnavailable
}

// recall says what the cloud would, if that is known. It is asked again after ttl.
func (z *authorizer) recall(key verdictKey, who caller, credentials http.Header, a identity.Attributes, why error, ttl time.Duration) (verdict, error) {
	refusal, ok := z.remembered(who, credentials, a)
	if !ok {
		z.count("unavailable")
		return verdict{}, fmt.Errorf("nothing is remembered of it: %w", why)
	}
	z.count("remembered")
	v := verdict{refusal: refusal, expires: z.clock.Now().Add(ttl)}
	z.remember(key, v)
	return v, nil
}

// lookup finds a verdict that still counts. An allowance does not if the cloud has refused the token since, wherever that was.
func (z *authorizer) lookup(key verdictKey, header http.Header) (v verdict, ok bool) {
	if v, ok = found(z.refusals, key); !ok || !z.clock.Now().Before(v.expires) {
		v, ok = found(z.allowed, key)
		ok = ok && z.clock.Now().Before(v.expires) && !z.judge.Revoked(header)
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

func (z *authorizer) remember(key verdictKey, v verdict) {
	if v.refusal != nil {
		z.refusals.Add(key, v)
		return
	}
	z.refusals.Remove(key)
	z.allowed.Add(key, v)
}

func (z *authorizer) size() int { return z.allowed.Len() + z.refusals.Len() }

func newKey(who caller, header http.Header, a identity.Attributes) (key verdictKey) {
	h := sha256.New()
	put(h, who.kind.String())
	var names []string
	for name := range header {
		if isCredential(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		put(h, name)
		for _, v := range header[name] {
			put(h, v)
		}
		put(h, "")
	}
	for _, s := range []string{"", a.Verb, a.Group, a.Version, a.Resource, a.Namespace, a.Name, a.FieldSelector, a.LabelSelector} {
		put(h, s)
	}
	h.Sum(key[:0])
	return key
}

// put writes a string so that no two sequences of strings are the same bytes.
func put(h hash.Hash, s string) {
	n := len(s)
	_, _ = h.Write([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)})
	_, _ = io.WriteString(h, s)
}

// userOf is the name of a caller whom the cloud has authenticated, for messages: "" if it is not known here.
func userOf(who caller, credentials http.Header) string {
	if u := credentials.Get("Impersonate-User"); u != "" {
		return u
	}
	if who.user != "" {
		return who.user
	}
	return serviceAccountOf(credentials)
}

// serviceAccountOf is the account that a token says it is of, "" for other tokens. Only the cloud, or a proof, can say that it is.
func serviceAccountOf(credentials http.Header) string {
	const serviceAccount = "system:serviceaccount:"
	_, token, _ := strings.Cut(credentials.Get("Authorization"), " ")
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Subject string `json:"sub"`
	}
	if err != nil || json.Unmarshal(payload, &claims) != nil || !strings.HasPrefix(claims.Subject, serviceAccount) {
		return ""
	}
	return claims.Subject
}
