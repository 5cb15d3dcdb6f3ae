package coordinator

import (
	"context"
	"errors"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// TestRecently: a thousand who ask in a second cost one check, which is not one caller's to break off.
func TestRecently(t *testing.T) {
	c, asked, says := testingclock.NewFakeClock(time.Unix(1e9, 0)), 0, error(nil)
	r := &recently{lasts: time.Second, clock: c, check: func(ctx context.Context) error {
		asked++
		return errors.Join(says, ctx.Err())
	}}
	for range 1000 {
		if err := r.ask(); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 1 {
		t.Errorf("%d checks, want 1", asked)
	}
	says = errors.New("full")
	c.Step(time.Second)
	if err := r.ask(); !errors.Is(err, says) || asked != 2 {
		t.Errorf("%v by check %d", err, asked)
	}
}
