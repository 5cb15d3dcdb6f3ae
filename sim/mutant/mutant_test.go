package mutant

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/proc/gobuild"
)

func root(t *testing.T) string {
	dir, err := gobuild.Root("")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Every mutant fits the code of today, and its check exists.
func TestListApplies(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	dir := root(t)
	tests := map[string][]string{}
	for _, m := range all {
		if _, err := m.plant(dir); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
		names, ok := tests[m.Check.Package]
		if !ok {
			names = testsOf(t, filepath.Join(dir, m.Check.Package))
			tests[m.Check.Package] = names
		}
		if !matches(m.Check.Run, names) {
			t.Errorf("%s: no test of %s matches %s", m.Name, m.Check.Package, m.Check.Run)
		}
	}
}

func testsOf(t *testing.T, dir string) (names []string) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		file, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") &&
				f.Name.Name != "TestMain" {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}

// matches reports whether each test that is named between the bars of a pattern exists.
func matches(run string, names []string) bool {
	whole, _, _ := strings.Cut(run, "/")
	inner := strings.TrimSuffix(strings.TrimPrefix(whole, "^("), ")$")
	for _, one := range strings.Split(inner, "|") {
		re := regexp.MustCompile(one)
		found := false
		for _, n := range names {
			found = found || re.MatchString(n)
		}
		if !found {
			return false
		}
	}
	return true
}

// The fastest are planted, so that each run of all tests goes once through all that a campaign does.
func TestFastestAreCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds and runs tests")
	}
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	ms, err := Select(all, []string{
		"fence-late-sighting-wins", "heartbeat-forwarded-past-its-life", "role-lease-for-ever",
		"verdict-silent-pool-is-not-kept",
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := Run(t.Context(), ms, Options{Root: root(t), Progress: func(s string) { t.Log(s) }})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Verdict != Caught || r.By == "" || r.Said == "" || r.Line == 0 {
			t.Errorf("%+v", r)
		}
	}
}

const (
	subject = `package subject

// Sum adds.
func Sum(a, b int) int {
	return a + b
}

type box struct{ n int }

func (b *box) add(n int) { b.n += n }

// Wait waits for a sum.
func Wait(c chan int, n int) int {
	for i := range n {
		c <- i
	}
	return n
}
`
	subjectTest = `package subject

import "testing"

func TestSum(t *testing.T) {
	t.Run("small", func(t *testing.T) {
		if got := Sum(1, 2); got != 3 {
			t.Fatalf("1 + 2 is %d", got)
		}
	})
}

func TestNothing(t *testing.T) { Sum(1, 2) }

func TestWait(t *testing.T) { Wait(make(chan int, 2), 2) }

func TestWrong(t *testing.T) { t.Error("it always fails") }

func TestSkips(t *testing.T) { t.Skip("never") }
`
)

