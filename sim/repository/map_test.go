package repository

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mapRow is a line of the map in CONTRIBUTING.md: the folder of a package, and what it is for.
var mapRow = regexp.MustCompile(`(?m)^\| \[(\S+)\]\((\S+)\) \| (.+) \|$`)

// TestMap: the map of CONTRIBUTING.md lists each package of impl and sim once.
func TestMap(t *testing.T) {
	dir := root(t)
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "impl/*.go", "sim/*.go")
	list.Dir = dir
	out, err := list.Output()
	if err != nil {
		t.Skipf("no git here: %v", err)
	}
	var packages []string
	for _, file := range strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }) {
		_, err := os.Stat(filepath.Join(dir, file))
		if folder := path.Dir(file); err == nil && !strings.Contains(folder, "testdata") {
			packages = append(packages, folder)
		}
	}
	slices.Sort(packages)
	packages = slices.Compact(packages)
	text, err := os.ReadFile(filepath.Join(dir, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range mapProblems(string(text), packages) {
		t.Errorf("CONTRIBUTING.md: %s", p)
	}
}

// mapProblems returns what is wrong with a map of these packages. Rows of other folders are not looked at.
func mapProblems(text string, packages []string) (all []string) {
	rows := map[string]int{}
	for _, m := range mapRow.FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(m[1], "impl/") && !strings.HasPrefix(m[1], "sim/") {
			continue
		}
		rows[m[1]]++
		if m[1] != m[2] {
			all = append(all, fmt.Sprintf("the row of %s leads to %s", m[1], m[2]))
		}
		if !slices.Contains(packages, m[1]) {
			all = append(all, fmt.Sprintf("the map has %s, which is no package", m[1]))
		}
	}
	for _, p := range packages {
		if rows[p] != 1 {
			all = append(all, fmt.Sprintf("the map has %d rows for %s, want 1: | [%[2]s](%[2]s) | what it is for |", rows[p], p))
		}
	}
	return all
}

func TestMapProblems(t *testing.T) {
	const good = "| [impl/a](impl/a) | One. |\n| [sim/b/c](sim/b/c) | Two. |\n| [kind](kind) | Three. |\n"
	packages := []string{"impl/a", "sim/b/c"}
	if got := mapProblems(good, packages); len(got) > 0 {
		t.Errorf("a good one: %v", got)
	}
	for name, text := range map[string]string{
		"one is missing":     "| [impl/a](impl/a) | One. |\n",
		"one is there twice": good + "| [impl/a](impl/a) | Again. |\n",
		"one leads astray":   strings.Replace(good, "(impl/a)", "(impl/b)", 1),
		"one is gone":        good + "| [impl/gone](impl/gone) | Gone. |\n",
		"one says nothing":   strings.Replace(good, "| One. |", "|", 1),
	} {
		if got := mapProblems(text, packages); len(got) != 1 {
			t.Errorf("%s: %v", name, got)
		}
	}
}
