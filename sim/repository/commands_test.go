package repository

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/weir-edge/weir/impl/operator"
)

var (
	// typed is a command of Weir in the code of a document, up to what ends it for a shell.
	typed    = regexp.MustCompile("(?:^|[`(;|&])\\s*(kubectl )?weir ([^`|;#<>()\n]+)")
	codeSpan = regexp.MustCompile("`[^`\n]+`")
	quoted   = regexp.MustCompile(`'[^']*'|"[^"]*"`)
)

// TestCommands: each command of kubectl weir that a document shows is there, with its flags.
func TestCommands(t *testing.T) {
	dir := root(t)
	docs, err := documents(dir)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range docs {
		doc, err := filepath.Rel(dir, file)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(file) == referenceFile { // made of them
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range typedCommands(string(text)) {
			n++
			if err := known(c); err != nil {
				t.Errorf("%s: weir %s: %v", doc, c, err)
			}
		}
	}
	if n < 100 {
		t.Errorf("%d commands were found", n)
	}
}

// typedCommands are the commands of Weir in the code of a document: in spans, in indented blocks and in boxes.
func typedCommands(text string) (all []string) {
	fenced := false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			fenced = !fenced
		case !fenced && !strings.HasPrefix(line, "    "):
			line = strings.Join(codeSpan.FindAllString(line, -1), "\n")
		}
		for code := range strings.Lines(line) {
			for _, m := range typed.FindAllStringSubmatch(quoted.ReplaceAllString(code, "TEXT"), -1) {
				// The testbed has a program of the name weir, too.
				if first, _, _ := strings.Cut(m[2], " "); m[1] != "" || isCommand(first) {
					all = append(all, strings.TrimSpace(m[2]))
				}
			}
		}
	}
	return all
}

func program() *cobra.Command { return operator.Commands("weir").Leaves()[0].Root() }

func isCommand(name string) bool {
	return slices.ContainsFunc(program().Commands(), func(c *cobra.Command) bool { return c.Name() == name })
}

// known returns what is wrong with the words of a command: its name, or a flag.
func known(command string) error {
	c, rest, err := program().Find(strings.Fields(command))
	if err != nil {
		return err
	}
	for _, word := range rest {
		if word == "--" { // what comes is a command in a container
			break
		}
		name, ok := strings.CutPrefix(word, "--")
		if name, _, _ = strings.Cut(strings.Trim(name, "."), "="); ok && name != "help" && c.Flag(name) == nil {
			return fmt.Errorf("%s has no flag --%s", c.CommandPath(), name)
		}
		if name, ok := strings.CutPrefix(word, "-"); ok && len(name) == 1 && c.Flags().ShorthandLookup(name) == nil {
			return fmt.Errorf("%s has no flag -%s", c.CommandPath(), name)
		}
	}
	if c.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return fmt.Errorf("%s has no command %s", c.CommandPath(), rest[0])
	}
	return nil
}

func TestKnown(t *testing.T) {
	for text, want := range map[string]int{
		"    kubectl weir pool create harbour --coordinator   # --nothing\n":               0,
		"Type `weir node join --pool harbour`, or `weir node leave`. Weir node forget.\n":  0,
		"    kubectl weir status -o wide; kubectl weir check --wait 5m | grep --color x\n": 0,
		"    kubectl weir pool make harbour\n":                                             1,
		"`weir node join --pools harbour`\n":                                               1,
		"```\nweir node join --pools harbour\n```\n":                                       1,
		"    kubectl weir status -x\n":                                                     1,
		"    kubectl weir exec -it POD -- ls --color -x\n":                                 0,
		"    kubectl weir exec -x POD -- ls\n":                                             1,
		"    kubectl weir node revoke $(kubectl get nodes -o name)\n":                      0,
	} {
		wrong := 0
		all := typedCommands(text)
		for _, c := range all {
			if known(c) != nil {
				wrong++
			}
		}
		if len(all) == 0 || wrong != want {
			t.Errorf("%q: %d of %q are wrong, want %d", text, wrong, all, want)
		}
	}
}
