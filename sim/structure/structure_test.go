package structure

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-edge/weir/sim/proc/gobuild"
)

const module = "github.com/weir-edge/weir/"

// rule is what some packages may not need.
type rule struct {
	of     []string // patterns of packages, below the root
	never  []string // import paths; what is below them is meant, too
	direct bool     // imports of the packages and their tests count, not all that they are built of
	why    string
}

// broken are the imports that a rule forbids.
func (r rule) broken(t *testing.T, root string) (all []string) {
	t.Helper()
	for _, of := range r.of {
		args := []string{"list", "-deps", "./" + of}
		if r.direct {
			args = []string{"list", "-f", `{{join .Imports "\n"}}
{{join .TestImports "\n"}}
{{join .XTestImports "\n"}}`, "./" + of}
		}
		list := exec.Command("go", args...)
		list.Dir = root
		out, err := list.Output()
		if err != nil {
			t.Fatalf("go %v: %v", args, err)
		}
		needs := strings.Fields(string(out))
		for _, never := range r.never {
			if i := slices.IndexFunc(needs, func(p string) bool { return p == never || strings.HasPrefix(p, never+"/") }); i >=
				0 {
				all = append(all, of+" needs "+needs[i]+": "+r.why)
			}
		}
	}
	return all
}

// TestImports holds what packages may not need.
func TestImports(t *testing.T) {
	root, err := gobuild.Root("")
	if err != nil {
		t.Fatal(err)
	}
	others := []string{module + "sim", module + "bench", module + "kind"}
	for _, r := range []rule{
		{of: []string{"impl/..."}, never: others, why: "dependencies point one way: sim may import impl"},
		{of: []string{"impl/..."}, never: others, direct: true, why: "tests of impl are of impl alone: sim may import impl"},
		{
			of: []string{"impl/cmd/weir-hub"}, never: []string{
				"k8s.io/client-go", "k8s.io/apiserver", "go.etcd.io/etcd", "sigs.k8s.io/controller-runtime",
				"github.com/spf13/cobra", "testing",
			}, why: "a hub has 16 MB",
		},
		{
			of: []string{"impl/cmd/weir-coordinator"}, never: []string{
				module + "impl/hub", module + "impl/offline", module + "impl/store", "testing",
			}, why: "a coordinator keeps Leases and relays, and no more",
		},
		{
			of: []string{"impl/cmd/weir-manager"}, never: []string{
				"go.etcd.io", module + "impl/hub", module + "impl/coordinator", "testing",
			}, why: "the manager needs the API only",
		},
		{
			of: []string{"impl/cmd/..."}, never: []string{module + "impl/coordinator/inmemory"},
			why: "a coordinator in memory is for tests and simulations",
		},
		{
			of: []string{"impl/relay"}, never: []string{
				module + "impl/source", module + "impl/hub", module + "impl/coordinator", module + "impl/store",
			}, why: "a relay imports nothing of who uses it",
		},
		{
			of: []string{"impl/relay", "impl/relay/mvcc"}, never: []string{"net/http"}, direct: true,
			why: "a relay is read in Go; impl/relay/rest is where it meets HTTP",
		},
		{
			of: []string{"impl/role", "impl/heartbeat"}, never: []string{"net/http"},
			why: "what decides does no input or output",
		},
	} {
		for _, b := range r.broken(t, root) {
			t.Error(b)
		}
	}
}

// TestBrokenRules: imports that there are break a rule that forbids them, and no others do.
func TestBrokenRules(t *testing.T) {
	root, err := gobuild.Root("")
	if err != nil {
		t.Fatal(err)
	}
	rest := []string{"impl/relay/rest"}
	for name, x := range map[string]struct {
		rule rule
		want int
	}{
		"an import":                     {rule{of: rest, never: []string{"net/http"}, direct: true}, 1},
		"what an import needs":          {rule{of: rest, never: []string{"crypto/tls"}}, 1},
		"the same, of direct ones":      {rule{of: rest, never: []string{"crypto/tls"}, direct: true}, 0},
		"a test's import":               {rule{of: rest, never: []string{"testing"}, direct: true}, 1},
		"the same, of what is built":    {rule{of: rest, never: []string{"testing"}}, 0},
		"a package below":               {rule{of: rest, never: []string{"crypto"}}, 1},
		"a path that begins alike":      {rule{of: rest, never: []string{"net/ht", module + "impl/rel"}}, 0},
		"one of several that are asked": {rule{of: []string{"impl/limit", "impl/relay/..."}, never: []string{"net/http"}}, 1},
	} {
		if got := x.rule.broken(t, root); len(got) != x.want {
			t.Errorf("%s: %q, want %d", name, got, x.want)
		}
	}
}

