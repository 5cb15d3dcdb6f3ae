package runner

import (
	"slices"
	"time"

	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/runtime"
)

// addGateConnections counts the connections that pools keep to the gate while nothing is broken.
func (r *run) addGateConnections() {
	gated, ok := r.site.(runtime.Gated)
	if !ok || gated.GateAddress() == "" {
		return
	}
	until := r.weir().ended
	for _, e := range r.faults {
		if e.began.Before(until) {
			until = e.began
		}
	}
	to := slices.DeleteFunc(r.connections(), func(c link.Connection) bool {
		return c.Class != runtime.ClassPool || c.To != gated.GateAddress()
	})
	r.metrics["gate_connections"] = float64(mostOpen(to, r.synced, until))
}

// mostOpen is how many connections were open at one time, from one time until another. One that ended when another
// began was not open with it.
func mostOpen(connections []link.Connection, from, until time.Time) (most int) {
	for _, at := range connections {
		moment := at.Opened
		if moment.Before(from) {
			moment = from
		}
		if moment.After(until) {
			continue
		}
		n := 0
		for _, c := range connections {
			if !c.Opened.After(moment) && (c.Closed.IsZero() || c.Closed.After(moment)) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}
