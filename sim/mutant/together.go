package mutant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-edge/weir/sim/proc"
)

// switchName is the variable of the environment that says which mutant a process has.
const switchName = "WEIR_MUTANT"

// built are the tests of a package with many mutants, of which a process has one, or none. A nil one has none.
type built struct {
	program string
	names   map[string]bool
}

func (b *built) has(m Mutant) bool { return b != nil && b.names[m.Name] }

func (b *built) remove() {
	if b != nil {
		os.RemoveAll(filepath.Dir(b.program))
	}
}

// build builds the mutants of a group together: each function that has some begins with a look at which mutant the
// process is to have, and goes on as that one, whose function stands beside it. What is no function is left out. It is
// nil for a group of one.
func (c *campaign) build(ctx context.Context, ms []Mutant, g group) (*built, error) {
	b := &built{names: map[string]bool{}}
	files := map[string][]byte{}
	byFile := map[string][]Mutant{}
	for _, i := range g.mutants {
		byFile[ms[i].File] = append(byFile[ms[i].File], ms[i])
	}
	for name, of := range byFile {
		file := filepath.Join(c.Root, name)
		text, err := os.ReadFile(file)
		if err != nil {
			continue // each of them says so
		}
		changed, pkg, which := c.joined(text, of)
		if len(which) == 0 {
			continue
		}
		files[file] = changed
		files[filepath.Join(filepath.Dir(file), "weir_mutant.go")] = fmt.Appendf(nil,
			"package %s\n\nimport \"os\"\n\nvar weirMutant = os.Getenv(%q)\n", pkg, switchName)
		for _, name := range which {
			b.names[name] = true
		}
	}
	if len(b.names) < 2 {
		return nil, nil
	}
	dir, err := c.spawner.Scratch("together", strings.ReplaceAll(fmt.Sprint(g.all.Package, "-", g.mutants[0]), "/", "-"))
	if err != nil {
		return nil, err
	}
	b.program = filepath.Join(dir, "program")
	overlay, err := write(dir, files)
	if err != nil {
		return nil, err
	}
	module, pkg, err := c.where(g.all)
	if err != nil {
		return nil, err
	}
	args := []string{"test", "-c", "-vet=off", "-overlay", overlay, "-o", b.program}
	if g.all.Target == Race {
		args = append(args, "-race")
	}
	ctx, cancel := context.WithTimeout(ctx, buildPatience)
	defer cancel()
	s, err := c.hear(ctx, proc.Spec{Name: "go test", Path: "go", Args: append(args, pkg), Dir: module, Env: g.all.env()})
	if err != nil {
		b.remove()
		return nil, errors.Join(err, errors.New(strings.Join(s.compiler, "; ")))
	}
	return b, nil
}

// edit puts text in the place of some bytes of a file.
type edit struct {
	at, end int
	text    string
}

// joined is a file with some mutants, the name of its package, and the mutants that are in it.
func (c *campaign) joined(text []byte, ms []Mutant) (changed []byte, pkg string, which []string) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, parser.SkipObjectResolution)
	if err != nil || strings.HasSuffix(ms[0].File, "_test.go") {
		return nil, "", nil
	}
	at := func(p token.Pos) int { return set.Position(p).Offset }
	var edits []edit
	var beside strings.Builder
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil || f.Name.Name == "init" {
			continue
		}
		var cases strings.Builder
		named, call := calling(f, at)
		for _, m := range ms {
			if funcName(f) != m.In {
				continue
			}
			name := fmt.Sprintf("%s_mutant_%s", f.Name.Name, strings.ReplaceAll(m.Name, "-", "_"))
			body, ok := c.function(m, name)
			if !ok {
				continue
			}
			fmt.Fprintf(&beside, "\n%s\n", body)
			fmt.Fprintf(&cases, "case %q: %s; ", m.Name, fmt.Sprintf(call, name))
			which = append(which, m.Name)
		}
		if cases.Len() > 0 {
			inside := at(f.Body.Lbrace) + 1
			edits = append(append(edits, named...), edit{inside, inside, " switch weirMutant { " + cases.String() + "}; "})
		}
	}
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(b.at, a.at) })
	changed = slices.Clone(text)
	for _, e := range edits {
		changed = slices.Concat(changed[:e.at], []byte(e.text), changed[e.end:])
	}
	return append(changed, beside.String()...), file.Name.Name, which
}

// function is a mutant's function by another name. It is false for a mutant that does not apply.
func (c *campaign) function(m Mutant, name string) (string, bool) {
	p, err := m.plant(c.Root)
	if err != nil {
		return "", false
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", p.text, parser.SkipObjectResolution)
	if err != nil {
		return "", false
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && funcName(f) == m.In {
			from, id, to := set.Position(f.Type.Func).Offset, set.Position(f.Name.Pos()).Offset, set.Position(f.End()).Offset
			return string(p.text[from:id]) + name + string(p.text[id+len(f.Name.Name):to]), true
		}
	}
	return "", false
}

// calling is how a function calls another one that has its parameters, whose name is %s: with the edits by which all
// parameters have names.
func calling(f *ast.FuncDecl, at func(token.Pos) int) (named []edit, call string) {
	n := 0
	names := func(fields *ast.FieldList) (all []string) {
		if fields == nil {
			return nil
		}
		for _, p := range fields.List {
			for _, id := range p.Names {
				name := id.Name
				if name == "_" {
					name = fmt.Sprintf("weirMutant%d", n)
					named = append(named, edit{at(id.Pos()), at(id.End()), name})
				}
				all = append(all, name)
				n++
			}
			if len(p.Names) == 0 {
				name := fmt.Sprintf("weirMutant%d", n)
				named = append(named, edit{at(p.Type.Pos()), at(p.Type.Pos()), name + " "})
				all = append(all, name)
				n++
			}
			if _, variadic := p.Type.(*ast.Ellipsis); variadic {
				all[len(all)-1] += "..."
			}
		}
		return all
	}
	call = "%s"
	if on := names(f.Recv); len(on) > 0 {
		call = on[0] + ".%s"
	} else if types := f.Type.TypeParams; types != nil {
		var of []string
		for _, t := range types.List {
			for _, id := range t.Names {
				of = append(of, id.Name)
			}
		}
		call += "[" + strings.Join(of, ", ") + "]"
	}
	call += "(" + strings.Join(names(f.Type.Params), ", ") + ")"
	if f.Type.Results != nil {
		return named, "return " + call
	}
	return named, call + "; return"
}
