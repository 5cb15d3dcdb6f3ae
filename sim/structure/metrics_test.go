package structure

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"github.com/weir-edge/weir/sim/proc/gobuild"
)

// metric is one that the sources of impl declare.
type metric struct {
	name, help string
	counter    bool
	where      string
}

// TestMetrics: each metric of impl has a name by the conventions of Prometheus and a row in docs/metrics.md, and each
// row is of a metric. It reads the sources, since a registry shows no metric that has not counted yet.
func TestMetrics(t *testing.T) {
	root, err := gobuild.Root("")
	if err != nil {
		t.Fatal(err)
	}
	all := declared(t, filepath.Join(root, "impl"))
	if len(all) < 90 {
		t.Fatalf("%d metrics are found: how they are declared has changed", len(all))
	}
	doc, err := os.ReadFile(filepath.Join(root, "docs/metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(weir_[a-z0-9_]+)` \\| (counter|gauge) \\|").FindAllStringSubmatch(
		string(doc), -1) {
		if rows[m[1]] != "" {
			t.Errorf("docs/metrics.md has two rows for %s", m[1])
		}
		rows[m[1]] = m[2]
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		m := all[name]
		if rows[name] != m.kind() {
			t.Errorf("%s: docs/metrics.md wants the row: | `%s` | %s | … | %s |", m.where, name, m.kind(), m.help)
		}
		delete(rows, name)
		for _, problem := range lint(t, m) {
			t.Errorf("%s: %s: %s", m.where, name, problem)
		}
	}
	for name := range rows {
		t.Errorf("docs/metrics.md has a row for %s, which is not there", name)
	}
}

func (m metric) kind() string {
	if m.counter {
		return "counter"
	}
	return "gauge"
}

func lint(t *testing.T, m metric) (out []string) {
	t.Helper()
	kind := dto.MetricType_GAUGE
	if m.counter {
		kind = dto.MetricType_COUNTER
	}
	problems, err := promlint.NewWithMetricFamilies([]*dto.MetricFamily{{Name: &m.name, Help: &m.help, Type: &kind}}).
		Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		out = append(out, p.Text)
	}
	return out
}

// declared reads all metrics that are declared below a folder.
func declared(t *testing.T, dir string) map[string]metric {
	t.Helper()
	out := map[string]metric{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		r := reader{metrics: out, at: func(n ast.Node) string { return files.Position(n.Pos()).String() }}
		if r.prefixed(file); r.imports(file) {
			ast.Inspect(file, r.look)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// reader reads a file. A file that gives its metrics names in parts has one first part, "weir_…_" + name.
type reader struct {
	metrics map[string]metric
	at      func(ast.Node) string
	prefix  string
}

func (r *reader) imports(file *ast.File) bool {
	return slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool {
		return i.Path.Value == `"github.com/prometheus/client_golang/prometheus"`
	})
}

func (r *reader) prefixed(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if s, ok := text(n.X); ok && n.Op == token.ADD && strings.HasPrefix(s, "weir_") && strings.HasSuffix(s, "_") {
				r.prefix = s
			}
		case *ast.CompositeLit:
			if _, fixed := text(field(n, "Name")); !fixed && field(n, "Name") != nil && field(n, "Subsystem") != nil {
				r.prefix = joined(n) + "_"
			}
		}
		return true
	})
}

func (r *reader) look(n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return true
	}
	called := ""
	switch f := call.Fun.(type) {
	case *ast.Ident:
		called = f.Name
	case *ast.SelectorExpr:
		called = f.Sel.Name
	}
	kinds := called
	for _, a := range call.Args {
		if s, ok := a.(*ast.SelectorExpr); ok {
			kinds += s.Sel.Name
		}
	}
	counts := strings.Contains(strings.ToLower(kinds), "counter")
	switch {
	case called == "NewDesc":
		if name, ok := text(call.Args[0]); ok {
			help, _ := text(call.Args[1])
			r.add(call, name, help, strings.HasSuffix(name, "_total"))
		}
	case strings.HasPrefix(called, "New") && len(call.Args) > 0:
		opts, ok := call.Args[0].(*ast.CompositeLit)
		if !ok || field(opts, "Help") == nil {
			break
		}
		if name, ok := text(field(opts, "Name")); ok {
			if in := joined(opts); in != "" {
				name = in + "_" + name
			}
			help, _ := text(field(opts, "Help"))
			r.add(call, name, help, counts)
		}
	case slices.Contains([]string{"gauge", "counter", "tell", "metric", "send"}, called):
		args := call.Args
		for len(args) > 0 { // of what kind comes first
			if _, ok := text(args[0]); ok {
				break
			}
			args = args[1:]
		}
		if len(args) > 1 {
			name, _ := text(args[0])
			if help, ok := text(args[1]); ok {
				r.add(call, r.prefix+name, help, counts)
			}
		}
	}
	return true
}

func (r *reader) add(n ast.Node, name, help string, counter bool) {
	r.metrics[name] = metric{name, help, counter, r.at(n)}
}

// joined is what the fields Namespace and Subsystem put before a name.
func joined(opts *ast.CompositeLit) string {
	a, _ := text(field(opts, "Namespace"))
	b, _ := text(field(opts, "Subsystem"))
	return strings.Trim(fmt.Sprint(a, "_", b), "_")
}

func field(lit *ast.CompositeLit, name string) ast.Expr {
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if k, ok := kv.Key.(*ast.Ident); ok && k.Name == name {
				return kv.Value
			}
		}
	}
	return nil
}

// text is the value of a literal, or of literals that are joined.
func text(e ast.Expr) (string, bool) {
	if sum, ok := e.(*ast.BinaryExpr); ok && sum.Op == token.ADD {
		x, first := text(sum.X)
		y, second := text(sum.Y)
		return x + y, first && second
	}
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}
