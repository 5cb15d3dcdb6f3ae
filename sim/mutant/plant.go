package mutant

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// errNoPlace is returned for a mutant whose code has changed: it has to be ported.
var errNoPlace = errors.New("does not apply")

// planted is a file with a bug in it.
type planted struct {
	text []byte
	line int // of the change
}

// plant returns the mutant's file, changed.
func (m Mutant) plant(root string) (planted, error) {
	text, err := os.ReadFile(filepath.Join(root, m.File))
	if err != nil {
		return planted{}, fmt.Errorf("%w: %w", errNoPlace, err)
	}
	from, to, err := extent(text, m.In)
	if err != nil {
		return planted{}, fmt.Errorf("%w: %s: %w", errNoPlace, m.File, err)
	}
	found := loosely(m.Old).FindAllIndex(text[from:to], -1)
	if len(found) != 1 {
		return planted{}, fmt.Errorf("%w: %s: %s has the snippet %d times, want once: %s", errNoPlace, m.File, m.In,
			len(found), m.Old)
	}
	at, end := from+found[0][0], from+found[0][1]
	changed := bytes.Join([][]byte{text[:at], []byte(strings.TrimSpace(m.New)), text[end:]}, nil)
	if bytes.Equal(changed, text) {
		return planted{}, fmt.Errorf("%w: it changes nothing", errNoPlace)
	}
	if _, err := parser.ParseFile(token.NewFileSet(), m.File, changed, parser.SkipObjectResolution); err != nil {
		return planted{}, fmt.Errorf("%w: the change does not parse: %w", errNoPlace, err)
	}
	return planted{changed, 1 + bytes.Count(text[:at], []byte("\n"))}, nil
}

// loosely matches a snippet with any white space where it has some.
func loosely(snippet string) *regexp.Regexp {
	words := strings.Fields(snippet)
	for i, w := range words {
		words[i] = regexp.QuoteMeta(w)
	}
	return regexp.MustCompile(strings.Join(words, `\s+`))
}

// extent finds the declaration of a name in a file.
func extent(text []byte, name string) (from, to int, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, parser.SkipObjectResolution)
	if err != nil {
		return 0, 0, err
	}
	found := 0
	note := func(n ast.Node) {
		found++
		from, to = set.Position(n.Pos()).Offset, set.Position(n.End()).Offset
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if funcName(d) == name {
				note(d)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				v, ok := s.(*ast.ValueSpec)
				if ok && len(v.Names) == 1 && v.Names[0].Name == name {
					note(v)
				}
			}
		}
	}
	if found != 1 {
		return 0, 0, fmt.Errorf("%s is declared %d times, want once", name, found)
	}
	return from, to, nil
}

// funcName is Function or Type.Method.
func funcName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.Ident:
			return x.Name + "." + d.Name.Name
		default:
			return d.Name.Name
		}
	}
}
