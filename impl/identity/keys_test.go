package identity

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// TestRun: keys are fetched when they are needed first, then each hour; after failures with longer and longer pauses; for an unknown key, but
// not often.
func TestRun(t *testing.T) {
	b := newBed(t, nil)
	b.cloud.answer(http.StatusInternalServerError)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- b.keys.run(ctx) }()
	defer func() {
		cancel()
		check(t, <-done)
	}()
	b.idle(ctx, 0)
	b.Learn(withToken("static").Header, false, read("/version"), 200)
	b.idle(ctx, 0)
	b.Learn(withToken(b.key.sign(t, podClaims(day, nil))).Header, false, read("/version"), 200)
	asked := 1
	b.idle(ctx, asked)
	for _, pause := range []time.Duration{
		15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, retryMax, retryMax,
	} {
		b.clock.Step(pause - time.Millisecond)
		b.idle(ctx, asked)
		b.clock.Step(time.Millisecond)
		asked++
		b.idle(ctx, asked)
	}
	b.cloud.answer(0)
	b.clock.Step(retryMax)
	asked += 2
	b.idle(ctx, asked)
	if b.keys.get() == nil {
		t.Fatal("no keys")
	}
	for range 5 { // bad tokens
		b.keys.miss()
		b.idle(ctx, asked)
	}
	b.clock.Step(refreshPause)
	b.keys.miss()
	asked += 2
	b.idle(ctx, asked)
	b.clock.Step(refreshPeriod)
	asked += 2
	b.idle(ctx, asked)

	b.cloud.answer(http.StatusForbidden)
	b.clock.Step(refreshPeriod)
	asked++
	b.idle(ctx, asked)
	b.clock.Step(refreshPeriod)
	asked++
	b.idle(ctx, asked)
	check(t, wait.PollUntilContextTimeout(ctx, time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return strings.Contains(b.log.String(), "weir-hub.yaml"), nil
	}))
	if n := strings.Count(b.log.String(), "weir-hub.yaml"); n != 1 {
		t.Errorf("it is said %d times that keys may not be read", n)
	}
	if b.keys.get() == nil {
		t.Error("the keys are forgotten")
	}
}

// TestRestart: a restart costs no request, unless there is a new key.
func TestRestart(t *testing.T) {
	b := newBed(t, nil)
	b.fetch()
	b.start(nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- b.keys.run(ctx) }()
	defer func() {
		cancel()
		check(t, <-done)
	}()
	b.idle(ctx, 2)
	b.clock.Step(refreshPause)
	b.keys.miss()
	b.idle(ctx, 4)
	b.clock.Step(refreshPeriod)
	b.idle(ctx, 6)
}

// idle waits until the cloud has been asked so often, and the judge waits.
func (b *bed) idle(ctx context.Context, asked int) {
	b.t.Helper()
	err := wait.PollUntilContextTimeout(ctx, time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return b.cloud.count() == asked && b.clock.HasWaiters(), nil
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
	if err := b.keys.fetch(t.Context()); err == nil {
		t.Error("no key is as good as some")
	}
	if _, err := b.verifyRequest(withToken(b.key.sign(t, podClaims(day, nil)))); err != nil {
		t.Error(err)
	}
	for _, raw := range []string{"", "null", "[]", `{"keys":[]}`, `{"keys":[{"kty":"oct","k":"c2VjcmV0","kid":"one","alg":"HS256"}]}`, `{"keys":[{"kty":"RSA"}]}`} {
		if set, err := parseKeys(issuer, []byte(raw)); err == nil {
			t.Errorf("%s: %+v", raw, set)
		}
	}
}
