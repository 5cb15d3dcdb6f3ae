package repository

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/weir-edge/weir/sim/proc/gobuild"
)

func root(t *testing.T) string {
	t.Helper()
	dir, err := gobuild.Root("")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

type workflow struct {
	Name        string            `yaml:"name"`
	On          any               `yaml:"on"`
	Concurrency map[string]any    `yaml:"concurrency"`
	Permissions map[string]string `yaml:"permissions"`
	Jobs        map[string]job    `yaml:"jobs"`
}

type job struct {
	Needs       []string          `yaml:"needs"`
	If          string            `yaml:"if"`
	RunsOn      string            `yaml:"runs-on"`
	Timeout     int               `yaml:"timeout-minutes"`
	Permissions map[string]string `yaml:"permissions"`
	Strategy    struct {
		FailFast bool `yaml:"fail-fast"`
		Matrix   struct {
			Target []string `yaml:"target"`
		} `yaml:"matrix"`
	} `yaml:"strategy"`
	Steps []struct {
		Name string            `yaml:"name"`
		Uses string            `yaml:"uses"`
		With map[string]any    `yaml:"with"`
		Run  string            `yaml:"run"`
		If   string            `yaml:"if"`
		Env  map[string]string `yaml:"env"`
	} `yaml:"steps"`
}

var (
	target  = regexp.MustCompile(`(?m)^([a-z-]+):.*## `)
	command = regexp.MustCompile(`^make (\S+|\$\{\{ matrix\.target \}\})( [A-Z_]+=\S+| [A-Z_]+=\$\{\{ [a-z_.]+ \}\})*$`)
	// pinned is an action at a commit: a tag can be moved, a commit cannot. The comment is what people and dependabot
	// read.
	pinned = regexp.MustCompile(`^[a-z-]+/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	uses   = regexp.MustCompile(`(?m)\buses: *(.*?) *$`)
	// mayWrite are the targets that a job with a right to write may run. None of them tests, measures or builds.
	mayWrite = []string{"publish", "landed", "comment"}
	// outside are values that the author of a pull request chooses: none of them goes into a command.
	outside = regexp.MustCompile(
		`github\.(head_ref|event\.pull_request\.(title|body|head\.ref|head\.label)|event\.(comment|issue|commits))`)
)

// problems of a workflow, by the targets that there are.
func problems(data []byte, targets []string) (all []string) {
	var w workflow
	dec := yaml.NewDecoder(strings.NewReader(string(data)))
	dec.KnownFields(true)
	if err := dec.Decode(&w); err != nil {
		return []string{err.Error()}
	}
	if w.On == nil || len(w.Jobs) == 0 || len(w.Permissions) == 0 {
		all = append(all, "it has no on, no jobs, or no permissions")
	}
	for _, m := range uses.FindAllStringSubmatch(string(data), -1) {
		if !pinned.MatchString(m[1]) {
			all = append(all, m[1]+" is not pinned by a commit, with its version behind: owner/name@<40 digits> # v1.2.3")
		}
	}
	for right, how := range w.Permissions {
		if how != "read" {
			all = append(all, "all jobs have the right "+right+": "+how)
		}
	}
	for name, j := range w.Jobs {
		writes := slices.Contains(slices.Collect(maps.Values(j.Permissions)), "write")
		for _, n := range j.Needs {
			if _, ok := w.Jobs[n]; !ok {
				all = append(all, "job "+name+" needs "+n+", which is not there")
			}
		}
		if j.RunsOn == "" || j.Timeout == 0 {
			all = append(all, "job "+name+" does not say where it runs, or for how long at most")
		}
		makes := 0
		for _, s := range j.Steps {
			if s.Run == "" {
				continue
			}
			m := command.FindStringSubmatch(s.Run)
			if m == nil {
				all = append(all, "job "+name+" runs something else than a target of make: "+s.Run)
				continue
			}
			makes++
			if outside.MatchString(s.Run) {
				all = append(all, "job "+name+" puts what a stranger wrote into a command: "+s.Run)
			}
			asked := []string{m[1]}
			if strings.HasPrefix(m[1], "$") {
				asked = j.Strategy.Matrix.Target
			}
			for _, a := range asked {
				if !slices.Contains(targets, a) {
					all = append(all, "job "+name+": there is no target "+a)
				}
				if writes && !slices.Contains(mayWrite, a) {
					all = append(all, "job "+name+" may write, and runs make "+a)
				}
			}
		}
		if makes == 0 {
			all = append(all, "job "+name+" makes nothing")
		}
	}
	return all
}

func targets(t *testing.T) (names []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root(t), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range target.FindAllStringSubmatch(string(data), -1) {
		names = append(names, m[1])
	}
	return names
}

func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root(t), ".github", "workflows", "*.yaml"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%v, %v: want pull-request, nightly and release", files, err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems(data, targets(t)) {
			t.Errorf("%s: %s", filepath.Base(path), p)
		}
	}
}

// TestMakeReport: what a user sets on the line of make, and nothing else, is what is asked for.
func TestMakeReport(t *testing.T) {
	for line, want := range map[string]string{
		"report":                        "bin/weir report change",
		"report QUICK=1":                "bin/weir report change --quick",
		"report BASE=v1 ONLY=card":      "bin/weir report change --base v1 --only card",
		"report-compare NAME=glitch":    "bin/weir report compare reports/baseline/glitch.json reports/out/glitch",
		"report-compare A=x B=y":        "bin/weir report compare x y",
		"baseline NAME=glitch REASON=r": "bin/weir report baseline --reason r reports/out/glitch",
		"bench":                         "bin/weir bench",
		"bench ARGS=--resume":           "bin/weir bench --resume",
	} {
		c := exec.CommandContext(t.Context(), "make",
			append([]string{"--no-print-directory", "--dry-run"}, strings.Fields(line)...)...)
		c.Dir = root(t)
		c.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { // of the make that runs this test
			name, _, _ := strings.Cut(v, "=")
			return slices.Contains([]string{
				"MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "NAME", "BASE", "QUICK", "ONLY", "ARGS", "A", "B",
			}, name)
		})
		out, err := c.Output()
		if err != nil {
			t.Fatalf("make %s: %v", line, err)
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		got := strings.Join(strings.Fields(strings.ReplaceAll(lines[len(lines)-1], "'", "")), " ")
		if got != want {
			t.Errorf("make %s runs %q, want %q", line, got, want)
		}
	}
}

// TestWorkflowProblems: what the test above is there for is found.
func TestWorkflowProblems(t *testing.T) {
	const good = "name: x\non: push\npermissions: {contents: read}\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    " +
		"timeout-minutes: 5\n    steps:\n    - run: make test\n" +
		"    - uses: actions/checkout@0123456789012345678901234567890123456789 # v1.2.3\n  b:\n    needs: [a]\n    " +
		"runs-on: ubuntu-24.04\n" +
		"    timeout-minutes: 5\n    permissions: {contents: write}\n    steps:\n    - run: make publish\n"
	if got := problems([]byte(good), []string{"test", "publish"}); len(got) > 0 {
		t.Errorf("a good one: %v", got)
	}
	for name, change := range map[string][2]string{
		"a target that is not there":    {"make test", "make tset"},
		"a script":                      {"make test", "bash run.sh"},
		"a command behind":              {"make test", "make test && curl x"},
		"a stranger's words":            {"make test", "make test X=${{ github.head_ref }}"},
		"no end":                        {"    timeout-minutes: 5\n", ""},
		"no YAML":                       {"jobs:", "jobs: ["},
		"a field of another name":       {"permissions:", "rights:"},
		"no permissions":                {"permissions: {contents: read}\n", ""},
		"a job that makes nothing":      {"run: make test", "name: x"},
		"an action by its tag":          {"0123456789012345678901234567890123456789 # v1.2.3", "v4"},
		"an action without a version":   {" # v1.2.3", ""},
		"a test that may write":         {"make publish", "make test"},
		"a right to write for all":      {"permissions: {contents: read}", "permissions: {contents: write}"},
		"a job that is needed and gone": {"needs: [a]", "needs: [c]"},
		"a matrix with a wrong target":  {"make test", "make ${{ matrix.target }}\n    strategy: {matrix: {target: [tset]}}"},
	} {
		text := strings.Replace(good, change[0], change[1], 1)
		if text == good {
			t.Fatalf("%s: nothing was changed", name)
		}
		if got := problems([]byte(text), []string{"test", "publish"}); len(got) == 0 {
			t.Errorf("%s is not found", name)
		}
	}
}
