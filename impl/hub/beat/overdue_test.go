package beat

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/heartbeat"
	"github.com/weir-edge/weir/impl/testkit"
)

// late lets a second pass, and passes what is overdue.
func late(b *rollBed, node string, l **left) {
	b.clock.Step(time.Second)
	hub := b.hubs[node]
	select {
	case *l = <-hub.left:
	default:
	}
	if *l == nil {
		return
	}
	if wait, ok := hub.Roll.lapses(); ok && wait <= 0 && overdue(b.t.Context(), hub, *l) {
		*l = nil
	}
}

// TestOverdue: weir-manager dies, and a heartbeat that was left to the pool is passed at the end of heartbeat.Lapse,
// before the next one comes, without a change of what the kubelet knows. If that fails, the hub knows that its node is
// cut off, and does not try the next one.
func TestOverdue(t *testing.T) {
	for _, cut := range []bool{false, true} {
		b := newRollBed(t)
		b.rounds(10, "edge-1", "edge-2")
		b.account, b.cut, b.bodies = nil, cut, nil
		clear(b.direct)
		clear(b.outcomes)
		var l *left
		grew := b.hubs["edge-1"].Status().Pooled
		for range 60 {
			late(b, "edge-1", &l)
			if b.clock.Since(b.began).Truncate(time.Second)%(10*time.Second) == 9*time.Second {
				b.beat("edge-1")
				if p := b.hubs["edge-1"].Status().Pooled; p.After(grew) {
					grew = p
				}
			}
			if b.direct["edge-1"]+b.outcomes["kept"] > 0 {
				break
			}
		}
		if waited := b.clock.Now().UTC().Sub(grew); waited < heartbeat.Lapse || waited > heartbeat.Lapse+time.Second {
			t.Errorf("cut off %v: passed %v after the last heartbeat of which there is a receipt", cut, waited)
		}
		if s := b.hubs["edge-1"].Status(); s.CutOff != cut || b.direct["edge-1"] > 0 == cut {
			t.Errorf("cut off %v: %+v, %v", cut, s, b.direct)
		}
		b.cut = false
		b.clock.Step(2 * time.Second)
		b.beat("edge-1")
		if s := b.hubs["edge-1"].Status(); s.CutOff != cut {
			t.Errorf("after another heartbeat: %+v, %v", s, b.outcomes)
		}
		b.clock.Step(10 * time.Second)
		b.beat("edge-1")
		if s := b.hubs["edge-1"].Status(); s.CutOff {
			t.Errorf("after a third one: %+v, %v", s, b.outcomes)
		}
		if !cut && slices.ContainsFunc(b.bodies, func(body string) bool { return body[0] != '{' }) {
			t.Errorf("a kubelet's write goes whole, at a version that is gone: %q", b.bodies)
		}
	}
}

// TestOverdueWaits: the wait is for the newest heartbeat, and ends with the context.
func TestOverdueWaits(t *testing.T) {
	b := newRollBed(t)
	hub := b.hubs["edge-1"]
	b.rounds(10, "edge-1", "edge-2")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- Overdue(ctx, hub) }()
	for wait, ok := hub.Roll.lapses(); !ok || wait > 10*time.Second; wait, ok = hub.Roll.lapses() {
		b.clock.Step(10 * time.Second)
		b.beat("edge-1")
	}
	testkit.Until(t, time.Minute, "a timer", func() bool { return b.clock.HasWaiters() && len(hub.left) == 0 })
	wait, _ := hub.Roll.lapses()
	b.clock.Step(wait)
	testkit.Until(t, time.Minute, "the heartbeat to pass", func() bool {
		return hub.Status().Passed.Equal(b.clock.Now().UTC())
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
