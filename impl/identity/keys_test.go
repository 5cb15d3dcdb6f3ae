package identity

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	byToken  = "token " + keysPath
	byHub    = "hub " + keysPath
	aboutHub = "hub " + discoveryPath
)

// running runs the keys of a bed until the test ends.
func (b *bed) running() {
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan error)
	go func() { done <- b.keys.run(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		check(b.t, <-done)
	})
}

// asks waits until the cloud has been asked just this since the last time, and the keys wait for their next turn.
func (b *bed) asks(want ...string) {
	b.t.Helper()
	b.idle(b.t.Context(), len(want))
	if got := b.cloud.asked(); !slices.Equal(got, want) {
		b.t.Fatalf("asked %q, want %q", got, want)
	}
}

// passes is a token of a service account that the cloud takes.
func (b *bed) passes() {
	b.t.Helper()
	b.Learn(withToken(b.key.sign(b.t, podClaims(day, nil))).Header, false, read("/version"), 200)
}

// TestRun: keys are fetched when they are needed first, then with the first token after each hour; after failures with
// longer and longer pauses; for an unknown key, but not often.
func TestRun(t *testing.T) {
	b := newBed(t, nil)
	b.cloud.answer(http.StatusInternalServerError)
	b.running()
	b.asks()
	b.Learn(withToken("static").Header, false, read("/version"), 200)
	b.asks()
	b.passes()
	b.asks(byToken)
	for _, pause := range []time.Duration{
		15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, retryMax, retryMax,
	} {
		b.clock.Step(pause - time.Millisecond)
		b.passes()
		b.asks()
		b.clock.Step(time.Millisecond)
		b.passes()
		b.asks(byToken)
	}
	b.clock.Step(retryMax + firstRefresh)
	b.asks(aboutHub)
	b.cloud.answer(0)
	b.clock.Step(retryMax)
	b.passes()
	b.asks(byToken)
	if set := b.keys.get(); set == nil || set.Issuer != issuer {
		t.Fatalf("keys: %+v", set)
	}
	next := signer{"two", jose.ES256, newEC(t)}
	other := withToken(next.sign(t, podClaims(day, nil)))
	for range 5 { // a key that is new, and then not there
		b.Learn(other.Header, false, read("/version"), 200)
		b.asks()
	}
	b.clock.Step(refreshPause)
	b.Learn(other.Header, false, read("/version"), 200)
	b.asks(byToken, aboutHub, byHub)
	b.clock.Step(refreshPeriod - time.Millisecond)
	b.passes()
	b.asks()
	b.clock.Step(time.Millisecond)
	b.awaitWelcome()
	b.passes()
	b.asks(byToken)
	b.clock.Step(refreshPeriod + tokenPatience)
	b.asks(aboutHub, byHub)

	b.cloud.answer(http.StatusForbidden)
	b.clock.Step(refreshPeriod + tokenPatience)
	b.asks(aboutHub)
	b.clock.Step(retryFirst + firstRefresh) // it stands
	b.asks(aboutHub)
	b.clock.Step(refreshPeriod)
	b.awaitWelcome()
	b.passes()
	b.asks(byToken, aboutHub)
	check(t, wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) {
			return strings.Contains(b.log.String(), "the role weir:hub"), nil
		}))
	if n := strings.Count(b.log.String(), "the role weir:hub"); n != 1 {
		t.Errorf("it is said %d times that keys may not be read", n)
	}
	if b.keys.get() == nil {
		t.Error("the keys are forgotten")
	}
}

// awaitWelcome waits until any token will do.
func (b *bed) awaitWelcome() {
	b.t.Helper()
	check(b.t, wait.PollUntilContextTimeout(b.t.Context(), time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) {
			return b.keys.welcome.Load(), nil
		}))
}

// TestTokenUnfit: what a token cannot tell, the hub asks itself: where service accounts may not read the keys, where
// the token is of another issuer than the cluster's, and where the cluster has not signed it.
func TestTokenUnfit(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*bed) string // gives the token
		want   []string
	}{
		"fits": {func(b *bed) string { return b.key.sign(t, podClaims(day, nil)) }, []string{byToken}},
		"forbidden": {func(b *bed) string {
			b.cloud.forbid = true
			return b.key.sign(t, podClaims(day, nil))
		}, []string{byToken, aboutHub, byHub}},
		"another issuer": {func(b *bed) string {
			b.fetch()
			return b.key.sign(t, podClaims(day, func(c, _ object) { c["iss"] = "https://before" }))
		}, []string{aboutHub, byHub}},
		"another key": {func(*bed) string {
			return signer{"one", jose.RS256, otherKey()}.sign(t, podClaims(day, func(c, _ object) { c["iss"] = "https://evil" }))
		}, []string{byToken, aboutHub, byHub}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, nil)
			raw := test.change(b)
			b.cloud.asked()
			check(t, b.keys.fetch(t.Context(), readToken(raw)))
			if got := b.cloud.asked(); !slices.Equal(got, test.want) {
				t.Errorf("asked %q, want %q", got, test.want)
			}
			if b.keys.get().Issuer != issuer {
				t.Errorf("issuer %q", b.keys.get().Issuer)
			}
		})
	}
}

