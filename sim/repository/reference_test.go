package repository

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v3"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/coordinator"
	"github.com/weir-edge/weir/impl/gate"
	"github.com/weir-edge/weir/impl/hub"
	"github.com/weir-edge/weir/impl/manager"
	"github.com/weir-edge/weir/impl/operator"
)

var update = flag.Bool("update", false, "write docs/reference.md")

const referenceFile = "reference.md"

// many commands have the flags by which a cluster is found: those are told of once.
const many = 5

// TestReference: docs/reference.md has each flag of each program and each value of the chart, as the programs
// themselves and values.yaml say it.
func TestReference(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Every flag and every value\n\nMade of what programs say by `--help`, and of " +
		"`charts/weir/values.yaml`: `go test ./sim/repository -run Reference -update`.\n" +
		"What is given in a file by `--config` has the names of the flags.\n")
	for _, p := range []struct {
		name string
		run  func(context.Context, []string, io.Writer, io.Writer) error
	}{
		{"weir-hub", hub.Run}, {"weir-coordinator", coordinator.Run}, {"weir-manager", manager.Run}, {"weir-gate", gate.Run},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n", p.name)
		table(&b, flags(help(t, p.run)))
	}
	operators(t, &b)
	b.WriteString("\n## Values of the chart\n\n")
	values, err := os.ReadFile(filepath.Join(root(t), "charts", "weir", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	table(&b, leaves(t, values))
	path := filepath.Join(root(t), "docs", referenceFile)
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil || string(have) != b.String() {
		t.Errorf("docs/reference.md is not what programs and values.yaml say (%v): go test ./sim/repository -run "+
			"Reference -update", err)
	}
}

// operators writes the commands of kubectl weir.
func operators(t *testing.T, b *strings.Builder) {
	t.Helper()
	const program = "kubectl weir"
	type one struct {
		usage string
		flags []row
	}
	var all []one
	shared := map[row]int{}
	for _, c := range operator.Commands(program).Leaves() {
		o := one{c.UseLine(), flags(anywhere(t, c.LocalFlags().FlagUsages()))}
		for _, f := range o.flags {
			shared[f]++
		}
		all = append(all, o)
	}
	fmt.Fprintf(b, "\n## %s\n", program)
	told := map[row]bool{}
	var common []row
	for _, o := range all {
		fmt.Fprintf(b, "\n### %s\n", o.usage)
		var own []row
		for _, f := range o.flags {
			switch {
			case shared[f] < many:
				own = append(own, f)
			case !told[f]:
				told[f] = true
				common = append(common, f)
			}
		}
		if len(own) > 0 {
			b.WriteByte('\n')
			table(b, own)
		}
	}
	b.WriteString("\n### Flags of most commands\n\n")
	table(b, common)
}

// help is what a program says by --help.
func help(t *testing.T, run func(context.Context, []string, io.Writer, io.Writer) error) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, &out, io.Discard); !errors.Is(err, cli.ErrHelp) {
		t.Fatalf("--help: %v", err)
	}
	return anywhere(t, out.String())
}

// anywhere is what a help says whoever asks.
func anywhere(t *testing.T, help string) string {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(help, home+"/.kube", "$HOME/.kube")
}

// row is a line of a table: a flag or a value, its type or what it is by default, and what it says.
type row struct{ name, kind, says string }

var flagLine = regexp.MustCompile(`(?m)^ +((?:-\w, )?--[\w-]+)(?: (\w+))?  +(\S.*)$`)

func flags(text string) (all []row) {
	for _, m := range flagLine.FindAllStringSubmatch(text, -1) {
		all = append(all, row{m[1], m[2], m[3]})
	}
	return all
}

// leaves are the values of a chart, each with what stands behind it or above it.
func leaves(t *testing.T, text []byte) (all []row) {
	t.Helper()
	var chart yaml.Node
	if err := yaml.Unmarshal(text, &chart); err != nil {
		t.Fatal(err)
	}
	var walk func(path, above string, n *yaml.Node)
	walk = func(path, above string, n *yaml.Node) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			name, says := strings.TrimPrefix(path+"."+key.Value, "."), comment(value.LineComment)
			if says == "" {
				says = comment(key.LineComment)
			}
			if says == "" {
				says = comment(key.HeadComment)
			}
			if value.Kind == yaml.MappingNode && value.Style&yaml.FlowStyle == 0 {
				walk(name, says, value)
				continue
			}
			if says == "" && i == 0 {
				says = above
			}
			is, err := yaml.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			def, _, _ := strings.Cut(strings.TrimSpace(string(is)), " #")
			all = append(all, row{name, strings.TrimSpace(def), says})
		}
	}
	walk("", "", chart.Content[0])
	return all
}

func comment(text string) string {
	var lines []string
	for l := range strings.Lines(text) {
		lines = append(lines, strings.TrimSpace(strings.TrimLeft(l, "# ")))
	}
	return strings.Join(lines, " ")
}

func table(b *strings.Builder, rows []row) {
	b.WriteString("| | | |\n| --- | --- | --- |\n")
	escape := strings.NewReplacer("|", `\|`, "<", "&lt;")
	for _, r := range rows {
		kind := r.kind
		if kind != "" {
			kind = "`" + kind + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", r.name, kind, escape.Replace(r.says))
	}
}
