package source

import (
	"context"
	"testing"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// A coordinator that is inside the leader's batch, behind which the leader's past lies, takes what the leader holds now.
func TestPushPastACoordinatorInsideABatch(t *testing.T) {
	leader, pool := newRelay(t), newRelay(t)
	if err := leader.Replace(10, []*wire.Object{slice(t, "x", 5)}); err != nil {
		t.Fatal(err)
	}
	if err := leader.Replace(30, []*wire.Object{slice(t, "x", 25), slice(t, "y", 30)}); err != nil { // after a 410
		t.Fatal(err)
	}
	if err := pool.Replace(10, []*wire.Object{slice(t, "x", 5)}); err != nil {
		t.Fatal(err)
	}
	put(t, pool, "x", 20)
	c := &coordinator{relay: pool, modes: make(chan byte, 10)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Push(ctx, PushConfig{Relay: leader, Coordinator: serve(t, "coordinator", c), Term: contract.Term{Incarnation: "i", Version: 3}})
	}()
	select {
	case mode := <-c.modes:
		if mode != modeList {
			t.Errorf("mode %c", mode)
		}
	case err := <-done:
		t.Fatal(err)
	}
	eventually(t, "the leader's state, or the end of the feed", func() bool { return pool.Status().Version == 30 || len(done) > 0 })
	cancel()
	if err := comes(t, "the end of the feed", done); pool.Status().Version != 30 || pool.Status().Objects != 2 {
		t.Errorf("the coordinator is at %+v; the feed ended with %v", pool.Status(), err)
	}
}
