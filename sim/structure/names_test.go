package structure

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/weir-edge/weir/sim/proc/gobuild"
)

// TestNames: a package of impl and one of sim do not share a name, so that a file imports both under their own.
func TestNames(t *testing.T) {
	root, err := gobuild.Root("")
	if err != nil {
		t.Fatal(err)
	}
	tree := os.DirFS(root)
	for _, part := range []string{"impl", "sim"} {
		names, err := packageNames(tree, part)
		if err != nil {
			t.Fatal(err)
		}
		if len(names) < 40 {
			t.Errorf("%s has %d names of packages", part, len(names))
		}
	}
	shared, err := sharedNames(tree)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range shared {
		t.Error(s)
	}
}

// sharedNames says which packages of impl and sim share a name.
func sharedNames(tree fs.FS) (all []string, err error) {
	product, err := packageNames(tree, "impl")
	if err != nil {
		return nil, err
	}
	tests, err := packageNames(tree, "sim")
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		if len(product[name]) > 0 {
			all = append(all, fmt.Sprintf("%s and %s are both %q: rename the one of sim",
				strings.Join(product[name], ", "), strings.Join(tests[name], ", "), name))
		}
	}
	return all, nil
}

// packageNames returns the folders of packages by their names: that of the folder, and that of the package clause if it
// differs. Commands have none, which are in folders of a folder cmd, and packages of nested modules neither.
func packageNames(tree fs.FS, part string) (map[string][]string, error) {
	names := map[string][]string{}
	err := fs.WalkDir(tree, part, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if _, err := fs.Stat(tree, path.Join(at, "go.mod")); err == nil || d.Name() == "cmd" || d.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(at) != ".go" {
			return nil
		}
		text, err := fs.ReadFile(tree, at)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), at, text, parser.PackageClauseOnly)
		if err != nil {
			return err
		}
		folder := path.Dir(at)
		for _, name := range []string{path.Base(folder), strings.TrimSuffix(file.Name.Name, "_test")} {
			if name != "main" && !slices.Contains(names[name], folder) {
				names[name] = append(names[name], folder)
			}
		}
		return nil
	})
	return names, err
}

func TestSharedNames(t *testing.T) {
	for _, test := range []struct {
		name  string
		files []string // each with its package
		want  int
	}{
		{"none", []string{"impl/a/a.go a", "impl/b/c/c.go c", "sim/d/d.go d"}, 0},
		{"twice in impl", []string{"impl/a/a.go a", "impl/b/a/a.go a", "sim/d/d.go d"}, 0},
		{"two", []string{"impl/a/a.go a", "impl/b/c/c.go c", "sim/a/a.go a", "sim/c/c.go c"}, 2},
		{"at other depths", []string{"impl/b/a/a.go a", "sim/a/a.go a"}, 1},
		{"only tests", []string{"impl/a/a.go a", "sim/a/a_test.go a_test"}, 1},
		{"by the clause", []string{"impl/a/a.go a", "sim/b/b.go a"}, 1},
		{"commands", []string{"impl/cmd/a/main.go main", "impl/b/b.go b", "sim/cmd/a/a.go main", "sim/cmd/b/b.go main"}, 0},
		{"mains", []string{"impl/a/main.go main", "sim/b/main.go main"}, 0},
		{"a nested module", []string{"impl/a/a.go a", "sim/n/go.mod n", "sim/n/a/a.go a"}, 0},
		{"testdata", []string{"impl/a/a.go a", "sim/b/b.go b", "sim/b/testdata/a/a.go a"}, 0},
	} {
		tree := fstest.MapFS{}
		for _, f := range test.files {
			file, name, _ := strings.Cut(f, " ")
			tree[file] = &fstest.MapFile{Data: []byte("package " + name + "\n")}
		}
		if got, err := sharedNames(tree); err != nil || len(got) != test.want {
			t.Errorf("%s: %q, %v, want %d", test.name, got, err, test.want)
		}
	}
}
