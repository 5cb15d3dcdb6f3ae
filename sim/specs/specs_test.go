package specs

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"

	"github.com/weir-edge/weir/sim/command"
	"github.com/weir-edge/weir/sim/layout"
	"github.com/weir-edge/weir/sim/proc/gobuild"
	"github.com/weir-edge/weir/sim/runner"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

const (
	wanted     = "WEIR_SPECS"         // runs them, as a filter of labels does; without, only labels are looked at
	runtimeEnv = "WEIR_SPECS_RUNTIME" // local or kind
	manyNodes  = 20
)

// quick are the scenarios that the Makefile calls so.
func quick(t testing.TB, root string) []string {
	data, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(data), "\n") {
		if names, ok := strings.CutPrefix(line, "SMOKE   := "); ok {
			return strings.Fields(names)
		}
	}
	t.Fatal("the Makefile names no quick scenarios")
	return nil
}

// labels of a scenario in a file.
func labels(name string, s *scenario.Scenario, quick []string) (of Labels) {
	smoke := slices.Contains(quick, name)
	if smoke {
		of = append(of, "smoke")
	}
	if len(s.Faults) > 0 || slices.Contains([]string{"eviction", "autonomy"}, s.Study.Name()) {
		of = append(of, "fault")
	}
	if !smoke && strings.Contains(name, "/") || s.Topology.Pool.Nodes >= manyNodes || s.Study.Name() == "images" {
		of = append(of, "slow")
	}
	if refused(s) == nil {
		of = append(of, "kind")
	}
	return of
}

// refused tells why the runtime of kind clusters cannot run a scenario, as a run of it does.
func refused(s *scenario.Scenario) error {
	kind := &runtime.Kind{}
	var topology runtime.Topology
	switch about := s.Study.(type) {
	case *scenario.Eviction:
		topology = layout.Eviction(s, about, runtime.Weir)
	case *scenario.Crowd:
		topology = layout.Crowd(s, about, runtime.Weir)
	default:
		topology.Pools = layout.WeirPools(s)
	}
	if err := runner.Suits(s, kind); err != nil {
		return err
	}
	return kind.Suits(topology)
}

