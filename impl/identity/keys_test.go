package identity

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// TestRun: keys are fetched at once, then each hour; after failures with longer and longer pauses; for an unknown key, but
// not often.
func TestRun(t *testing.T) {
	b := newBed(t, nil)
	b.cloud.answer(http.StatusInternalServerError)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- b.Run(ctx) }()
	defer func() { cancel(); check(t, <-done) }()
	idle := func(asked int) {
		t.Helper()
		err := wait.PollUntilContextTimeout(ctx, time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			return b.cloud.count() == asked && b.clock.HasWaiters(), nil
		})
		if err != nil {
			t.Fatalf("asked %d times, want %d", b.cloud.count(), asked)
		}
	}
	asked := 1
	idle(asked)
	for _, pause := range []time.Duration{15, 30, 60, 120, 240, 300, 300} {
		b.clock.Step(pause*time.Second - time.Millisecond)
		idle(asked)
		b.clock.Step(time.Millisecond)
		asked++
		idle(asked)
	}
	b.cloud.answer(0)
	b.clock.Step(retryMax)
	asked += 2
	idle(asked)
	if b.keys.get() == nil {
		t.Fatal("no keys")
	}
	for range 5 { // bad tokens
		b.keys.miss()
		idle(asked)
	}
	b.clock.Step(refreshPause)
	b.keys.miss()
	asked += 2
	idle(asked)
	b.clock.Step(refreshPeriod)
	asked += 2
	idle(asked)

	b.cloud.answer(http.StatusForbidden)
	b.clock.Step(refreshPeriod)
	asked++
	idle(asked)
	b.clock.Step(refreshPeriod)
	asked++
	idle(asked)
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

// TestBadAnswers: what is no set of keys replaces none.
func TestBadAnswers(t *testing.T) {
	b := newBed(t, nil)
	b.fetch()
	b.cloud.set()
	if err := b.keys.fetch(t.Context()); err == nil {
		t.Error("no key is as good as some")
	}
	if _, err := b.Verify(t.Context(), withToken(b.key.sign(t, podClaims(day, nil)))); err != nil {
		t.Error(err)
	}
	for _, raw := range []string{"", "null", "[]", `{"keys":[]}`, `{"keys":[{"kty":"oct","k":"c2VjcmV0","kid":"one","alg":"HS256"}]}`, `{"keys":[{"kty":"RSA"}]}`} {
		if set, err := parseKeys(issuer, []byte(raw)); err == nil {
			t.Errorf("%s: %+v", raw, set)
		}
	}
}
