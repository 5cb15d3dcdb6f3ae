package change

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"strings"
)

// SameCode reports whether two Go files are the same but for comments and layout. Directives and build constraints are
// code. What does not parse is not the same.
func SameCode(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, ok := codeOf(a)
	if !ok {
		return false
	}
	y, ok := codeOf(b)
	return ok && x == y
}

// codeOf is a file without its comments, and its directives in their order.
func codeOf(source []byte) (string, bool) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, "", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return "", false
	}
	var directives []string
	for _, g := range f.Comments {
		for _, c := range g.List {
			if strings.HasPrefix(c.Text, "//go:") || strings.HasPrefix(c.Text, "// +build") ||
				strings.HasPrefix(c.Text, "//export ") || strings.HasPrefix(c.Text, "//line ") {
				directives = append(directives, c.Text)
			}
		}
	}
	for _, i := range f.Imports {
		if i.Path.Value == `"C"` {
			return "", false // its comment is code
		}
	}
	f.Comments = nil
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.File:
			n.Doc = nil
		case *ast.GenDecl:
			n.Doc = nil
		case *ast.FuncDecl:
			n.Doc = nil
		case *ast.Field:
			n.Doc, n.Comment = nil, nil
		case *ast.ImportSpec:
			n.Doc, n.Comment = nil, nil
		case *ast.ValueSpec:
			n.Doc, n.Comment = nil, nil
		case *ast.TypeSpec:
			n.Doc, n.Comment = nil, nil
		}
		return true
	})
	var b bytes.Buffer
	if err := format.Node(&b, files, f); err != nil {
		return "", false
	}
	var lines []string
	for _, l := range strings.Split(b.String(), "\n") {
		// where a comment stood a line may be left, and columns may differ.
		if l = strings.Join(strings.Fields(l), " "); l != "" {
			lines = append(lines, l)
		}
	}
	return strings.Join(append(lines, directives...), "\n"), true
}