// What the tool says of each fate of a mutant, tried on a module of its own.
func TestVerdicts(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module subject\n\ngo 1.26\n", "subject/subject.go": subject, "subject/subject_test.go": subjectTest,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cases := []struct {
		name, in, old, new, run string
		verdict                 Verdict
		by, said                string
	}{
		{
			"caught", "Sum", "return  a + b", "return a - b", "TestSum", Caught, "TestSum/small",
			"subject_test.go:8: 1 + 2 is -1",
		},
		{"panics", "Sum", "return\na + b", `panic("no")`, "TestSum", Caught, "TestSum/small", "panic: no"},
		{"survives", "Sum", "a + b", "a - b", "TestNothing", Survived, "", "1 tests"},
		{"method", "box.add", "+= n", "-= n", "TestNothing", Survived, "", "1 tests"},
		{"hangs", "Wait", "range n", "range n + 1", "TestWait", Hung, "", ""},
		{"not-there", "Sum", "a * b", "a - b", "TestSum", NotApplied, "", "0 times"},
		{"not-only-there", "Wait", "int", "string", "TestSum", NotApplied, "", "3 times"},
		{"elsewhere", "Sum", "c <- i", "c <- 0", "TestSum", NotApplied, "", "0 times"},
		{"no-function", "Product", "a + b", "a - b", "TestSum", NotApplied, "", "declared 0 times"},
		{"not-go", "Sum", "a + b", "a +", "TestSum", NotApplied, "", "does not parse"},
		{"nothing-new", "Sum", "a + b", "a + b", "TestSum", NotApplied, "", "changes nothing"},
		{"not-typed", "Sum", "a + b", `"c"`, "TestSum", NotCompiled, "", "subject.go:5"},
		{"bad-check", "Sum", "a + b", "a - b", "TestWrong", NotCheckable, "", "it always fails"},
		{"no-check", "Sum", "a + b", "a - b", "TestOther", NotCheckable, "", "no test"},
		{"no-subtest", "Sum", "a + b", "a - b", "TestSum/large", NotCheckable, "", "no test"},
		{"skips", "Sum", "a + b", "a - b", "TestSkips", NotCheckable, "", "no test"},
	}
	var ms []Mutant
	for _, c := range cases {
		limit := usualSeconds
		if c.verdict == Hung {
			limit = 3
		}
		ms = append(ms, Mutant{
			Name: c.name, File: "subject/subject.go", In: c.in, Old: c.old, New: c.new, Why: "it is a test",
			Check: Check{Package: "subject", Run: c.run, Target: Test, Seconds: limit},
		})
	}
	rows, err := Run(t.Context(), ms, Options{Root: dir, Progress: func(s string) { t.Log(s) }})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		r := rows[i]
		if r.Verdict != c.verdict || r.By != c.by || !strings.Contains(r.Said, c.said) {
			t.Errorf("%s: %q by %q, said %q; want %q by %q, %q", c.name, r.Verdict, r.By, r.Said, c.verdict, c.by, c.said)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "subject/subject.go")); err != nil || string(text) != subject {
		t.Errorf("the source was edited: %s %v", text, err)
	}
	if res := NewResult(rows, "", time.Now()); res.Passed {
		t.Error("a campaign passed in which mutants survived")
	}
	if res := NewResult(rows[:2], "", time.Now()); !res.Passed {
		t.Error("a campaign failed in which all were caught")
	}
}

const manySubject = `package subject

type box[K comparable] struct{ n int }

func (*box[K]) size(int) int { return 1 }

// Add adds up.
func (b *box[K]) Add(_ K, more ...int) {
	for _, n := range more { b.n += n }
}

func First[K any, V comparable](k K, _ V) (first K) { first = k; return }

var limit = First(3, 0)

const most = 4
`

const manyTest = `package subject

import "testing"

func TestAdd(t *testing.T) {
	b := &box[string]{}
	if b.Add("", 1, 2); b.n != 3 {
		t.Fatalf("1 + 2 is %d", b.n)
	}
}

func TestSize(t *testing.T) {
	if n := (&box[string]{}).size(0); n != 1 {
		t.Errorf("size %d", n)
	}
}

func TestLimit(t *testing.T) {
	if limit != 3 || most != 4 {
		t.Errorf("limit %d, most %d", limit, most)
	}
}
`

// TestTogether: mutants of functions are tried in one build, where a process has one of them or none, and what is no
// function is not in it.
func TestTogether(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module subject\n\ngo 1.26\n", "subject/subject.go": manySubject, "subject/subject_test.go": manyTest,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var ms []Mutant
	var all []int
	for i, m := range [][]string{
		{"adds-once", "box.Add", "b.n += n", "b.n = n", "TestAdd"},
		{"takes", "box.Add", "b.n += n", "b.n -= n", "TestAdd"},
		{"adds-well", "box.Add", "b.n += n", "b.n = b.n + n", "TestAdd"},
		{"no-size", "box.size", "return 1", "return 0", "TestSize"},
		{"no-first", "First", "first = k", "_ = k", "TestLimit"},
		{"less", "most", "4", "3", "TestLimit"},
		{"not-typed", "box.Add", "b.n += n", `b.n += ""`, "TestAdd"},
	} {
		ms = append(ms, Mutant{
			Name: m[0], File: "subject/subject.go", In: m[1], Old: m[2], New: m[3], Why: "it is a test",
			Check: Check{Package: "subject", Run: m[4], Target: Test, Seconds: 60},
		})
		all = append(all, i)
	}
	spawner, err := proc.New()
	if err != nil {
		t.Fatal(err)
	}
	defer spawner.Close()
	c := &campaign{Options: Options{Root: dir}, spawner: spawner}
	g := together(ms, all)
	if len(g) != 1 || len(g[0].checks) != 3 || !slices.Equal(g[0].mutants, all) {
		t.Fatalf("%+v", g)
	}
	b, err := c.build(t.Context(), ms, g[0])
	if err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	for _, m := range append(ms, Mutant{Check: g[0].all}) {
		s, err := c.run(t.Context(), m.Check, b, m.Name, "", temp)
		want := Caught
		if m.Name == "" || m.Name == "adds-well" || m.Name == "less" || m.Name == "not-typed" {
			want = checkHolds
		}
		if v := judge(s, err); v != want || b.has(m) != (m.Name != "" && m.Name != "less" && m.Name != "not-typed") {
			t.Errorf("%q: %q, want %q; it is in the build: %t; %+v, %v", m.Name, v, want, b.has(m), s, err)
		}
	}
	if s, _ := c.run(t.Context(), ms[0].Check, b, ms[0].Name, "", temp); s.by != "TestAdd" ||
		s.at != "subject_test.go:8: 1 + 2 is 2" {
		t.Errorf("%+v", s)
	}
	b.remove()
	if rows, err := Run(t.Context(), ms, Options{Root: dir}); err != nil || rows[2].Verdict != Survived ||
		rows[5].Verdict != Caught || rows[6].Verdict != NotCompiled {
		t.Errorf("%+v, %v", rows, err)
	}
}

