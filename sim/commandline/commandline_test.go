package commandline

import (
	"errors"
	"flag"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/coordinator"
	"github.com/weir-edge/weir/impl/gate"
	"github.com/weir-edge/weir/impl/hub"
	"github.com/weir-edge/weir/impl/manager"
	"github.com/weir-edge/weir/impl/operator"
	"github.com/weir-edge/weir/sim/command"
	"github.com/weir-edge/weir/sim/proc/gobuild"
)

// update has what is printed now written into the scripts, where they compare it.
var update = flag.Bool("update", false, "write what is printed into the scripts that compare it")

// TestMain runs this test again as each program that a script names. What is run is what the program's main has.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"weir":             func() { cli.Main("weir", command.Run) },
		"kubectl-weir":     func() { cli.Main("kubectl weir", operator.Commands("kubectl weir").Run) },
		"weir-hub":         func() { cli.Main("weir-hub", hub.Run) },
		"weir-coordinator": func() { cli.Main("weir-coordinator", coordinator.Run) },
		"weir-manager":     func() { cli.Main("weir-manager", manager.Run) },
		"weir-gate":        func() { cli.Main("weir-gate", gate.Run) },
	})
}

// TestScripts runs all of testdata/script.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"says":  says,
		},
		// PROGRAMS is the folder of the programs, and CHECKOUT that of the sources.
		Setup: func(e *testscript.Env) error {
			programs, err := exec.LookPath("weir-hub")
			if err != nil {
				return err
			}
			root, err := gobuild.Root("")
			e.Setenv("PROGRAMS", filepath.Dir(programs))
			e.Setenv("CHECKOUT", root)
			return err
		},
	})
}

// exits is "exits CODE PROGRAM ARGUMENTS…": the program runs, and has to end with that exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGUMENTS…, without !")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		got = ended.ExitCode() // -1: a signal ended it
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// says is "says TEXT": what the program before printed on standard error is this line, and nothing else.
func says(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: says TEXT, without !")
	}
	got := ts.ReadFile("stderr")
	if got != args[0]+"\n" {
		ts.Fatalf("it says\n%swant\n%s", got, args[0])
	}
}