// TestNoToken: a hub through which no token passes asks itself.
func TestNoToken(t *testing.T) {
	b := newBed(t, nil)
	b.running()
	b.asks()
	b.clock.Step(firstRefresh)
	b.asks(aboutHub, byHub)
}

// named gives a key the name that kube-apiserver gives it.
func (s signer) named() signer {
	s.kid = nameOf(s.key.Public())
	return s
}

// TestPool: a hub takes the key from its pool that a token proves, which costs the cloud nothing, and no other; it
// waits for it a little.
func TestPool(t *testing.T) {
	good, next := signer{"", jose.RS256, rsaKey()}.named(), signer{"", jose.ES256, newEC(t)}.named()
	evil := signer{good.kid, jose.RS256, otherKey()} // under the name of the good one
	set := func(all ...signer) []byte {
		var s jose.JSONWebKeySet
		for _, x := range all {
			s.Keys = append(s.Keys, x.public())
		}
		raw, err := json.Marshal(s)
		check(t, err)
		return raw
	}
	for name, test := range map[string]struct {
		shown  []byte
		kid    string // of the token; "" is the good one's
		asked  []string
		before int  // times that the pool has none yet
		alone  bool // and nobody else asks for them
		proven []string
	}{
		"proven":     {shown: set(good), proven: []string{good.kid}},
		"one of two": {shown: set(next, good), proven: []string{good.kid}},
		"later":      {shown: set(good), before: 2, proven: []string{good.kid}},
		"never":      {asked: []string{byToken}, before: 100, proven: []string{good.kid, next.kid}},
		"leader": {
			shown: set(good), before: 1, alone: true, asked: []string{byToken}, proven: []string{good.kid, next.kid},
		},
		"another's": {shown: set(evil), asked: []string{byToken}, proven: []string{good.kid, next.kid}},
		"not its":   {shown: set(next), asked: []string{byToken}, proven: []string{good.kid, next.kid}},
		"garbage":   {shown: []byte("{"), asked: []string{byToken}, proven: []string{good.kid, next.kid}},
		"a name that proves it not": {
			shown: set(signer{"one", jose.RS256, rsaKey()}), kid: "one", asked: []string{byToken, aboutHub, byHub},
			proven: []string{good.kid, next.kid},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var looks atomic.Int32
			found := make(chan struct{}, 10)
			b := newBed(t, func(c *Config) {
				c.Shared = func(context.Context) ([]byte, bool) {
					if int(looks.Add(1)) <= test.before {
						return nil, !test.alone
					}
					return test.shown, false
				}
				c.Found = func() { found <- struct{}{} }
			})
			b.cloud.set(good, next)
			b.running()
			b.asks()
			signs := good
			if test.kid != "" {
				signs.kid = test.kid
			}
			b.Learn(withToken(signs.sign(t, podClaims(day, nil))).Header, false, read("/version"), 200)
			check(t, wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute,
				true, func(context.Context) (bool, error) {
					if looks.Load() > 0 && b.keys.get() == nil {
						b.clock.Step(poolLook / 10)
					}
					return b.keys.get() != nil, nil
				}))
			<-found
			if got := b.cloud.asked(); !slices.Equal(got, test.asked) {
				t.Errorf("asked %q, want %q", got, test.asked)
			}
			var names []string
			for _, k := range b.keys.get().Keys.Keys {
				names = append(names, k.KeyID)
			}
			if !slices.Equal(names, test.proven) {
				t.Errorf("keys %q, want %q", names, test.proven)
			}
			if _, err := b.verifyRequest(withToken(evil.sign(t, podClaims(day, nil)))); err == nil {
				t.Error("a key that the pool made up counts")
			}
			if _, err := parseKeys(issuer, b.Judge.Keys()); err != nil {
				t.Errorf("for the pool: %v", err)
			}
		})
	}
}

