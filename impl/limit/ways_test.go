package limit

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/testkit"
)

// TestWays: those of a key get their turn in the order in which they came, one that leaves is passed over, and no key
// waits for another one.
func TestWays(t *testing.T) {
	w := &Ways{Each: 2}
	take := func(key string) func() {
		give, err := w.Take(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return give
	}
	first, second := take("a"), take("a")
	type turn struct {
		who  int
		give func()
	}
	turns, left := make(chan turn), make(chan error)
	ctx, leave := context.WithCancel(t.Context())
	for i := range 4 {
		go func() {
			if i == 1 {
				_, err := w.Take(ctx, "a")
				left <- err
				return
			}
			give, err := w.Take(t.Context(), "a")
			if err != nil {
				t.Error(err)
			}
			turns <- turn{i, give}
		}()
		testkit.Until(t, time.Minute, "it to wait", func() bool { return w.Waiting() == int64(i+1) })
	}
	take("b")() // at once
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the one that leaves: %v", err)
	}
	testkit.Until(t, time.Minute, "it to wait no more", func() bool { return w.Waiting() == 3 })
	first()
	next := <-turns
	first() // gives nothing back
	if w.Waiting() != 2 || next.who != 0 {
		t.Errorf("%d wait, and %d got a way, want the first that came", w.Waiting(), next.who)
	}
	next.give()
	third := <-turns
	second()
	fourth := <-turns
	if third.who != 2 || fourth.who != 3 {
		t.Errorf("%d and %d got a way, want 2 and 3", third.who, fourth.who)
	}
	third.give()
	fourth.give()
	if w.Waiting() != 0 || len(w.keys) != 0 {
		t.Errorf("%d wait, %d keys are left", w.Waiting(), len(w.keys))
	}
}
