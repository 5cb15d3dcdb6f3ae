package beat

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/digest"
)

// TestDue: a digest goes along until the cloud has taken it, and then not for an hour.
func TestDue(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))
	is := digest.Digest{Version: "v1", Role: digest.Follower, Down: 1000, Started: clk.Now()}
	b := NewBeats(BeatsConfig{Clock: clk, Tell: func() digest.Digest { return is }})
	var told func()
	for range 3 {
		var text string
		if text, told = b.due(); text != is.Text() {
			t.Fatalf("due is %q", text)
		}
		clk.Step(10 * time.Second) // it did not get through
	}
	told()
	for range 340 {
		if text, _ := b.due(); text != "" {
			t.Fatalf("told again after %v: %s", clk.Now().Sub(is.Started), text)
		}
		clk.Step(10 * time.Second)
	}
	clk.Step(10 * time.Minute)
	if text, _ := b.due(); text == "" {
		t.Error("not told after an hour")
	}
	if text, _ := NewBeats(BeatsConfig{Clock: clk}).due(); text != "" {
		t.Errorf("a hub without a pool tells %s", text)
	}
}
