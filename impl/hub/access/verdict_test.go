package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/limit"
)

// TestNoOldVerdictBesideTheCloud: what was decided before counts while the cloud is away, and not because a review
// failed that a caller can make fail.
func TestNoOldVerdictBesideTheCloud(t *testing.T) {
	a := asked{allowed: true}
	clock := clocktesting.NewFakeClock(time.Now())
	z := judged(t, &a, clock)
	ask := func(want int32) {
		t.Helper()
		err := z.Authorize(t.Context(), Caller{Kind: Bearer}, token("a"), listSlices)
		if code := int32(0); err != nil && err.ErrStatus.Code != want || err == nil && want != code {
			t.Errorf("got %v, want %d", err, want)
		}
	}
	ask(0)
	a.allowed, a.err, a.here = false, &unavailableError{errors.New("429 Too Many Requests")}, true
	clock.Step(allowTTL)
	ask(http.StatusServiceUnavailable)
	ask(http.StatusServiceUnavailable)
	if n := a.count(); n != 3 {
		t.Errorf("asked %d times", n)
	}
	a.here = false
	ask(0)
}

// TestRevokedIsNotRemembered: a 401, whatever it was an answer to, ends what is remembered of a token.
func TestRevokedIsNotRemembered(t *testing.T) {
	a := asked{allowed: true}
	clock := clocktesting.NewFakeClock(time.Now())
	z := judged(t, &a, clock)
	ask := func() error {
		if err := z.Authorize(t.Context(), Caller{Kind: Bearer}, token("a"), listSlices); err != nil {
			return err
		}
		return nil
	}
	check(t, ask())
	check(t, ask())
	z.Judge.Refuse(token("a"), identity.Attributes{Verb: "create", Version: "v1", Resource: "pods", Namespace: "a"})
	clock.Step(identity.RefusedFor)
	a.allowed, a.refused = false, apierrors.NewUnauthorized("Unauthorized")
	if err := ask(); err == nil || a.count() != 2 {
		t.Errorf("a refused token may read: %v, after %d reviews", err, a.count())
	}
	a.allowed, a.refused = true, nil
	clock.Step(denyTTL)
	check(t, ask())
	check(t, ask())
	if n := a.count(); n != 3 {
		t.Errorf("%d reviews", n)
	}
}

// TestRefusalsCostNoAllowance: whoever may do nothing, with however many tokens, costs nobody the allowance that is
// remembered.
func TestRefusalsCostNoAllowance(t *testing.T) {
	a := asked{allowed: true}
	z := judged(t, &a, clocktesting.NewFakeClock(time.Now()))
	_ = z.Authorize(t.Context(), Caller{Kind: Bearer}, token("a"), listSlices)
	a.allowed = false
	for i := range limit.MaxVerdicts + 100 {
		if err := z.Authorize(t.Context(), Caller{Kind: Bearer}, token(fmt.Sprint(i)), listSlices); err == nil {
			t.Fatal("allowed")
		}
	}
	before := a.count()
	if err := z.Authorize(t.Context(), Caller{Kind: Bearer}, token("a"), listSlices); err != nil || a.count() != before {
		t.Errorf("%v, after %d reviews", err, a.count()-before)
	}
	if n := z.Size(); n > maxRefusals+1 {
		t.Errorf("%d verdicts are kept", n)
	}
}

// TestReviewOfALostCloud: who waits for a review when the cloud is found to be away gets what is remembered at once.
func TestReviewOfALostCloud(t *testing.T) {
	a := asked{allowed: true}
	clock := clocktesting.NewFakeClock(time.Now())
	z := judged(t, &a, clock)
	if err := z.Authorize(t.Context(), Caller{Kind: Bearer}, token("a"), listSlices); err != nil {
		t.Fatal(err)
	}
	clock.Step(allowTTL)
	lost, lose := context.WithCancel(t.Context())
	a.lost = lost
	review := z.Review
	z.Review = func(ctx context.Context, c Caller, h http.Header, at identity.Attributes) (bool, string,
		*apierrors.StatusError, error) {
		lose()
		if <-ctx.Done(); !errors.Is(ctx.Err(), context.Canceled) {
			t.Error(ctx.Err())
		}
		_, _, _, _ = review(ctx, c, h, at)
		return false, "", nil, &unavailableError{ctx.Err()}
	}
	if err := z.Authorize(t.Context(), Caller{Kind: Bearer}, token("a"), listSlices); err != nil {
		t.Error(err)
	}
}
