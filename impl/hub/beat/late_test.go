package beat

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/heartbeat"
)

// TestLateHeartbeatIsNotMirrored: a heartbeat that could not be written in time is not written at all. Others would
// take it for one of then.
func TestLateHeartbeatIsNotMirrored(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Now())
	m := NewMirror(MirrorConfig{Node: "edge-1", Clock: clk, Count: func(string) {}})
	m.state(heartbeat.Statement{}, &coordinationv1.Lease{}, clk.Now().Add(10*time.Second), func() {})
	clk.Step(10 * time.Second)
	if m.next() == nil {
		t.Error("it is not written, although it is in time")
	}
	clk.Step(1)
	if m.next() != nil {
		t.Error("it is written after its time")
	}
	until := clk.Now().Add(10 * time.Second)
	m.state(heartbeat.Statement{}, &coordinationv1.Lease{}, until, func() {})
	if s := m.next(); s == nil || s.until != until {
		t.Errorf("the next one: %+v", s)
	}
}
