package hub

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"hash"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/identity"
)

const (
	allowTTL      = 5 * time.Minute  // how long an allowance is remembered
	denyTTL       = 30 * time.Second // how long a denial is
	maxVerdicts   = 4096
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
	review func(context.Context, caller, http.Header, attributes) (bool, string, *apierrors.StatusError, error)
	clock  clock.PassiveClock
	count  func(outcome string) // cached, allowed, denied, refused, remembered, unavailable
	judge  *identity.Judge      // knows what counts while the cloud is away

	flights  singleflight.Group
	mu       sync.Mutex
	verdicts map[verdictKey]verdict
}

func newAuthorizer(review func(context.Context, caller, http.Header, attributes) (bool, string, *apierrors.StatusError, error),
	c clock.PassiveClock, count func(string)) *authorizer {
	return &authorizer{ctx: context.Background(), review: review, clock: c, count: count, verdicts: map[verdictKey]verdict{}}
}

// start binds reviews to the life of the hub.
func (z *authorizer) start(ctx context.Context) { z.ctx = ctx }

// authorize returns nil if the caller may do it, else the answer to give.
func (z *authorizer) authorize(ctx context.Context, who caller, header http.Header, a attributes) *apierrors.StatusError {
	key := newKey(who, header, a)
	if v, ok := z.lookup(key); ok {
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
		if v, ok := z.lookup(key); ok { // decided between the look above and now
			return v, nil
		}
		ctx, cancel := context.WithTimeout(lapsedAs(z.ctx, ctx), reviewTimeout)
		defer cancel()
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
			return unavailable(errUnavailable.Error() + ", and nothing is remembered of it: " + r.Err.Error())
		}
		return r.Val.(verdict).refusal
	}
}

func (z *authorizer) ask(ctx context.Context, key verdictKey, who caller, credentials http.Header, a attributes) (verdict, error) {
	allowed, reason, refused, err := z.review(ctx, who, credentials, a)
	if busyStatus(err) != nil { // nobody was asked, so nothing that is remembered counts
		return verdict{}, err
	}
	if err != nil {
		return z.recall(key, who, credentials, a, err)
	}
	v := verdict{expires: z.clock.Now().Add(denyTTL)}
	code := http.StatusForbidden
	switch {
	case allowed:
		z.count("allowed")
		code = http.StatusOK
		v.expires = z.clock.Now().Add(allowTTL)
	case refused != nil && (refused.ErrStatus.Code == http.StatusUnauthorized || who.kind != anonymous):
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
	z.judge.Learn(credentials, who.kind == thisNode, a.rights(), code)
	z.remember(key, v)
	return v, nil
}

// recall says what the cloud would, if that is known. It is asked again after denyTTL.
func (z *authorizer) recall(key verdictKey, who caller, credentials http.Header, a attributes, why error) (verdict, error) {
	_, refusal := z.judge.Authorize(credentials, who.kind == thisNode, a.rights())
	if refusal != nil && refusal.ErrStatus.Code == http.StatusServiceUnavailable {
		z.count("unavailable")
		return verdict{}, why
	}
	z.count("remembered")
	v := verdict{refusal: refusal, expires: z.clock.Now().Add(denyTTL)}
	z.remember(key, v)
	return v, nil
}

func (z *authorizer) lookup(key verdictKey) (verdict, bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	v, ok := z.verdicts[key]
	return v, ok && z.clock.Now().Before(v.expires)
}

// remember stores a verdict. A full cache loses what has expired, or else any one.
func (z *authorizer) remember(key verdictKey, v verdict) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if len(z.verdicts) >= maxVerdicts {
		now := z.clock.Now()
		for k, old := range z.verdicts {
			if !now.Before(old.expires) {
				delete(z.verdicts, k)
			}
		}
		for k := range z.verdicts {
			if len(z.verdicts) < maxVerdicts {
				break
			}
			delete(z.verdicts, k)
		}
	}
	z.verdicts[key] = v
}

func (z *authorizer) size() int {
	z.mu.Lock()
	defer z.mu.Unlock()
	return len(z.verdicts)
}

func newKey(who caller, header http.Header, a attributes) (key verdictKey) {
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
	for _, s := range []string{"", a.verb, a.group, a.version, a.resource, a.namespace, a.name, a.fieldSelector, a.labelSelector} {
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
