package beat

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/lease"
)

// TestDue: a digest goes along until the cloud has taken it, and then not for an hour. So do reads, with another
// heartbeat, and sooner than usual when others are read.
func TestDue(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))
	is := digest.Digest{Version: "v1", Role: digest.Follower, Down: 1000, Started: clk.Now()}
	reads := digest.Reads{Passed: []digest.Passed{{Resource: "pods.v1.", Bytes: 7}}}
	b := NewBeats(BeatsConfig{
		Clock: clk, Tell: func() digest.Digest { return is }, Reads: func() digest.Reads { return reads },
	})
	for _, want := range []lease.Along{{Digest: is.Text()}, {Reads: reads.Text()}} { // never both at once
		if clk.Now().Sub(is.Started) > 0 {
			clk.SetTime(is.Started.Add(digest.ReadsFirst))
		}
		var told func()
		for range 3 {
			var along lease.Along
			if along, told = b.due(); along != want {
				t.Fatalf("due is %+v, want %+v", along, want)
			}
			clk.Step(10 * time.Second) // it did not get through
		}
		told()
	}
	for range 340 {
		if along, _ := b.due(); along != (lease.Along{}) {
			t.Fatalf("told again after %v: %+v", clk.Now().Sub(is.Started), along)
		}
		clk.Step(10 * time.Second)
	}
	clk.Step(10 * time.Minute)
	along, told := b.due()
	if along.Digest == "" || along.Reads != "" {
		t.Errorf("after an hour: %+v", along)
	}
	told()
	reads.Passed[0].Resource = "nodes.v1."
	if along, _ := b.due(); along.Reads != reads.Text() {
		t.Errorf("another resource is read for more than an hour, and told is %+v", along)
	}
	if along, _ := NewBeats(BeatsConfig{Clock: clk}).due(); along != (lease.Along{}) {
		t.Errorf("a hub without a pool tells %+v", along)
	}
}
