package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestMain: as weir this is a program with the commands of commands.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "weir" {
		os.Exit(m.Run())
	}
	os.Exit(ExitCode(commands().Run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)))
}

func commands() Commands {
	one := func(name, args, about string, bind func(fs *pflag.FlagSet)) Command {
		return Command{
			Name: name, Args: args, About: about, Run: func(_ context.Context, given []string, stdout, _ io.Writer) error {
				fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
				bind(fs)
				if err := ParseArgs(fs, strings.TrimSpace("weir "+name+" "+args), given, 0, stdout); err != nil {
					return err
				}
				return errors.New("it was run")
			},
		}
	}
	all := Commands{Program: "weir", About: "is a test.", All: []Command{
		one("check", "", "look whether it's well", func(fs *pflag.FlagSet) {
			fs.StringP("output", "o", "table", "table or `json`")
			fs.Bool("only", false, ".dot first, back\\slash…")
			fs.Bool("secret", false, "")
			_ = fs.MarkHidden("secret")
		}),
		one("pool create", "NAME", "make a pool", func(fs *pflag.FlagSet) { fs.Int("leaders", 0, "how many") }),
		one("pool list", "", "list pools", func(*pflag.FlagSet) {}),
	}}
	for n := range many {
		all.All = append(all.All, one(fmt.Sprintf("ask %d", n), "", "ask a cluster",
			func(fs *pflag.FlagSet) { fs.String("cluster", "", "which one") }))
	}
	return all
}

// TestComplete: what the last word may become, by the commands and flags that there are.
func TestComplete(t *testing.T) {
	for words, want := range map[string]string{
		"": "ask\ncheck\tlook whether it's well\ncompletion\tprint what makes a shell complete these " +
			"commands: bash, fish, zsh\nman\tprint the manual page: man -l <(weir man)\npool\n:4\n",
		"c": "check\tlook whether it's well\ncompletion\tprint what makes a shell complete these " +
			"commands: bash, fish, zsh\n:4\n",
		"pool ":                "create\tmake a pool\nlist\tlist pools\n:4\n",
		"pool c":               "create\tmake a pool\n:4\n",
		"pool create --":       "--help\ttell how to call it\n--leaders\thow many\n:4\n",
		"check --o":            "--only\t.dot first, back\\slash…\n--output\ttable or `json`\n:4\n",
		"check -o json --outp": "--output\ttable or `json`\n:4\n",
		"--v":                  "--version\tprint the version and exit\n:4\n",
		"check ":               ":0\n",
		"nothing x":            ":0\n",
	} {
		var out bytes.Buffer
		err := commands().Run(t.Context(), append([]string{"__complete"}, strings.Split(words, " ")...), &out, io.Discard)
		if err != nil || out.String() != want {
			t.Errorf("%q: %v:\n%swant\n%s", words, err, &out, want)
		}
	}
}

// TestBash: a real bash completes by the script.
func TestBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "weir")); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"weir p": "pool", "weir pool cr": "create", "weir pool create --l": "--leaders", "weir check x": "",
	} {
		script := "source <(weir completion bash)\nCOMP_WORDS=(" + line +
			")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_weir\necho \"${COMPREPLY[*]}\"\ncomplete -p weir\n"
		cmd := exec.Command(bash, "--norc", "-c", script)
		cmd.Env = []string{"PATH=" + dir}
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != want+"\ncomplete -o default -F _weir weir\n" {
			t.Errorf("%s: %v: %q, want %q", line, err, out, want)
		}
	}
	for _, shell := range []string{"zsh", "fish"} {
		var out bytes.Buffer
		if err := commands().Run(t.Context(), []string{"completion", shell}, &out, io.Discard); err != nil ||
			!strings.Contains(out.String(), "weir __complete") || strings.Contains(out.String(), "NAME") {
			t.Errorf("%s: %v:\n%s", shell, err, &out)
		}
	}
	if err := commands().Run(t.Context(), []string{"completion", "tcsh"}, io.Discard, io.Discard); ExitCode(err) != 2 ||
		!strings.Contains(err.Error(), "bash, fish, zsh") {
		t.Errorf("tcsh: %v", err)
	}
}

// TestManual: the page has each command with its flags, and text that would be a command of roff is none.
func TestManual(t *testing.T) {
	var out bytes.Buffer
	if err := commands().Run(t.Context(), []string{"man"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), ".B \\-\\-cluster string\n"); n != 1 ||
		strings.Count(out.String(), "COMMON FLAGS, too.") != many {
		t.Errorf("what %d commands share is told %d times:\n%s", many, n, &out)
	}
	for _, want := range []string{
		".TH WEIR 1 ", ".SS pool create\n\\&Make a pool.\n.PP\n.B weir pool create NAME\n.TP\n.B \\-\\-leaders int\n" +
			"\\&how many\n", ".B \\-o, \\-\\-output json\n\\&table or json\n",
		".B \\-\\-only\n\\&.dot first, back\\eslash\\[u2026]\n", ".SS completion\n", ".SH EXIT STATUS\n",
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
