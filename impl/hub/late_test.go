package hub

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/weir-edge/weir/impl/heartbeat"
)

// TestLateHeartbeatIsNotMirrored: a heartbeat that could not be written in time is not written at all. Others would take it for one of then.
func TestLateHeartbeatIsNotMirrored(t *testing.T) {
	now := time.Duration(0)
	m := newMirror(nil, "edge-1", time.Second, func() time.Duration { return now }, nil, nil, newMetrics())
	m.state(heartbeat.Statement{Until: 10 * time.Second}, &coordinationv1.Lease{})
	now = 10 * time.Second
	if m.next() == nil {
		t.Error("it is not written, although it is in time")
	}
	now++
	if m.next() != nil {
		t.Error("it is written after its time")
	}
	m.state(heartbeat.Statement{Until: 20 * time.Second}, &coordinationv1.Lease{})
	if s := m.next(); s == nil || s.Until != 20*time.Second {
		t.Errorf("the next one: %+v", s)
	}
}
