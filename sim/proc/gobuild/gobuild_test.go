package gobuild

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-edge/weir/sim/proc/proctest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// command writes a module with one command.
func command(t *testing.T, source string) Spec {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/hello\n\ngo 1.26.0\n", "main.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Spec{
		Name: "hello", Dir: dir, Packages: []string{"example.com/hello"}, Output: t.TempDir(), LDFlags: "-X main.who=pool",
	}
}

func TestBuild(t *testing.T) {
	spec := command(t, "package main\n\nvar who = \"\"\n\nfunc main() { println(\"hello\", who) }\n")
	var last string
	if err := Run(t.Context(), proctest.Spawner(t), spec, func(m string) { last = m }); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(filepath.Join(spec.Output, "hello")).CombinedOutput()
	if err != nil || string(out) != "hello pool\n" {
		t.Errorf("%q, %v", out, err)
	}
	if !strings.HasPrefix(last, "hello: built, ") {
		t.Errorf("last progress: %q", last)
	}
}

func TestBuildErrorsAreShown(t *testing.T) {
	err := Run(t.Context(), proctest.Spawner(t), command(t, "package main\n\nfunc main() { nonsense() }\n"), nil)
	if err == nil || !strings.Contains(err.Error(), "undefined: nonsense") ||
		!strings.HasPrefix(err.Error(), "build hello: ") {
		t.Errorf("got %v", err)
	}
}

func TestBuildEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Run(ctx, proctest.Spawner(t), command(t, "package main\n\nfunc main() {}\n"), nil); !errors.Is(
		err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestRoot(t *testing.T) {
	root, err := Root(".")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "sim", "proc", "gobuild", "gobuild.go")); err != nil {
		t.Errorf("root %s: %v", root, err)
	}
	if _, err := Root(t.TempDir()); !errors.Is(err, ErrNoRepository) {
		t.Errorf("outside: %v", err)
	}
}
