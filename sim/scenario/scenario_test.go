package scenario_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/sim/layout"
	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// whole lets two faults be compared with all that is in them.
var whole = cmp.Exporter(func(reflect.Type) bool { return true })

const (
	shipped = "../../scenarios"
	nightly = shipped + "/nightly"
)

// loadShipped loads all scenarios of the repository.
func loadShipped(t *testing.T) []*scenario.Scenario {
	t.Helper()
	all, err := scenario.Load(shipped)
	if err != nil {
		t.Fatal(err)
	}
	more, err := scenario.Load(nightly)
	if err != nil {
		t.Fatal(err)
	}
	return append(all, more...)
}

// small is a scenario that is right.
const small = `name: small
seed: 7
topology: {pool: {name: harbour, nodes: 3, uplink: {up: 512kbit/s, down: 1.5Mbit/s, rtt: 1.5s}}}
workload: {services: 4, endpoints: 10, changes: 20, changesPerSecond: 2.5, alone: 6}
clients: [json, kubectl]
faults:
expectations: [pool_bytes_ratio <= 1.02, hub_rss_bytes_max < 40MB]
`

func TestParse(t *testing.T) {
	got, err := scenario.Parse("some/small.yaml", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	want := &scenario.Scenario{
		File: "some/small.yaml", Name: "small", Seed: 7,
		Topology: scenario.Topology{Pool: scenario.Pool{
			Name: "harbour", Nodes: 3, Coordinators: 1,
			Uplink: scenario.Uplink{Up: 512_000, Down: 1_500_000, RTT: 1500 * time.Millisecond},
		}},
		Workload: scenario.Workload{Services: 4, Endpoints: 10, Changes: 20, ChangesPerSecond: 2.5, Alone: 6},
		Clients:  []scenario.ClientKind{scenario.JSON, scenario.Kubectl},
		Compare:  []string{"reference", "stock"},
		Study:    scenario.Watching{},
		Expectations: []scenario.Expectation{
			{Metric: "pool_bytes_ratio", Op: "<=", Limit: 1.02}, {Metric: "hub_rss_bytes_max", Op: "<", Limit: 40e6},
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(scenario.Expectation{}, scenario.Watching{})); diff != "" {
		t.Errorf("parsed (-want +got):\n%s", diff)
	}
}

func TestParseFaults(t *testing.T) {
	text := strings.Replace(small, "faults:\n", `compare: []
faults:
  - {at: 5s, action: kill, target: leader, for: 2s, repeat: 3, every: 1s}
  - {at: 0s, action: cut, target: hub/2, link: coordinator, for: 500ms}
  - {at: 1s, action: slow, target: pool, link: cloud, rate: 256kbit/s, rtt: 300ms, for: 5s}
  - {at: 1s, action: flap, target: pool, link: both, direction: down, cuts: 20, for: 2m}
  - {at: 9s, action: restart, target: apiserver}
  - {at: 9s, action: reset_peer, target: leader, link: cloud, timeout: 1.5s, for: 5s, repeat: 2}
  - {at: 9s, action: slicer, target: pool, link: both, direction: up, average_size: 4kB, delay: 2ms, for: 5s}
`, 1)
	text = strings.Replace(text, "pool_bytes_ratio <= 1.02", "failovers >= 3", 1)
	s, err := scenario.Parse("small.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	rate, rtt := scenario.Rate(256_000), 300*time.Millisecond
	want := []scenario.Fault{
		{
			At: 5 * time.Second, Kind: &scenario.Kill{}, Target: scenario.Leader, For: 2 * time.Second, Repeat: 3,
			Every: time.Second,
		},
		{
			Kind: &scenario.Cut{}, Target: "hub/2", Link: scenario.CoordinatorLink, Direction: link.Both,
			For: 500 * time.Millisecond, Repeat: 1,
		},
		{
			At: time.Second, Kind: &scenario.Slow{Rate: &rate, RTT: &rtt}, Target: scenario.WholePool,
			Link: scenario.CloudLink, For: 5 * time.Second, Repeat: 1,
		},
		{
			At: time.Second, Kind: &scenario.Flap{Cuts: 20}, Target: scenario.WholePool, Link: scenario.BothLinks,
			Direction: link.Down, For: 2 * time.Minute, Repeat: 1,
		},
		{At: 9 * time.Second, Kind: &scenario.Restart{}, Target: scenario.APIServer, Repeat: 1},
		{
			At: 9 * time.Second, Target: scenario.Leader, Link: scenario.CloudLink,
			For: 5 * time.Second, Repeat: 2,
			Kind: &scenario.Toxic{Type: scenario.ResetPeer, Attributes: map[string]int64{"timeout": 1500}},
		},
		{
			At: 9 * time.Second, Target: scenario.WholePool, Link: scenario.BothLinks,
			Direction: link.Up, For: 5 * time.Second, Repeat: 1,
			Kind: &scenario.Toxic{Type: scenario.Slicer, Attributes: map[string]int64{"average_size": 4000, "delay": 2000}},
		},
	}
	if diff := cmp.Diff(want, s.Faults, whole); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	if !s.Batches || len(s.Compare) != 0 || layout.WeirPool(s).LAN == nil {
		t.Errorf("batches %v, compare %v, LAN %v: want batches for the restart of the apiserver, nothing to compare with, "+
			"and a LAN to cut", s.Batches, s.Compare, layout.WeirPool(s).LAN)
	}
	roundTrip(t, s)
}

func TestRoundTrip(t *testing.T) {
	all := loadShipped(t)
	one, err := scenario.Parse("", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range append(all, one) {
		roundTrip(t, s)
	}
}

func roundTrip(t *testing.T, s *scenario.Scenario) {
	t.Helper()
	data, err := s.YAML()
	if err != nil {
		t.Fatal(err)
	}
	again, err := scenario.Parse(s.File, data)
	if err != nil {
		t.Fatalf("%s: %v\n%s", s.Name, err, data)
	}
	if diff := cmp.Diff(s, again, whole); diff != "" {
		t.Errorf("%s: written and read (-before +after):\n%s", s.Name, diff)
	}
}

func TestShipped(t *testing.T) {
	all := loadShipped(t)
	if len(all) < 2 {
		t.Fatalf("%d scenarios in %s, want at least 2", len(all), shipped)
	}
	for _, s := range all {
		for _, mode := range []runtime.Mode{runtime.Stock, layout.Mode(s.Topology.Pool)} {
			if err := layout.Watching(s, mode).Validate(); err != nil {
				t.Errorf("%s: the runtime refuses it: %v", s.File, err)
			}
		}
		for _, e := range s.Expectations {
			if got, passed := e.Check(nil); passed {
				t.Errorf("%s: %s passes with %s", s.File, e, got)
			}
		}
	}
}

func TestRuntimeTopology(t *testing.T) {
	s, err := scenario.Parse("", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	want := runtime.Topology{
		Pools: []runtime.Pool{{
			Name: "harbour", Nodes: 3, Mode: runtime.Weir, Coordinators: 1,
			Uplink: runtime.Link{Up: 512_000, Down: 1_500_000, RTT: 1500 * time.Millisecond},
		}},
		Tools: []string{"kubectl"},
	}
	if diff := cmp.Diff(want, layout.Watching(s, layout.Mode(s.Topology.Pool))); diff != "" {
		t.Errorf("topology (-want +got):\n%s", diff)
	}
}

// TestReplicas: each of three coordinators can be a target, and a pool that is compared with has none.
func TestReplicas(t *testing.T) {
	text := strings.NewReplacer("nodes: 3", "nodes: 3, coordinators: 3", "faults:", `faults:
  - {at: 1s, action: kill, target: coordinator/3, for: 1s, disk: lose}
  - {at: 1s, action: freeze, target: coordinator, for: 1s}
  - {at: 1s, action: restart, target: each}`).Replace(small)
	s, err := scenario.Parse("", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, s)
	for i, want := range []scenario.Target{scenario.Replica(3), scenario.Coordinator, scenario.Each} {
		if got := s.Faults[i].Target; got != want {
			t.Errorf("fault %d hits %s, want %s", i, got, want)
		}
	}
	if n, ok := s.Faults[0].Target.Replica(); n != 3 || !ok {
		t.Errorf("the first fault hits the replica %d (%v), want 3", n, ok)
	}
	if _, ok := s.Faults[1].Target.Replica(); ok {
		t.Error("the coordinator that is fed has a number")
	}
	for mode, want := range map[runtime.Mode]int{runtime.Weir: 3, runtime.Stock: 0} {
		topology := layout.Watching(s, mode)
		if got := topology.Pools[0].Coordinators; got != want {
			t.Errorf("%s: %d coordinators, want %d", mode, got, want)
		}
		if err := topology.Validate(); err != nil {
			t.Errorf("%s: the runtime refuses it: %v", mode, err)
		}
	}
}

// TestLives: hubs that ask for their certificates need weir-manager, and a coordinator to show them to.
func TestLives(t *testing.T) {
	text := strings.NewReplacer("nodes: 3", "nodes: 3, lives: {hub: 20s, forwarder: 15s, coordinator: 25s}").Replace(small)
	s, err := scenario.Parse("", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, s)
	topology := layout.Watching(s, runtime.Weir)
	if l := topology.Pools[0].Lives; l == nil || l.Hub != 20*time.Second || l.Forwarder != 15*time.Second ||
		l.Coordinator != 25*time.Second || !topology.Manager {
		t.Errorf("topology %+v", topology)
	}
	if err := topology.Validate(); err != nil {
		t.Error(err)
	}
	topology.Manager = false
	if topology.Validate() == nil {
		t.Error("the runtime takes it without weir-manager")
	}
}

// TestEnrols: hubs that ask weir-manager to sign need it, and no lives beside it. A Node is deleted only where somebody
// revokes certificates.
func TestEnrols(t *testing.T) {
	const fault = "faults: [{at: 1s, action: delete-node, target: leader, for: 50s, off: 20s}]\n"
	text := strings.NewReplacer("nodes: 3", "nodes: 3, enrols: true", "faults:\n", fault,
		"[pool_bytes_ratio", "[revoked_seconds_max <= 60s, pool_bytes_ratio").Replace(small)
	s, err := scenario.Parse("", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, s)
	topology := layout.Watching(s, runtime.Weir)
	if err := topology.Validate(); err != nil || !topology.Pools[0].Enrols || !topology.Manager || !s.Batches {
		t.Errorf("topology %+v, batches %t, %v", topology, s.Batches, err)
	}
	topology.Manager = false
	if topology.Validate() == nil {
		t.Error("the runtime takes it without weir-manager")
	}
	for change, want := range map[string]string{
		"enrols: true->enrols: false":                                                    "want topology.pool.enrols: true",
		"enrols: true->enrols: true, lives: {hub: 20s, forwarder: 15s}":                  "want one of them",
		"enrols: true->enrols: true, coordinators: 0":                                    "want a coordinator",
		"off: 20s->off: 50s":                                                             "want less",
		"delete-node, target: leader, for: 50s, off: 20s->lie, target: leader, for: 50s": "want a fault of that action",
	} {
		from, to, _ := strings.Cut(change, "->")
		if _, err := scenario.Parse("", []byte(strings.Replace(text, from, to, 1))); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", change, err)
		}
	}
}

// TestMistakes compares all that is said about each file of testdata/mistakes with its golden file.
func TestMistakes(t *testing.T) {
	files, err := filepath.Glob("testdata/mistakes/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			all, err := scenario.Load(file)
			if err == nil {
				t.Fatalf("accepted: %+v", all[0])
			}
			if code := cli.ExitCode(err); code != 2 {
				t.Errorf("exit code %d, want 2", code)
			}
			var usage *cli.UsageError
			if !errors.As(err, &usage) || !strings.Contains(usage.Field, filepath.Base(file)+":") {
				t.Errorf("usage error %+v, want one that names the file", usage)
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			got := strings.ReplaceAll(err.Error(), "testdata/mistakes/", "") + "\n"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("mistakes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoadFolder(t *testing.T) {
	write := func(dir, name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	named := func(name string) string { return strings.Replace(small, "name: small", "name: "+name, 1) }
	tests := []struct {
		name  string
		files map[string]string
		want  string // names, or part of the error
		fails bool
	}{
		{
			name: "sorted", files: map[string]string{
				"b.yaml": named("b"), "a.yaml": named("a"), "README.md": "x", ".c.yaml": "x",
			}, want: "a b",
		},
		{
			name: "mistakes of all files", files: map[string]string{"a.yaml": "{}", "b.yaml": named("b"), "c.yaml": named("d")},
			want: "c.yaml:1: name", fails: true,
		},
		{name: "empty", want: "no file in it", fails: true},
		{name: "yml", files: map[string]string{"a.yaml": named("a"), "b.yml": named("b")}, want: "b.yml", fails: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, content := range test.files {
				write(dir, name, content)
			}
			all, err := scenario.Load(dir)
			if test.fails {
				if err == nil || cli.ExitCode(err) != 2 || !strings.Contains(err.Error(), test.want) {
					t.Fatalf("error %v, want wrong usage with %q", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, s := range all {
				names = append(names, s.Name)
			}
			if got := strings.Join(names, " "); got != test.want {
				t.Errorf("loaded %s, want %s", got, test.want)
			}
		})
	}
	for _, path := range []string{"testdata/none.yaml", "scenario.go", os.DevNull} {
		if _, err := scenario.Load(path); cli.ExitCode(err) != 2 {
			t.Errorf("%s: error %v, want wrong usage", path, err)
		}
	}
}
