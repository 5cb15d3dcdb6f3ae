package repository

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// run runs a command in a folder, and returns what it wrote and its exit code.
func run(t *testing.T, dir string, env []string, command ...string) (out string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	b, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %v", command, err)
	}
	return string(b), cmd.ProcessState.ExitCode()
}

// TestProofList: the reports say how they are repeated, by files that are here. A few are put together by hand.
func TestProofList(t *testing.T) {
	out, code := run(t, root(t), nil, ".ci/proof", "--list")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	commands, byHand := 0, 0
	for line := range strings.Lines(out) {
		name, command, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		words := strings.Fields(command)
		switch {
		case len(words) == 0:
			byHand++
		case strings.Contains(command, "scenario run"):
			if _, err := os.Stat(filepath.Join(root(t), words[3])); err != nil || !strings.HasPrefix(words[3], "scenarios/") {
				t.Errorf("reports/%s is repeated by %q: want a file of scenarios", name, command)
			}
			fallthrough
		default:
			commands++
		}
	}
	if commands < 50 || byHand > 6 {
		t.Errorf("%d commands, %d reports by hand:\n%s", commands, byHand, out)
	}
}

// TestProof: what a report says is run, what it writes takes the place of the report, what is of this revision is left
// alone, and what fails stops nothing.
func TestProof(t *testing.T) {
	dir := t.TempDir()
	script, err := os.ReadFile(filepath.Join(root(t), ".ci", "proof"))
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) string {
		b, _ := os.ReadFile(filepath.Join(dir, name))
		return string(b)
	}
	good := "# Good\n\nRevision 0000000. Repeat: `make good`.\n"
	for name, text := range map[string]string{
		".ci/proof":  string(script),
		".gitignore": "/reports/out/\n/runs\n",
		"Makefile": "good:\n\t@mkdir -p reports/out/x; echo new > reports/out/x/bytes.svg; echo more > reports/out/x/more\n" +
			"\t@sed s/0000000/$$(git rev-parse --short=7 HEAD)/ reports/good/summary.md > reports/out/x/summary.md\n" +
			"\t@echo good >> runs\nbad:\n\t@echo this is why; echo bad >> runs; exit 3\n",
		"reports/a-bad/summary.md":  "## How to repeat\n\n```sh\nmake bad  # it fails\n```\n",
		"reports/b-hand/summary.md": "## How to repeat\n\n```sh\nmake good\nmake bad\n```\n",
		"reports/good/summary.md":   good, "reports/good/bytes.svg": "old",
	} {
		write(name, text)
	}
	for _, command := range []string{"init -q", "add -A", "-c user.name=x -c user.email=x@x commit -q -m x"} {
		if out, code := run(t, dir, nil, append([]string{"git"}, strings.Fields(command)...)...); code != 0 {
			t.Fatal(out)
		}
	}
	proof := func(code int, env string, args ...string) string {
		t.Helper()
		out, got := run(t, dir, []string{env}, append([]string{".ci/proof"}, args...)...)
		if got != code {
			t.Errorf("%s %v: exit code %d, want %d: %s", env, args, got, code, out)
		}
		return out
	}
	out := proof(1, "ONLY=")
	for _, want := range []string{
		"1 of 3: a-bad: make bad", "this is why", "2 of 3: b-hand was put together by hand", "not made anew: a-bad b-hand",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
	head, _ := run(t, dir, nil, "git", "rev-parse", "--short=7", "HEAD")
	got := map[string]string{
		"summary": read("reports/good/summary.md"), "picture": read("reports/good/bytes.svg"),
		"more": read("reports/good/more"),
	}
	if want := map[string]string{
		"summary": strings.ReplaceAll(good, "0000000", strings.TrimSpace(head)), "picture": "new\n", "more": "",
	}; !maps.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if out := proof(0, "ONLY=good"); !strings.Contains(out, "1 of 1: good is of "+strings.TrimSpace(head)) {
		t.Errorf("again: %s", out)
	}
	proof(2, "ONLY=none")
	proof(2, "ONLY=good/more")
	proof(2, "ONLY=", "--all")
	write("Makefile", "good:\n")
	if out := proof(1, "ONLY="); !strings.Contains(out, "not committed") {
		t.Errorf("with a change: %s", out)
	}
	if runs := read("runs"); runs != "bad\ngood\n" {
		t.Errorf("runs %q", runs)
	}
}
