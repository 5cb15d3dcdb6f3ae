package command

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/sim/change"
)

// TestUnfinished: a head that does not compile gives a report that says so, in the place of that of a run before; the
// base's tree is gone. A second run beside it is refused.
func TestUnfinished(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "with a space")
	git, write := inRepository(t, dir)
	write("go.mod", "module github.com/weir-edge/weir\n\ngo 1.26\n")
	write(".gitignore", "/reports/out/\n")
	write("impl/cmd/hub/main.go", "package main\n\nfunc main() {}\n")
	git("init", "-q", "-b", "main")
	git("add", "-A")
	git("commit", "-qm", "first")
	t.Chdir(dir)
	measure := func() (string, error) {
		err := Run(t.Context(), []string{"report", "change", "--quick"}, io.Discard, io.Discard)
		text, _ := os.ReadFile(filepath.Join("reports", "out", "change", changeText))
		return string(text), err
	}
	write("impl/cmd/hub/main.go", "package main\n\n// main is.\nfunc main() {}\n")
	if text, err := measure(); err != nil || !strings.Contains(text, "unchanged") {
		t.Errorf("another comment: %v: %s", err, text)
	}
	write("impl/cmd/hub/main.go", "package main\n\nfunc main() { nothing() }\n")
	if text, err := measure(); err == nil || !strings.Contains(text, "nothing was measured") ||
		!strings.Contains(text, "undefined: nothing") {
		t.Errorf("a head that does not compile: %v: %s", err, text)
	}
	write("impl/cmd/hub/main.go", "package main\n\nfunc main() { println() }\n")
	git("commit", "-qam", "second")
	write("impl/cmd/hub/main.go", "package main\n\nfunc main() { nothing() }\n")
	git("commit", "-qam", "third")
	write("impl/cmd/hub/main.go", "package main\n\nfunc main() {}\n")
	if text, err := measure(); err == nil || !strings.Contains(text, "build the base") {
		t.Errorf("a base that does not compile: %v: %s", err, text)
	}
	if out, err := (repository{dir}).git(t.Context(), "worktree", "list"); err != nil || strings.Count(out, "\n") > 0 {
		t.Errorf("%v: trees that are left: %s", err, out)
	}
	lock, err := disk.Take(filepath.Join("reports", "out", "change"))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := measure(); err == nil || !strings.Contains(err.Error(), "in use") ||
		!strings.Contains(text, "build the base") {
		t.Errorf("beside another run: %v: %s", err, text)
	}
	if err := errors.Join(lock.Release(), dropChange(filepath.Join("reports", "out", "change"))); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join("reports", "out", "change", changeJSON)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a report of before is left: %v", err)
	}
	if r := (change.Report{Unfinished: []string{"x"}, Lines: []change.Line{{}}}); r.Err() == nil {
		t.Error("a report that is not finished is no error")
	}
}
