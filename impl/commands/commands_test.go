package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/impl/cli"
)

var errRan = errors.New("it was run")

func program() Program {
	one := func(use, about string, takes int, bind func(fs *pflag.FlagSet)) *cobra.Command {
		return New(use, about, takes, func(fs *pflag.FlagSet) Run {
			bind(fs)
			return func(_ context.Context, args []string, stdout, stderr io.Writer) error {
				fmt.Fprintf(stdout, "%s %v", use, args)
				fmt.Fprint(stderr, "a warning")
				return errRan
			}
		})
	}
	p := Program{Name: "kubectl weir", About: "is a test.", Failure: " (also a late train)", All: []*cobra.Command{
		one("check", "look whether it's well", 0, func(fs *pflag.FlagSet) {
			fs.StringP("output", "o", "table", "table or `json`")
			fs.Bool("only", false, ".dot first, back\\slash…")
			fs.Bool("secret", false, "")
			_ = fs.MarkHidden("secret")
		}),
		Group("pool", "pools",
			one("create NAME", "make a pool", 1, func(fs *pflag.FlagSet) { fs.Int("leaders", 0, "how many") }),
			one("list", "list pools", 0, func(*pflag.FlagSet) {}),
			one("drop NAME…", "drop pools", Any, func(*pflag.FlagSet) {})),
	}}
	for n := range many {
		p.All = append(p.All, one(fmt.Sprintf("ask-%d", n), "ask a cluster", 0,
			func(fs *pflag.FlagSet) { fs.String("cluster", "", "which one") }))
	}
	return p
}

// TestRun: the command that is named runs, with its arguments and where it is to write.
func TestRun(t *testing.T) {
	for line, want := range map[string]string{
		"check -o json": "check []", "pool create a --leaders 2": "create NAME [a]", "pool drop a b": "drop NAME… [a b]",
		"pool drop -- --a": "drop NAME… [--a]", "pool drop": "drop NAME… []",
	} {
		var out, warned bytes.Buffer
		err := program().Run(t.Context(), strings.Fields(line), &out, &warned)
		if !errors.Is(err, errRan) || out.String() != want || warned.String() != "a warning" {
			t.Errorf("%s: %v, %q and %q, want %q", line, err, &out, &warned, want)
		}
	}
}

// TestWrongUsage: exit code 2, and one line that says what is allowed.
func TestWrongUsage(t *testing.T) {
	for line, want := range map[string]string{
		"chek":  `command: "chek" is not allowed: check; see kubectl weir --help`,
		"pools": `command: "pools" is not allowed: pool create, pool drop, pool list; see kubectl weir --help`,
		"pool make": `command: "pool make" is not allowed: pool create, pool drop, pool list; see kubectl weir pool ` +
			`--help`,
		"pool creat a":   `command: "pool creat a" is not allowed: pool create; see kubectl weir pool --help`,
		"pool create":    `arguments: "" is not allowed: kubectl weir pool create NAME`,
		"pool list a b":  `arguments: "a b" is not allowed: kubectl weir pool list`,
		"check --onlly":  `flags: "unknown flag: --onlly" is not allowed: see kubectl weir check --help`,
		"pool --leaders": `flags: "unknown flag: --leaders" is not allowed: see kubectl weir pool --help`,
		"check --output": `flags: "flag needs an argument: --output" is not allowed: see kubectl weir check --help`,
		"pool create a --leaders=x": `--leaders: "x" is not allowed: a whole number; see kubectl weir pool create ` +
			`--help`,
	} {
		var out bytes.Buffer
		err := program().Run(t.Context(), strings.Fields(line), &out, &out)
		if cli.ExitCode(err) != 2 || err.Error() != want || out.Len() > 0 {
			t.Errorf("%s: exit code %d, %v\nwant %s\n%s", line, cli.ExitCode(err), err, want, &out)
		}
	}
}

// TestHelp: of a program, a group and a command, and the version.
func TestHelp(t *testing.T) {
	for line, want := range map[string][]string{
		"": {"kubectl weir is a test.\n", "Exit codes: 0 success, 1 failure (also a late train), 2 wrong usage.",
			"\n  check ", "\n  pool ", "\n  man ", "\n  completion "},
		"--help":             {"\n  check "},
		"help pool":          {"\n  kubectl weir pool [command]\n", "\n  create      make a pool\n"},
		"pool":               {"\n  list        list pools\n"},
		"pool create --help": {"make a pool\n\nUsage:\n  kubectl weir pool create NAME\n", "--leaders int   how many\n"},
		"--version":          {"kubectl weir version " + cli.Version() + "\n"},
		"completion bash":    {"bash completion V2 for kubectl-weir"},
	} {
		var out bytes.Buffer
		err := program().Run(t.Context(), strings.Fields(line), &out, &out)
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		for _, w := range want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%q lacks %q:\n%s", line, w, &out)
			}
		}
		if strings.Contains(out.String(), "--secret") {
			t.Errorf("%q shows what is hidden", line)
		}
	}
}

// TestComplete: shells get the names of commands and flags, with what they are for.
func TestComplete(t *testing.T) {
	for line, want := range map[string]string{
		"c": "check\tlook whether it's well\ncompletion\tGenerate the autocompletion script for the specified " +
			"shell\n:4\n",
		"pool c":            "create\tmake a pool\n:4\n",
		"pool create --lea": "--leaders\thow many\n:4\n",
	} {
		var out bytes.Buffer
		err := program().Run(t.Context(), append([]string{"__complete"}, strings.Split(line, " ")...), &out, io.Discard)
		if err != nil || out.String() != want {
			t.Errorf("%q: %v:\n%swant\n%s", line, err, &out, want)
		}
	}
}

// TestManual: the page has each command with its flags, and text that would be a command of roff is none.
func TestManual(t *testing.T) {
	var out bytes.Buffer
	if err := program().Run(t.Context(), []string{"man"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), ".B \\-\\-cluster string\n"); n != 1 ||
		strings.Count(out.String(), "COMMON FLAGS, too.") != many {
		t.Errorf("what %d commands share is told %d times:\n%s", many, n, &out)
	}
	for _, want := range []string{
		".TH KUBECTL-WEIR 1 ", "kubectl-weir \\- is a test.\n",
		".SS pool create\n\\&Make a pool.\n.PP\n.B kubectl weir pool create NAME\n.TP\n.B \\-\\-leaders int\n" +
			"\\&how many\n", ".B \\-o, \\-\\-output json\n\\&table or json\n",
		".B \\-\\-only\n\\&.dot first, back\\eslash\\[u2026]\n", ".SS man\n",
		".SH EXIT STATUS\n0 success, 1 failure (also a late train), 2 wrong usage.\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, &out)
		}
	}
	macros := strings.Fields(".TH .SH .SS .TP .PP .B .I")
	for line := range strings.Lines(out.String()) {
		if line[0] == '.' && !slices.Contains(macros, strings.Fields(line)[0]) || line[0] == '\'' ||
			strings.Contains(line, "secret") {
			t.Errorf("%q", line)
		}
	}
}
