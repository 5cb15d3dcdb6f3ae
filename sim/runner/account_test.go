package runner

import (
	"testing"
	"time"

	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/runtime"
)

// TestGrace counts from the loss until somebody begins to read for the pool, whatever else is opened, and not what was
// before or after.
func TestGrace(t *testing.T) {
	began := time.Now()
	e := &episode{began: began, ended: began.Add(time.Minute)}
	open := func(class string, seconds int) link.Connection {
		return link.Connection{Class: class, Opened: began.Add(time.Duration(seconds) * time.Second)}
	}
	connections := []link.Connection{
		open(runtime.ClassPool, -5), open(runtime.ClassNode, 1), open(runtime.ClassControl, 2), open(runtime.ClassPool, 61),
	}
	if g := graceOf(e, connections); g != 0 {
		t.Errorf("nobody reads for the pool: %v", g)
	}
	connections = append(connections, open(runtime.ClassPool, 40), open(runtime.ClassPool, 31))
	if g := graceOf(e, connections); g != 31*time.Second {
		t.Errorf("grace %v, want 31s", g)
	}
	faults := []episode{{}, {grace: 31 * time.Second}, {grace: 2 * time.Second}}
	if least := shortestGrace(faults); least != 2*time.Second {
		t.Errorf("the shortest of all is %v", least)
	}
	if least := shortestGrace(faults[:1]); least != 0 {
		t.Errorf("of none it is %v", least)
	}
}