// What was caught before is not tried again, but if its entry or what its check is made of has changed.
func TestResume(t *testing.T) {
	of := func(name, text string) Mutant { return Mutant{Name: name, New: text, Check: Check{Package: "p"}} }
	rows, left := resumed([]Mutant{of("one", ""), of("other", ""), of("changed", "a"), of("moved", ""), of("new", "")},
		map[string]string{"p": "1"}, []Row{
			{Mutant: of("one", ""), Verdict: Caught, By: "TestOne", Inputs: "1"},
			{Mutant: of("other", ""), Verdict: Survived, Inputs: "1"},
			{Mutant: of("changed", "b"), Verdict: Caught, Inputs: "1"},
			{Mutant: of("moved", ""), Verdict: Caught, Inputs: "0"},
			{Mutant: of("gone", ""), Verdict: Caught, Inputs: "1"},
		})
	if len(rows) != 5 || rows[0].By != "TestOne" || rows[2].Verdict != NotAttempted ||
		!slices.Equal(left, []int{1, 2, 3, 4}) {
		t.Errorf("%+v, left are %v", rows, left)
	}
	dir := t.TempDir()
	if r, err := Resume(dir); err != nil || len(r.Rows) != 0 {
		t.Errorf("nothing to go on with: %+v, %v", r, err)
	}
	if err := NewResult(rows, "a", time.Now()).Write(dir, ""); err != nil {
		t.Fatal(err)
	}
	if r, err := Resume(dir); err != nil || len(r.Rows) != 5 || r.Rows[0].By != "TestOne" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestInputs: a check is made of other sources when its package, its tests, its testdata or a package below it change,
// and of the same when something else does.
func TestInputs(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module subject\n\ngo 1.26\n")
	write("a/a.go", "package a\n\nimport _ \"subject/b\"\n")
	write("a/a_test.go", "package a\n\nimport _ \"subject/c\"\n")
	write("a/testdata/x", "x")
	for _, name := range []string{"b", "c", "d"} {
		write(name+"/"+name+".go", "package "+name+"\n")
	}
	write("b/b_test.go", "package b\n")
	c := &campaign{Options: Options{Root: dir}}
	of := func() string {
		t.Helper()
		all, err := c.inputs(t.Context(), []Mutant{{Check: Check{Package: "a"}}})
		if err != nil || len(all["a"]) != 32 {
			t.Fatalf("%v, %v", all, err)
		}
		return all["a"]
	}
	before := of()
	for _, change := range []struct {
		file, text string
		same       bool
	}{
		{"d/d.go", "package d\n\nvar D = 1\n", true},
		{"b/b_test.go", "package b\n\nvar T = 1\n", true},
		{"a/a.go", "package a\n\nimport _ \"subject/b\"\n\nvar A = 1\n", false},
		{"a/a_test.go", "package a\n\nimport _ \"subject/c\"\n\nvar T = 1\n", false},
		{"a/testdata/x", "y", false},
		{"b/b.go", "package b\n\nvar B = 1\n", false},
		{"c/c.go", "package c\n\nvar C = 1\n", false},
	} {
		write(change.file, change.text)
		now := of()
		if (now == before) != change.same {
			t.Errorf("%s changed: %s, %s before", change.file, now, before)
		}
		before = now
	}
	if _, err := c.inputs(t.Context(), []Mutant{{Check: Check{Package: "none"}}}); err == nil ||
		!strings.Contains(err.Error(), "none") {
		t.Errorf("a folder that is not there: %v", err)
	}
}
