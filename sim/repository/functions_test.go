package repository

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// walkFile is the document that names functions.
const walkFile = "docs/design.md"

// namedFunction is a function in a document: `package.Function` or `package.Type.Method`, and behind a bracket the file
// that it links to.
var namedFunction = regexp.MustCompile("`([a-z][a-z0-9]*)\\.([A-Za-z]\\w*(?:\\.[A-Za-z]\\w*)?)`(?:\\]\\(([^)#]+)\\))?")

// functions are those of a tree: by package and name, the files that declare one.
type functions map[string]map[string][]string

// TestWalks: each function that docs/design.md names exists, in the file that the name links to.
func TestWalks(t *testing.T) {
	dir := root(t)
	text, err := os.ReadFile(filepath.Join(dir, walkFile))
	if err != nil {
		t.Fatal(err)
	}
	all := functions{}
	for _, tree := range []string{"impl", "sim"} {
		if err := all.read(dir, tree); err != nil {
			t.Fatal(err)
		}
	}
	named, wrong := all.unknown(walkFile, string(text))
	for _, p := range wrong {
		t.Error(p)
	}
	if named < 40 {
		t.Errorf("%s names %d functions, want 40 or more: a walk without them shows nothing", walkFile, named)
	}
}

// read adds the functions below a folder, those of tests left out.
func (all functions) read(dir, tree string) error {
	return filepath.WalkDir(filepath.Join(dir, tree), func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") ||
			strings.Contains(file, "testdata") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		of := parsed.Name.Name
		if all[of] == nil {
			all[of] = map[string][]string{}
		}
		rel, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := f.Name.Name
			if f.Recv != nil {
				name = receiver(f.Recv.List[0].Type) + "." + name
			}
			all[of][name] = append(all[of][name], filepath.ToSlash(rel))
		}
		return nil
	})
}

// receiver is the name of the type of a receiver.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// unknown counts the functions that a document names, and returns those that do not exist. A name that begins with no
// package of the tree is none of a function.
func (all functions) unknown(doc, text string) (named int, wrong []string) {
	for i, line := range prose(text) {
		for _, m := range namedFunction.FindAllStringSubmatch(line, -1) {
			of := all[m[1]]
			if of == nil && m[3] == "" || m[2] == "go" { // a file
				continue
			}
			named++
			file := path.Join(path.Dir(doc), m[3])
			switch declared := of[m[2]]; {
			case len(declared) == 0:
				wrong = append(wrong, fmt.Sprintf("%s:%d: there is no %s.%s", doc, i+1, m[1], m[2]))
			case m[3] != "" && !slices.Contains(declared, file):
				wrong = append(wrong, fmt.Sprintf("%s:%d: %s.%s is not in %s, but in %s", doc, i+1, m[1], m[2], file,
					strings.Join(declared, ", ")))
			}
		}
	}
	return named, wrong
}

func TestUnknownFunctions(t *testing.T) {
	all := functions{}
	if err := all.read(root(t), "sim/repository"); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{
		"`repository.parseRegister`, `repository.block.figures`":    0,
		"[`repository.figure.holds`](../sim/repository/figures.go)": 0,
		"`summary.md`, `weir.dev`, `repository`, repository.gone":   0,
		"`repository.gone`":       1,
		"`repository.block.gone`": 1,
		"`repository.figures`":    1,
		"[`repository.figure.holds`](../sim/repository/doc.go)": 1,
		"[`gone.Function`](../sim/repository/figures.go)":       1,
	} {
		if _, got := all.unknown(walkFile, text); len(got) != want {
			t.Errorf("%q: %v, want %d", text, got, want)
		}
	}
}