// files are all scenarios, by name.
func files(t testing.TB, root string) map[string]*scenario.Scenario {
	all := map[string]*scenario.Scenario{}
	for _, pattern := range []string{"*.yaml", "*/*.yaml"} {
		paths, err := filepath.Glob(filepath.Join(root, "scenarios", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range paths {
			loaded, err := scenario.Load(p)
			if err != nil {
				t.Fatal(err)
			}
			rel, err := filepath.Rel(filepath.Join(root, "scenarios"), p)
			if err != nil {
				t.Fatal(err)
			}
			all[strings.TrimSuffix(filepath.ToSlash(rel), ".yaml")] = loaded[0]
		}
	}
	return all
}

func TestSpecs(t *testing.T) {
	chosen, _ := GinkgoConfiguration()
	if os.Getenv(wanted) == "" && chosen.LabelFilter == "" {
		t.Skip("make specs runs the scenarios as specs; make quick runs the quickest of them by itself")
	}
	root, err := gobuild.Root("")
	if err != nil {
		t.Fatal(err)
	}
	on := os.Getenv(runtimeEnv)
	if on == "" {
		on = "local"
	}
	names, all := quick(t, root), files(t, root)
	if err := selects(chosen.LabelFilter, names, all); err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	Describe("scenario", Serial, func() { // they are measured
		for _, name := range slices.Sorted(maps.Keys(all)) { // in one order in all processes of ginkgo
			s := all[name]
			It(name, labels(name, s, names), func(ctx SpecContext) {
				args := []string{
					"scenario", "run", "--no-time-limits", "--runtime", on,
					filepath.Join("scenarios", filepath.FromSlash(name)+".yaml"),
				}
				if dir, _ := filepath.Split(name); dir != "" && !slices.Contains(names, name) {
					args = append(args, "--out", filepath.Join("reports", "out", dir))
				}
				fmt.Fprintf(GinkgoWriter, "seed %d: bin/weir %s\n", s.Seed, strings.Join(args, " "))
				Expect(command.Run(ctx, args, GinkgoWriter, GinkgoWriter)).To(Succeed())
			})
		}
	})
	RegisterFailHandler(Fail)
	RunSpecs(t, "Weir's scenarios")
}

// selects fails where a filter of labels takes no scenario at all, which would pass.
func selects(filter string, quick []string, all map[string]*scenario.Scenario) error {
	takes, err := types.ParseLabelFilter(filter)
	if err != nil {
		return fmt.Errorf("LABELS=%q: %w", filter, err)
	}
	for name, s := range all {
		if takes(labels(name, s, quick)) {
			return nil
		}
	}
	return fmt.Errorf("LABELS=%q: takes no scenario: want smoke, fault, slow, kind, and what &&, || and ! make of them",
		filter)
}

// TestSelects: a filter that takes nothing, or cannot be read, is told.
func TestSelects(t *testing.T) {
	root, err := gobuild.Root("")
	if err != nil {
		t.Fatal(err)
	}
	names, all := quick(t, root), files(t, root)
	for filter, want := range map[string]string{
		"": "", "smoke": "", "!slow && fault": "", "nonsense": "want smoke", "smoke && slow": "takes no scenario",
		"a && (": "LABELS",
	} {
		if err := selects(filter, names, all); (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", filter, err)
		}
	}
}

// TestLabels: each file has a label, and each label a file.
func TestLabels(t *testing.T) {
	root, err := gobuild.Root("")
	if err != nil {
		t.Fatal(err)
	}
	names, all := quick(t, root), files(t, root)
	count := map[string]int{}
	for name, s := range all {
		of := labels(name, s, names)
		if len(of) == 0 {
			t.Errorf("%s has no label", name)
		}
		for _, l := range of {
			count[l]++
		}
		if slices.Contains(of, "smoke") && slices.Contains(of, "slow") {
			t.Errorf("%s is smoke and slow", name)
		}
	}
	for _, l := range []string{"smoke", "fault", "slow", "kind"} {
		if count[l] == 0 {
			t.Errorf("no scenario is %s", l)
		}
	}
	if count["smoke"] != len(names) {
		t.Errorf("%d scenarios are smoke, the Makefile names %d quick ones: %v", count["smoke"], len(names), names)
	}
}

// TestKind: what is labelled kind is what kind runs: lost nodes, too, and nothing that it refuses.
func TestKind(t *testing.T) {
	root, err := gobuild.Root("")
	if err != nil {
		t.Fatal(err)
	}
	all := files(t, root)
	for name, want := range map[string]string{
		"pool-cache": "", "leader-kill": "", "eviction/node-cut-off": "", "eviction/pool-silent-return": "",
		"nightly/node-cut-off-stock":                  "",
		"cloud-restored":                              "its kube-apiserver is a pod",
		"eviction/cloud-apiserver-restart-delegating": "its kube-apiserver is a pod",
		"eviction/cloud-unready":                      "its kube-apiserver is a pod",
		"clock-1970":                                  "machines without a clock",
		"replicas-placed":                             "coordinator as Pods",
		"autonomy/offline-machine-restart":            "its containers are real",
		"images-once":                                 "its containers are real",
		"nightly/real-node":                           "logs no frames",
		"nightly/pools-100":                           "200 nodes are more than",
		"nightly/openyurt-load-100":                   "100 nodes are more than",
	} {
		s := all[name]
		if s == nil {
			t.Errorf("there is no scenario %s", name)
			continue
		}
		err := refused(s)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
		if labelled := slices.Contains(labels(name, s, nil), "kind"); labelled != (want == "") {
			t.Errorf("%s is labelled kind: %t", name, labelled)
		}
	}
}
