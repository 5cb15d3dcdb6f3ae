package structure

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-edge/weir/sim/proc/gobuild"
)

// composition is how a package puts a struct together, by its sources.
type composition struct {
	parts []string             // fields of the struct, in order
	of    map[string]string    // the part that a promoted field is of
	does  map[string]*ast.Node // bodies of methods of the struct
	build *ast.FuncDecl
}

// compositionOf reads how a function makes a struct.
func compositionOf(files []*ast.File, typ, build string) composition {
	c, structs := composition{of: map[string]string{}, does: map[string]*ast.Node{}}, map[string]*ast.StructType{}
	for _, f := range files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				switch body := ast.Node(d.Body); {
				case d.Recv == nil && d.Name.Name == build:
					c.build = d
				case d.Recv != nil && last(d.Recv.List[0].Type) == typ:
					c.does[d.Name.Name] = &body
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if t, ok := s.(*ast.TypeSpec); ok {
						if s, ok := t.Type.(*ast.StructType); ok {
							structs[t.Name.Name] = s
						}
					}
				}
			}
		}
	}
	for _, name := range fields(structs[typ]) {
		c.parts = append(c.parts, name)
		c.of[name] = name
		for _, promoted := range fields(structs[name]) {
			c.of[promoted] = name
		}
	}
	return c
}

// fields are the names of a struct's fields, of embedded ones their types'.
func fields(s *ast.StructType) (all []string) {
	if s == nil {
		return nil
	}
	for _, f := range s.Fields.List {
		if len(f.Names) == 0 {
			all = append(all, last(f.Type))
		}
		for _, n := range f.Names {
			all = append(all, n.Name)
		}
	}
	return all
}

// last is the last name of a type.
func last(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return last(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// early are the parts that are used before they are there.
func (c composition) early() (all []string) {
	there := map[string]bool{}
	var walk func(n ast.Node, where string)
	uses := func(n ast.Node, where string) {
		s, ok := n.(*ast.SelectorExpr)
		if !ok || last(s.X) != "h" {
			return
		}
		if body := c.does[s.Sel.Name]; body != nil {
			walk(*body, s.Sel.Name)
		} else if part := c.of[s.Sel.Name]; part != "" && !there[part] {
			all = append(all, fmt.Sprintf("%s uses %s of %s", where, s.Sel.Name, part))
		}
	}
	walk = func(n ast.Node, where string) {
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				for _, e := range n.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok && last(n.Type) == "Hub" {
						there[last(kv.Key)] = true
					}
				}
			case *ast.AssignStmt:
				for _, e := range n.Rhs {
					walk(e, where)
				}
				for _, e := range n.Lhs {
					if s, ok := e.(*ast.SelectorExpr); ok && last(s.X) == "h" && slices.Contains(c.parts, s.Sel.Name) {
						there[s.Sel.Name] = true
					}
				}
				return false
			default:
				uses(n, where)
			}
			return true
		})
	}
	walk(c.build.Body, c.build.Name.Name)
	return all
}

// TestHubIsBuiltInOrder: no part of a hub, and no function that it is given, uses another part that is made later.
func TestHubIsBuiltInOrder(t *testing.T) {
	root, err := gobuild.Root("")
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(root, "impl/hub/*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	c := compositionOf(files, "Hub", "build")
	if len(c.parts) < 10 || c.build == nil {
		t.Fatalf("a hub has the parts %v: how it is built has changed", c.parts)
	}
	for _, e := range c.early() {
		t.Error(e)
	}
}

// TestEarly: a part that is used before it is there is found, in a function that is passed on and in a method, too.
func TestEarly(t *testing.T) {
	const types = "package x\ntype Hub struct { machine; door *int }\ntype machine struct { disk int }\n" +
		"func (h *Hub) open() { use(h.disk) }\n"
	for build, want := range map[string]int{
		"h := &Hub{machine: m}; h.door = f(h.disk)":                              0,
		"h := &Hub{}; h.door = f(h.disk)":                                        1,
		"h := &Hub{}; h.door = f(func() int { return h.disk })":                  1,
		"h := &Hub{}; h.open()":                                                  1,
		"h := &Hub{}; h.machine = m; h.open()":                                   0,
		"h := &Hub{}; if h.machine, err = m(h.door); err != nil { return }":      1,
		"h := &Hub{machine: m}; g(func() { h.open() }); h.door = d; use(h.door)": 0,
	} {
		text := types + "func build() { " + build + " }"
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := compositionOf([]*ast.File{f}, "Hub", "build").early(); len(got) != want {
			t.Errorf("%s: %q, want %d", build, got, want)
		}
	}
}
