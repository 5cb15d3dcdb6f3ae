package command

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/sim/change"
	"github.com/weir-edge/weir/sim/report"
)

// TestBaselineCommand: a run that passed becomes the baseline with its reason, and report compare reads it. One that
// failed does not.
func TestBaselineCommand(t *testing.T) {
	dir := t.TempDir()
	r := report.Result{
		Outcome:  report.Outcome{Scenario: "pool-cache", Passed: true, Metrics: report.Values{"client_relists": 0}},
		Revision: "abc",
	}
	r.Bytes = report.ByteTable{
		{Way: "weir", Class: "pool", Direction: "down", Phase: "a", Node: "1", Bytes: 3},
		{Way: "weir", Class: "pool", Direction: "down", Phase: "b", Node: "2", Bytes: 4},
	}
	run, base := filepath.Join(dir, "run"), filepath.Join(dir, "baseline")
	if err := report.Write(run, r); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Run(t.Context(), []string{"report", "baseline", "--dir", base, "--reason", "a\tbetter  way", run},
			io.Discard, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	log, err := os.ReadFile(filepath.Join(base, baselineLog))
	if err != nil || strings.Count(string(log), "\tabc\tpool-cache\ta better way\n") != 2 {
		t.Errorf("%v: %s", err, log)
	}
	kept, err := report.Load(filepath.Join(base, "pool-cache.json"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(report.ByteTable{{Way: "weir", Class: "pool", Direction: "down", Bytes: 7}}, kept.Bytes); diff !=
		"" {
		t.Error(diff)
	}
	var out bytes.Buffer
	if err := Run(t.Context(), []string{"report", "compare", filepath.Join(base, "pool-cache.json"), run}, &out,
		io.Discard); err != nil || !strings.Contains(out.String(), "client_relists") {
		t.Errorf("%v: %s", err, &out)
	}
	// A folder of runs: those that passed are taken, and the command says which did not.
	r.Passed, r.Scenario = false, "storm"
	if err := report.Write(filepath.Join(dir, "runs", "storm"), r); err != nil {
		t.Fatal(err)
	}
	r.Passed, r.Scenario = true, "glitch"
	if err := report.Write(filepath.Join(dir, "runs", "glitch"), r); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "runs", "bench"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "runs", "mutants"), 0o700); err != nil {
		t.Fatal(err)
	}
	measured := `{"revision":"def","machine":"m","parts":[{"name":"hub","figures":[{"name":"CPU","unit":"s",` +
		`"samples":[3]}]}]}`
	for of, text := range map[string]string{"mutants": `{"mutants":[]}`, "bench": measured} {
		if err := os.WriteFile(filepath.Join(dir, "runs", of, "result.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err = Run(t.Context(), []string{"report", "baseline", "--dir", base, "--reason", "x", filepath.Join(dir, "runs")},
		io.Discard, io.Discard)
	if cli.ExitCode(err) != 1 || !strings.Contains(err.Error(), "storm (the scenario did not pass)") {
		t.Errorf("a folder of runs: %v", err)
	}
	_, glitch := report.Load(filepath.Join(base, "glitch.json"))
	if _, storm := report.Load(filepath.Join(base, "storm.json")); glitch != nil || storm == nil {
		t.Errorf("of a folder of runs: %v, and of one that failed: %v", glitch, storm)
	}
	out.Reset()
	benched := filepath.Join(base, "bench.json")
	if err := Run(t.Context(), []string{"report", "compare", benched, filepath.Join(dir, "runs", "bench")}, &out,
		io.Discard); err != nil || !strings.Contains(out.String(), "| CPU |") {
		t.Errorf("benchmarks side by side: %v: %s", err, &out)
	}
	if err := Run(t.Context(), []string{"report", "compare", benched, run}, io.Discard, io.Discard); cli.ExitCode(err) !=
		2 {
		t.Errorf("benchmarks beside a scenario: %v", err)
	}
	r.Scenario = "pool-cache"
	r.Passed = false
	if err := report.Write(run, r); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), []string{"report", "baseline", "--dir", base, "--reason", "x", run}, io.Discard,
		io.Discard); cli.ExitCode(err) != 1 {
		t.Errorf("a failed run: %v", err)
	}
}

// inRepository runs git in a folder, and writes files below it.
func inRepository(t *testing.T, dir string) (git func(args ...string), write func(name, text string)) {
	git = func(args ...string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), "git",
			append([]string{"-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"}, args...)...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	write = func(name, text string) {
		t.Helper()
		p := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return git, write
}

// TestRepository asks a repository with a branch: where it left main, what differs, what its commits accept.
func TestRepository(t *testing.T) {
	dir := t.TempDir()
	git, write := inRepository(t, dir)
	r := repository{dir}
	at := func(rev string) string {
		t.Helper()
		out, err := r.git(t.Context(), "rev-parse", "--short=12", rev)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	git("init", "-q", "-b", "main")
	write("impl/a.go", "package a\n\n// A is.\nconst A = 1\n")
	write("impl/b.go", "package a\n")
	write("impl/c_test.go", "package a\n")
	git("add", "-A")
	git("commit", "-qm", "first")
	if _, err := r.base(t.Context(), ""); cli.ExitCode(err) != 2 || !strings.Contains(err.Error(), "--unshallow") {
		t.Errorf("the base of the only commit: %v", err)
	}
	write("docs/x.md", "x")
	git("add", "-A")
	git("commit", "-qm", "second")
	base := func(want string) {
		t.Helper()
		if got, err := r.base(t.Context(), ""); err != nil || got != at(want) {
			t.Errorf("base %s, %v; want %s", got, err, want)
		}
	}
	base("HEAD~1") // on main, nothing changed
	write("impl/b.go", "package a\n\nconst B = 2\n")
	base("HEAD") // on main, something changed
	git("checkout", "-q", "-b", "branch")
	git("commit", "-qam", "hub: more\n\nPerf-OK: it must be so")
	base("main")
	write("impl/a.go", "package a\n\n// A is the first.\n// Of all.\nconst A = 1\n")
	write("impl/c_test.go", "package a\n\nconst c = 3\n")
	write("README.md", "y")
	write("new.txt", "z")
	different, err := r.different(t.Context(), at("main"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"impl/b.go", "impl/c_test.go", "new.txt"}, different); diff != "" {
		t.Errorf("what differs (-want +got):\n%s", diff)
	}
	for name, want := range map[string]bool{
		"impl/b.go": true, "impl/c_test.go": false, "go.mod": true, "sim/x.go": false, "impl/x/testdata/y": false,
	} {
		if ofProduct(name) != want {
			t.Errorf("%s is of the product: %t", name, !want)
		}
	}
	accepted, notes, err := r.accepted(t.Context(), "main")
	if err != nil || len(notes) > 0 || len(accepted) != 1 || accepted[0].Reason != "it must be so" {
		t.Errorf("accepted: %v, %v, %v", accepted, notes, err)
	}
	head, err := r.head(t.Context())
	if err != nil || !head.Changed || head.Subject != "hub: more" {
		t.Errorf("head: %+v, %v", head, err)
	}
	tree := filepath.Join(dir, "..", filepath.Base(dir)+"-base")
	for range 2 { // what an interrupted run left is replaced
		if err := r.checkout(t.Context(), at("main"), tree); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := os.ReadFile(filepath.Join(tree, "impl", "b.go")); err != nil || string(data) != "package a\n" {
		t.Errorf("the base's file: %q, %v", data, err)
	}
	if err := r.remove(t.Context(), tree); err != nil {
		t.Error(err)
	}
}

// TestJudgeCommand: a stored report is judged again, by bands, and its exit code follows what is worse.
func TestJudgeCommand(t *testing.T) {
	dir := t.TempDir()
	r := &change.Report{
		Figures: []change.Figure{
			{Subject: "a", Name: "b", Kind: change.Bytes, Unit: "B", Base: [][]float64{{100, 100}}, Head: [][]float64{{104}}},
		},
	}
	r.Finish(nil)
	if err := writeChange(dir, r, io.Discard); err == nil {
		t.Error("4 % more is no error")
	}
	bands, err := os.Create(filepath.Join(dir, "bands.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), []string{"report", "bands", dir}, bands, io.Discard); err != nil {
		t.Fatal(err)
	}
	if err := bands.Close(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Run(t.Context(), []string{
		"report", "judge", "--bands", bands.Name(), "--out", filepath.Join(dir, "again"), dir,
	}, &out, io.Discard); err != nil {
		t.Errorf("with its band: %v: %s", err, &out)
	}
	history := []string{
		"report", "history", "--file", filepath.Join(dir, "history.tsv"), "--page", filepath.Join(dir, "history.html"), dir,
	}
	if err := Run(t.Context(), history, io.Discard, io.Discard); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "history.tsv")); err != nil ||
		!strings.Contains(string(data), "a: b [B]") {
		t.Errorf("history: %v: %s", err, data)
	}
}
