package runner

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
	"github.com/weir-edge/weir/sim/timeline"
)

// TestFaults lets faults of each kind happen to a small pool: real processes are killed and frozen, links cut.
func TestFaults(t *testing.T) {
	s, err := scenario.Parse("faults.yaml", []byte(`
name: faults
seed: 11
topology:
  pool: {name: quay, nodes: 3, uplink: {rate: 20Mbit/s, rtt: 20ms}, coordinators: 1}
workload: {services: 4, endpoints: 10, changes: 30, changesPerSecond: 3}
clients: [kube-proxy, coredns]
compare: []
faults:
  - {at: 500ms, action: kill, target: leader, for: 1s}
  - {at: 1s, action: slow, target: pool, link: cloud, rate: 1Mbit/s, rtt: 50ms, for: 2s}
  - {at: 6s, action: kill, target: apiserver, for: 500ms}
expectations:
  - watch_violations == 0
  - failovers == 1
  - failover_seconds_p99 <= 20s
`))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	res, err := Run(t.Context(), s, Options{
		Runtime: &runtime.Local{LogDir: filepath.Join(dir, "logs")}, Dir: dir, Repeat: "go test ./sim/runner",
		Progress: func(m string) { t.Log(m) },
	})
	if err != nil || !res.Passed {
		t.Fatalf("%v\n%+v\n%+v", err, res.Expectations, res.Violations)
	}
	if len(res.Faults) != 3 {
		t.Fatalf("faults %+v, want 3", res.Faults)
	}
	i := slices.IndexFunc(res.Faults, func(f report.Fault) bool { return f.Leader })
	if i < 0 {
		t.Fatalf("faults %+v, want one of the leader", res.Faults)
	}
	kill := res.Faults[i]
	// Two of three nodes are served, each with the three streams of two clients.
	if kill.Lasted < 1 || kill.Reached <= 0 || kill.Recovered <= 0 || kill.Streams < 6 || kill.Streams > 9 ||
		!strings.HasPrefix(kill.Target, "hub/quay-") {
		t.Errorf("kill of the leader: %+v", kill)
	}
	for _, name := range []string{
		"failover_cloud_bytes", "new_cloud_connections", "stale_seconds_max", "recovery_seconds_max", "resync_bytes_share",
	} {
		if _, ok := res.Metrics[name]; !ok {
			t.Errorf("%s was not measured", name)
		}
	}
	if err := report.Write(dir, res); err != nil {
		t.Fatal(err)
	}
	summary, err := os.ReadFile(filepath.Join(dir, "summary.md"))
	if err != nil || !strings.Contains(string(summary), "kill leader") ||
		!strings.Contains(string(summary), "Leader changes") {
		t.Errorf("the summary does not tell of the fault: %v\n%s", err, summary)
	}
	happened := map[string]int{}
	f, err := os.Open(filepath.Join(dir, "timeline.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for e, err := range timeline.NewReader(f).All() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Lane == timeline.Fault {
			happened[e.Name]++
		}
	}
	if happened["begin"] != 3 || happened["healed"] != 3 || happened["recovered"] != 3 {
		t.Errorf("events of the timeline: %v, want three of each", happened)
	}
}

// TestServed: a node is served when no fault silences it any more.
func TestServed(t *testing.T) {
	r := &run{
		ways: []*way{{name: report.WayWeir}}, outages: outages{dead: map[string]time.Time{}, quiet: map[string]int{}},
	}
	if got := r.served(); len(got) != 0 {
		t.Fatalf("%d streams of none are served", len(got))
	}
	r.silence([]string{"a"}, 1)
	r.silence([]string{"a"}, 1)
	r.silence([]string{"a"}, -1)
	if r.outages.quiet["a"] != 1 {
		t.Error("a node that two faults silenced is served when one of them is over")
	}
}

// TestEach: an upgrade takes every coordinator and every hub.
func TestEach(t *testing.T) {
	for n, want := range map[int][]scenario.Target{
		1: {"coordinator", "hub/1", "hub/2"},
		3: {"coordinator/1", "coordinator/2", "coordinator/3", "hub/1", "hub/2"},
	} {
		pool := scenario.Pool{Name: "quay", Nodes: 2, Coordinators: n}
		r := &run{
			s: &scenario.Scenario{
				Topology: scenario.Topology{Pool: pool},
			}, ways: []*way{{name: report.WayWeir, nodes: []string{"quay-1", "quay-2"}}},
		}
		if got := r.each(pool); !slices.Equal(got, want) {
			t.Errorf("of %d coordinators: %v, want %v", n, got, want)
		}
	}
}

// What is done to a part waits until what was done to it before is over; other parts are not waited for.
func TestFaultsOfAPartFollowEachOther(t *testing.T) {
	r := &run{outages: outages{parts: map[runtime.PartID]*sync.Mutex{}}}
	over := r.alone("coordinator/harbour")
	second := make(chan struct{})
	go func() {
		defer r.alone("coordinator/harbour")()
		close(second)
	}()
	r.alone("hub/harbour-1")()
	r.alone("")()
	select {
	case <-second:
		t.Error("a fault began before the one of the same part was over")
	default:
	}
	over()
	<-second
}

// TestFaultWhileTheCloudIsAway: a fault whose target cannot be found while the apiserver is away waits for it, for
// longer than it would wait for the pool. So did the whole run end with a write of the testbed that was refused.
func TestFaultWhileTheCloudIsAway(t *testing.T) {
	s, err := scenario.Parse("away.yaml", []byte(`
name: away
seed: 11
topology:
  pool: {name: quay, nodes: 3, uplink: {rate: 20Mbit/s, rtt: 20ms}, coordinators: 1}
workload: {services: 4, endpoints: 10, changes: 30, changesPerSecond: 3}
clients: [kube-proxy]
compare: []
faults:
  - {at: 1s, action: kill, target: apiserver, for: 80s}
  - {at: 40s, action: kill, target: leader, for: 1s}
expectations:
  - watch_violations == 0
`))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	res, err := Run(t.Context(), s, Options{
		Runtime: &runtime.Local{LogDir: filepath.Join(dir, "logs")}, Dir: dir, Progress: func(m string) { t.Log(m) },
	})
	if err != nil || !res.Passed || len(res.Faults) != 2 {
		t.Fatalf("%v\n%+v\n%+v\n%+v", err, res.Expectations, res.Violations, res.Faults)
	}
}
