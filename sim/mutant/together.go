package mutant

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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
// process is to have, and goes on as that one, whose function stands beside it. What is no function, or does not
// compile, is left out. It is nil for a group of one.
func (c *campaign) build(ctx context.Context, ms []Mutant, g group) (*built, error) {
	dir, err := c.spawner.Scratch("together", strings.ReplaceAll(fmt.Sprint(g.all.Package, "-", g.mutants[0]), "/", "-"))
	if err != nil {
		return nil, err
	}
	b := &built{program: filepath.Join(dir, "program")}
	module, pkg, err := c.where(g.all)
	if err != nil {
		return nil, err
	}
	args := []string{"test", "-c", "-vet=off", "-o", b.program}
	if g.all.Target == Race {
		args = append(args, "-race")
	}
	left := map[string][]Mutant{} // by file
	for _, i := range g.mutants {
		left[ms[i].File] = append(left[ms[i].File], ms[i])
	}
	for {
		overlay, clones, err := c.lay(dir, left)
		if err != nil || len(clones) < 2 {
			b.remove()
			return nil, err
		}
		b.names = map[string]bool{}
		for _, x := range clones {
			b.names[x.mutant] = true
		}
		ctx, cancel := context.WithTimeout(ctx, buildPatience)
		s, err := c.hear(ctx, proc.Spec{
			Name: "go test", Path: "go", Args: append(slices.Clone(args), "-overlay", overlay, pkg), Dir: module,
			Env: g.all.env(),
		})
		cancel()
		if err == nil {
			return b, nil
		}
		wrong := accused(clones, err.Error()+"\n"+strings.Join(s.compiler, "\n"))
		if len(wrong) == 0 {
			b.remove()
			return nil, err
		}
		for file, of := range left {
			left[file] = slices.DeleteFunc(of, func(m Mutant) bool { return wrong[m.Name] })
		}
	}
}

// clone is where the function of a mutant stands in what the compiler is given.
type clone struct {
	mutant, file string // the base of its name
	from, to     int    // lines
}

var compilerLine = regexp.MustCompile(`(?m)([\w.-]+\.go):(\d+):\d+: `)

// accused are the mutants whose functions the compiler complains about.
func accused(clones []clone, words string) map[string]bool {
	wrong := map[string]bool{}
	for _, m := range compilerLine.FindAllStringSubmatch(words, -1) {
		line, _ := strconv.Atoi(m[2])
		for _, x := range clones {
			if x.file == m[1] && x.from <= line && line <= x.to {
				wrong[x.mutant] = true
			}
		}
	}
	return wrong
}

// lay writes the files of mutants, and their overlay.
func (c *campaign) lay(dir string, left map[string][]Mutant) (overlay string, clones []clone, err error) {
	files := map[string][]byte{}
	for name, of := range left {
		file := filepath.Join(c.Root, name)
		text, err := os.ReadFile(file)
		if err != nil || len(of) == 0 {
			continue // each of them says so
		}
		changed, pkg, which := c.joined(text, of)
		if len(which) == 0 {
			continue
		}
		files[file] = changed
		files[filepath.Join(filepath.Dir(file), "weir_mutant.go")] = fmt.Appendf(nil,
			"package %s\n\nimport \"os\"\n\nvar weirMutant = os.Getenv(%q)\n", pkg, switchName)
		for i := range which {
			which[i].file = file
		}
		clones = append(clones, which...)
	}
	overlay, copies, err := write(dir, files)
	for i := range clones {
		clones[i].file = filepath.Base(copies[clones[i].file])
	}
	return overlay, clones, err
}

// edit puts text in the place of some bytes of a file.
type edit struct {
	at, end int
	text    string
}

// joined is a file with some mutants, the name of its package, and where the mutants stand in it.
func (c *campaign) joined(text []byte, ms []Mutant) (changed []byte, pkg string, which []clone) {
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
			from := bytes.Count(text, []byte("\n")) + strings.Count(beside.String(), "\n") + 2
			fmt.Fprintf(&beside, "\n%s\n", body)
			fmt.Fprintf(&cases, "case %q: %s; ", m.Name, fmt.Sprintf(call, name))
			which = append(which, clone{mutant: m.Name, from: from, to: from + strings.Count(body, "\n")})
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
