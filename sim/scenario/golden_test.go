package scenario_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/weir-edge/weir/sim/layout"
	"github.com/weir-edge/weir/sim/scenario"
)

// batchesLine is what a file says of batches. Without it the faults decide.
var batchesLine = regexp.MustCompile(`(?m)^batches:.*\n`)

// TestFaultsOfFiles compares with a golden file what each shipped scenario's faults are: in words, as they are written,
// what judges make of them, and what storms draw from some seeds.
func TestFaultsOfFiles(t *testing.T) {
	files, err := filepath.Glob(shipped + "/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob(shipped + "/*/*.yaml")
	if err != nil || len(files) == 0 || len(more) == 0 {
		t.Fatal(len(files), len(more), err)
	}
	var got strings.Builder
	for _, file := range append(files, more...) {
		describe(t, &got, file)
	}
	const golden = "testdata/faults.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("faults of files (-want +got):\n%s", diff)
	}
}

func describe(t *testing.T, out *strings.Builder, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Parse(file, text)
	if err != nil {
		t.Fatal(err)
	}
	free, err := scenario.Parse(file, batchesLine.ReplaceAll(text, nil))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(out, "%s:\n", strings.TrimPrefix(file, shipped+"/"))
	for _, w := range judged(s, free.Batches) {
		fmt.Fprintf(out, "  judges: %s\n", w)
	}
	tell(t, out, "  ", s.Faults)
	if !slices.ContainsFunc(s.Faults, func(f scenario.Fault) bool { return f.String() == "storm pool" }) {
		return
	}
	for _, seed := range []int64{1, 2, 301, 20261005} {
		s.Seed = seed
		fmt.Fprintf(out, "  seed %d draws\n", seed)
		tell(t, out, "    ", s.Drawn().Faults)
	}
}

// judged is what judges ask about a scenario's faults.
func judged(s *scenario.Scenario, batches bool) (yes []string) {
	for _, one := range []struct {
		what string
		is   bool
	}{
		{"restarts the apiserver", s.RestartsAPIServer()}, {"restores the cloud", s.RestoresCloud()},
		{"batches", batches}, {"forges", s.Forges()}, {"places", s.Places()}, {"rotates", s.Rotates()},
		{"deletes", s.Deletes()}, {"blacks out", s.BlacksOut()}, {"moves", s.Moves()}, {"changes", s.Changes()},
		{"only changes", s.OnlyChanges()}, {"tears", s.Tears()}, {"restarts", s.Restarts()},
	} {
		if one.is {
			yes = append(yes, one.what)
		}
	}
	for _, p := range layout.WeirPools(s) {
		if p.LAN != nil {
			yes = append(yes, "needs a LAN in "+p.Name)
		}
		if p.EnrolsCoordinator {
			yes = append(yes, "rotates in "+p.Name)
		}
	}
	return yes
}

// tell writes faults in words, and as a file has them.
func tell(t *testing.T, out *strings.Builder, indent string, faults []scenario.Fault) {
	t.Helper()
	for _, f := range faults {
		data, err := yaml.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		written := strings.Join(strings.Fields(string(data)), " ")
		fmt.Fprintf(out, "%s%s = %s\n", indent, f, written)
	}
}