// TestBack: of a circle one arrow runs back, whichever, of a tree none.
func TestBack(t *testing.T) {
	through := func(arrows ...string) map[[2]string]string {
		out := map[[2]string]string{}
		for _, a := range arrows {
			out[[2]string{a[:1], a[1:]}] = "x"
		}
		return out
	}
	for _, test := range []struct {
		arrows []string
		want   int
	}{
		{nil, 0},
		{[]string{"ab", "ac", "bd", "cd"}, 0},
		{[]string{"dc", "cb", "ba"}, 0},
		{[]string{"ab", "bc", "cd", "ca"}, 1},
		{[]string{"ab", "ba", "cd", "dc"}, 2},
		{[]string{"ax", "bx", "cx", "xa", "dx", "xe"}, 1},
	} {
		if got := back(through(test.arrows...)); len(got) != test.want {
			t.Errorf("%v: %v run back, want %d", test.arrows, got, test.want)
		}
	}
}

// TestCodeLines: comments and blank lines are no code, each line of a string is.
func TestCodeLines(t *testing.T) {
	for text, want := range map[string]int{
		"package a\n": 1,
		"// Package a is one.\npackage a\n\n/* b\nc */\nvar d = 1 // e\n\n// f\n": 2,
		"package a\n\nvar b = `1\n\n2` + f(\n\t3)\n":                              5,
		"package a\n\nfunc b() { c(); d() }":                                      2,
	} {
		if got := codeLines([]byte(text)); got != want {
			t.Errorf("%q has %d lines of code, want %d", text, got, want)
		}
	}
}

// TestConfigurations: nobody reads a configuration of more fields than MaxConfiguration. Parts are structs of their
// own.
func TestConfigurations(t *testing.T) {
	root, err := gobuild.Root("")
	if err != nil {
		t.Fatal(err)
	}
	ps, err := Load(t.Context(), root, "./impl/...")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, p := range ps {
		for _, s := range p.Structs {
			if s.Fields > MaxConfiguration {
				t.Errorf("%s.%s has %d fields, want at most %d", p.Path, s.Name, s.Fields, MaxConfiguration)
			}
			if p.Path == "impl/hub" && s.Name == "Config" {
				seen = s.Fields
			}
		}
	}
	if seen == 0 {
		t.Error("the hub's configuration was not seen")
	}
	t.Logf("the hub's configuration has %d fields", seen)
}

// TestMeasure measures this package: it has one way through its files.
func TestMeasure(t *testing.T) {
	root, err := gobuild.Root("")
	if err != nil {
		t.Fatal(err)
	}
	ps, err := Load(t.Context(), root, "./sim/structure")
	if err != nil || len(ps) != 1 {
		t.Fatalf("%v, %v", ps, err)
	}
	p := ps[0]
	if p.Path != "sim/structure" || p.Files != 3 || p.Arrows != 1 || len(p.Back) != 0 || p.Lines < 100 {
		t.Errorf("%+v", p)
	}
	if i := slices.IndexFunc(p.Structs, func(s Struct) bool { return s.Name == "Package" }); i < 0 ||
		p.Structs[i].Fields != 6 {
		t.Errorf("structs %v", p.Structs)
	}
}

// TestTracked: at the top level stands what has a place there, and nothing that was built.
func TestTracked(t *testing.T) {
	root, err := gobuild.Root("")
	if err != nil {
		t.Fatal(err)
	}
	git := exec.Command("git", "ls-files", "-z")
	git.Dir = root
	out, err := git.Output()
	if err != nil {
		t.Skipf("no git here: %v", err)
	}
	places := strings.Fields("impl sim scenarios kind bench reports docs charts go.mod go.sum Makefile README.md " +
		"SECURITY.md CONTRIBUTING.md LICENSE .ci .github .gitignore .golangci.yaml")
	for _, file := range strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }) {
		if top, _, _ := strings.Cut(file, "/"); !slices.Contains(places, top) {
			t.Errorf("%s: no place for it at the top level", file)
		}
		if info, err := os.Stat(filepath.Join(root, file)); err == nil && info.Size() > 2<<20 {
			t.Errorf("%s has %d bytes: what is built is not kept", file, info.Size())
		}
	}
}

// TestFigures: the figures that `make structure` prints of impl stay within what is wanted.
func TestFigures(t *testing.T) {
	root, err := gobuild.Root("")
	if err != nil {
		t.Fatal(err)
	}
	all, err := Load(t.Context(), root, "./impl/...")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 40 {
		t.Fatalf("%d packages", len(all))
	}
	for _, p := range all {
		if beyond := p.beyond(); beyond != "" {
			t.Errorf("%s:%s: weir structure --back %[1]s", p.Path, beyond)
		}
	}
}
