package structure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// Package is what is measured of one package, tests and generated files left out.
type Package struct {
	Path    string // without the module's
	Files   int
	Lines   int     // of code: without comments and blank lines
	Arrows  int     // pairs of files of which one uses what the other declares
	Back    []Arrow // those that remain when all others run one way
	Structs []Struct
}

// Arrow says that one file uses something that another declares.
type Arrow struct{ From, To, Through string }

func (a Arrow) String() string { return fmt.Sprintf("%s → %s (%s)", a.From, a.To, a.Through) }

// Struct is a struct type with its number of fields.
type Struct struct {
	Name   string
	Fields int
}

// Configuration reports whether a struct is what somebody configures, which may have many fields.
func (s Struct) Configuration() bool {
	return strings.HasSuffix(s.Name, "Config") || strings.HasSuffix(s.Name, "Options")
}

// BackShare is the share of arrows that run back, 0 to 1.
func (p Package) BackShare() float64 { return float64(len(p.Back)) / float64(max(p.Arrows, 1)) }

// Load measures the packages that patterns name, in the repository at root. It needs the toolchain of Go.
func Load(ctx context.Context, root string, patterns ...string) ([]Package, error) {
	loaded, err := packages.Load(&packages.Config{
		Context: ctx, Dir: root,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo |
			packages.NeedImports | packages.NeedModule,
	}, patterns...)
	if err != nil {
		return nil, err
	}
	var out []Package
	for _, p := range loaded {
		for _, e := range p.Errors {
			err = errors.Join(err, e)
		}
		if err == nil && len(p.Syntax) > 0 {
			m, failed := measure(p)
			out, err = append(out, m), failed
		}
	}
	return out, err
}

// measure looks at one package.
func measure(p *packages.Package) (Package, error) {
	m := Package{Path: strings.TrimPrefix(p.PkgPath, p.Module.Path+"/")}
	own := map[string]bool{} // files that a person wrote
	for _, f := range p.Syntax {
		path := p.Fset.Position(f.Package).Filename
		name := filepath.Base(path)
		if own[name] = !strings.HasPrefix(name, "zz_generated"); own[name] {
			m.Files++
			text, err := os.ReadFile(path)
			if err != nil {
				return m, err
			}
			m.Lines += codeLines(text)
		}
	}
	through := map[[2]string]string{} // by the files of an arrow: what is used
	for id, object := range p.TypesInfo.Uses {
		if object.Pkg() != p.Types || !object.Pos().IsValid() || local(object) {
			continue
		}
		from, to := filepath.Base(p.Fset.Position(id.Pos()).Filename), filepath.Base(p.Fset.Position(object.Pos()).Filename)
		if key := [2]string{from, to}; from != to && own[from] && own[to] &&
			(through[key] == "" || object.Name() < through[key]) {
			through[key] = object.Name()
		}
	}
	m.Arrows = len(through)
	m.Back = back(through)
	for _, name := range p.Types.Scope().Names() {
		t, ok := p.Types.Scope().Lookup(name).(*types.TypeName)
		if !ok || !own[filepath.Base(p.Fset.Position(t.Pos()).Filename)] {
			continue
		}
		if s, ok := t.Type().Underlying().(*types.Struct); ok {
			m.Structs = append(m.Structs, Struct{name, s.NumFields()})
		}
	}
	return m, nil
}

// codeLines counts the lines of a file that have a token. A comment makes no package large: a limit that counted it
// would be met by leaving it out.
func codeLines(text []byte) int {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	s.Init(file, text, nil, 0)
	n, last := 0, 0 // last is the last line that is counted
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return n
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue
		}
		first := file.Line(pos)
		end := first + strings.Count(literal, "\n")
		n += end - max(last, first-1)
		last = end
	}
}

// local reports whether an object is a variable, constant or type inside a function, or a parameter.
func local(o types.Object) bool {
	if v, ok := o.(*types.Var); ok && v.IsField() {
		return false
	}
	if f, ok := o.(*types.Func); ok && f.Signature().Recv() != nil {
		return false
	}
	return o.Parent() != o.Pkg().Scope()
}

// back returns the arrows that run back in an order of the files that leaves few of them. The best order is hard to
// find: files are moved, one at a time, to where fewest run back, until no move helps.
func back(through map[[2]string]string) []Arrow {
	arrows := slices.SortedFunc(maps.Keys(through), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	uses := map[string]int{} // more than it is used: above
	for _, a := range arrows {
		uses[a[0]]++
		uses[a[1]]--
	}
	order := slices.SortedFunc(maps.Keys(uses), func(a, b string) int {
		return cmp.Or(uses[b]-uses[a], cmp.Compare(a, b))
	})
	for better := true; better; {
		better = false
		for _, file := range slices.Clone(order) {
			if at := place(order, file, through); at != slices.Index(order, file) {
				order = slices.Insert(slices.DeleteFunc(order, func(f string) bool { return f == file }), at, file)
				better = true
			}
		}
	}
	var out []Arrow
	for _, a := range arrows {
		if slices.Index(order, a[0]) > slices.Index(order, a[1]) {
			out = append(out, Arrow{a[0], a[1], through[a]})
		}
	}
	return out
}

// place is where in an order a file has fewest arrows that run back: where it stands, if no other place is better.
func place(order []string, file string, through map[[2]string]string) int {
	now := slices.Index(order, file)
	others := slices.DeleteFunc(slices.Clone(order), func(f string) bool { return f == file })
	backs := 0 // at the top: whoever uses it runs back
	for _, f := range others {
		if through[[2]string{f, file}] != "" {
			backs++
		}
	}
	counts := []int{backs}
	for _, f := range others { // one further down
		if through[[2]string{f, file}] != "" {
			backs--
		}
		if through[[2]string{file, f}] != "" {
			backs++
		}
		counts = append(counts, backs)
	}
	if best := slices.Min(counts); counts[now] > best {
		return slices.Index(counts, best)
	}
	return now
}
