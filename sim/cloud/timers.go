package cloud

import (
	"fmt"
	"strconv"
	"time"
)

// Timers are those of Kubernetes that decide when a node counts as lost and when its pods move.
type Timers struct {
	MonitorPeriod time.Duration // between two looks at all nodes
	MonitorGrace  time.Duration // without a heartbeat until a node is Unknown
	StartupGrace  time.Duration // the same for a node that never was Ready
	Toleration    time.Duration // of pods for a node that is Unknown or not Ready
	EvictionRate  float64       // nodes a second, in a zone
	SecondaryRate float64       // the same in a zone of which most nodes are lost
	Lease         time.Duration // duration of a node's Lease; the kubelet renews it four times as often
	StatusPeriod  time.Duration // of the kubelet, between two looks at its node
}

// StockTimers are the defaults of Kubernetes 1.37.
func StockTimers() Timers {
	return Timers{
		MonitorPeriod: 5 * time.Second, MonitorGrace: 50 * time.Second, StartupGrace: time.Minute,
		Toleration:   5 * time.Minute,
		EvictionRate: 0.1, SecondaryRate: 0.01, Lease: 40 * time.Second, StatusPeriod: 10 * time.Second,
	}
}

// Faster are the timers with everything that many times as fast, in proportion.
func (t Timers) Faster(by float64) Timers {
	shorter := func(d time.Duration) time.Duration { return time.Duration(float64(d) / by) }
	return Timers{
		MonitorPeriod: shorter(t.MonitorPeriod), MonitorGrace: shorter(t.MonitorGrace), StartupGrace: shorter(t.StartupGrace),
		Toleration: shorter(t.Toleration), Lease: shorter(t.Lease), StatusPeriod: shorter(t.StatusPeriod),
		EvictionRate: t.EvictionRate * by, SecondaryRate: t.SecondaryRate * by,
	}
}

// EvictedBy is how long after its last heartbeat the pods of one lost node are evicted at the latest by the timers
// alone.
func (t Timers) EvictedBy() time.Duration { return t.MonitorGrace + 2*t.MonitorPeriod + t.Toleration }

// APIServerFlags are those for pods' tolerations; none for stock timers.
func (t Timers) APIServerFlags() []string {
	if t == StockTimers() {
		return nil
	}
	seconds := strconv.Itoa(int(t.Toleration / time.Second))
	return []string{
		"--default-not-ready-toleration-seconds=" + seconds, "--default-unreachable-toleration-seconds=" + seconds,
	}
}

// ControllerManagerFlags are those of the node lifecycle; none for stock timers.
func (t Timers) ControllerManagerFlags() []string {
	if t == StockTimers() {
		return nil
	}
	return []string{
		"--node-monitor-period=" + t.MonitorPeriod.String(),
		"--node-monitor-grace-period=" + t.MonitorGrace.String(),
		"--node-startup-grace-period=" + t.StartupGrace.String(),
		fmt.Sprintf("--node-eviction-rate=%g", t.EvictionRate),
		fmt.Sprintf("--secondary-node-eviction-rate=%g", t.SecondaryRate),
	}
}