// TestRestart: a restart costs no request, unless there is a new key.
func TestRestart(t *testing.T) {
	b := newBed(t, nil)
	b.fetch()
	b.cloud.asked()
	b.start(nil)
	b.running()
	b.passes()
	b.asks()
	b.clock.Step(refreshPause)
	next := signer{"two", jose.ES256, newEC(t)}
	b.cloud.set(b.key, next)
	b.Learn(withToken(next.sign(t, podClaims(day, nil))).Header, false, read("/version"), 200)
	b.asks(byToken)
	b.clock.Step(refreshPeriod)
	b.awaitWelcome()
	b.passes()
	b.asks(byToken)
}

// TestEarly: what was learnt of a caller before the keys were known is not lost when they are. What was decided later
// counts.
func TestEarly(t *testing.T) {
	b := newBed(t, nil)
	raw := b.key.sign(t, podClaims(day, nil))
	pod, other := withToken(raw), withToken(b.key.sign(t, podClaims(day.Add(time.Second), nil)))
	acting := withToken(raw)
	acting.Header.Set("Impersonate-User", "jane")
	services, secrets := read("/api/v1/services"), read("/api/v1/secrets")
	for _, req := range []*http.Request{pod, acting} {
		b.Learn(req.Header, false, services, 200)
		b.Learn(req.Header, false, secrets, 403)
	}
	b.fetch()
	for _, req := range []*http.Request{pod, acting} {
		if _, refusal := b.authorizeRequest(req, services); refusal != nil {
			t.Error(refusal)
		}
		if _, refusal := b.authorizeRequest(req, secrets); refusal == nil || refusal.ErrStatus.Code != http.StatusForbidden {
			t.Errorf("a denial is forgotten: %v", refusal)
		}
	}
	if _, refusal := b.authorizeRequest(other, services); refusal == nil {
		t.Error("what was learnt of one token counts for another")
	}
	b.clock.Step(time.Minute)
	b.Learn(pod.Header, false, services, 403)
	if _, refusal := b.authorizeRequest(pod, services); refusal != nil {
		t.Errorf("a denial that may be one in passing counts: %v", refusal)
	}
	b.clock.Step(Stands)
	b.Learn(pod.Header, false, services, 403)
	if _, refusal := b.authorizeRequest(pod, services); refusal == nil {
		t.Error("a later denial does not count")
	}
}

// idle waits until the cloud has been asked so often, and the judge waits.
func (b *bed) idle(ctx context.Context, asked int) {
	b.t.Helper()
	err := wait.PollUntilContextTimeout(ctx, time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return b.cloud.count() == asked && len(b.keys.offers) == 0 && b.clock.HasWaiters(), nil
	})
	if err != nil {
		b.t.Fatalf("asked %d times, want %d", b.cloud.count(), asked)
	}
}

// TestBadAnswers: what is no set of keys replaces none.
func TestBadAnswers(t *testing.T) {
	b := newBed(t, nil)
	b.fetch()
	b.cloud.set()
	if err := b.keys.fetch(t.Context(), nil); err == nil {
		t.Error("no key is as good as some")
	}
	if _, err := b.verifyRequest(withToken(b.key.sign(t, podClaims(day, nil)))); err != nil {
		t.Error(err)
	}
	for _, raw := range []string{
		"", "null", "[]", `{"keys":[]}`, `{"keys":[{"kty":"oct","k":"c2VjcmV0","kid":"one","alg":"HS256"}]}`,
		`{"keys":[{"kty":"RSA"}]}`,
	} {
		if set, err := parseKeys(issuer, []byte(raw)); err == nil {
			t.Errorf("%s: %+v", raw, set)
		}
	}
}

// TestForbiddenInPassing: a kube-apiserver that starts forbids the keys to everybody, for some seconds. A hub that
// hears that asks again soon; only when it hears it again it says so, and leaves the cloud alone for an hour.
func TestForbiddenInPassing(t *testing.T) {
	for name, stays := range map[string]bool{"in passing": false, "for good": true} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, nil)
			b.cloud.answer(http.StatusForbidden)
			b.running()
			b.asks()
			b.clock.Step(firstRefresh)
			b.asks(aboutHub)
			if strings.Contains(b.log.String(), "the role weir:hub") {
				t.Error("one refusal makes it say that a grant is missing")
			}
			if !stays {
				b.cloud.answer(0)
			}
			b.clock.Step(retryFirst + firstRefresh)
			if stays {
				b.asks(aboutHub)
			} else {
				b.asks(aboutHub, byHub)
			}
			if told := strings.Contains(b.log.String(), "the role weir:hub"); told != stays || (b.keys.get() == nil) != stays {
				t.Errorf("it says so: %v; it has keys: %v", told, b.keys.get() != nil)
			}
			b.clock.Step(retryMax)
			b.asks()
		})
	}
}
