package repository

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestProse: each rule of .ci/prose finds what it is for, in a comment and in a document, and leaves plain words alone.
func TestProse(t *testing.T) {
	vale := vale(t)
	long := strings.Repeat("word ", 30)
	for text, want := range map[string][]string{
		"The hub reports whether it leads.":                   nil,
		"It tells whether it leads.":                          {"Weir.Words"},
		"The certificate was taken back.":                     {"Weir.Words"},
		"The hub starts anew.":                                {"Weir.Words"},
		"The text cannot be meant.":                           {"Weir.Words"},
		"The token counts no more.":                           {"Weir.Words"},
		"It is hearsay. It is a rumour.":                      {"Weir.Words", "Weir.Words"},
		"A hub that leads reads the cloud.":                   nil,
		"It reports who leads.":                               nil,
		"One replica reads. Who reads has the others read.":   {"Weir.Who"},
		"It is for who asks.":                                 {"Weir.Who"},
		"It is the certificate of who asked.":                 {"Weir.Who"},
		long[:len(long)-1] + ".":                              nil,
		long + "more, of which a comment may have as many.":   {"Weir.Sentences"},
		"The hub tells\nwhether it leads, as a line may end.": {"Weir.Words"},
	} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "docs"), 0o755); err != nil {
			t.Fatal(err)
		}
		document, code := filepath.Join("docs", "planted.md"), "planted.go"
		comment := "// " + strings.ReplaceAll(text, "\n", "\n// ") + "\npackage planted\n"
		for name, content := range map[string]string{document: "# Planted\n\n" + text + "\n", code: comment} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{document, code} {
			want := slices.Clone(want)
			if name == code { // sentences of comments may be longer
				want = slices.DeleteFunc(want, func(rule string) bool { return rule == "Weir.Sentences" })
			}
			var got []string
			for _, f := range findings(t, vale, dir, name) {
				got = append(got, f.rule)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, %q: found %v, want %v", name, text, got, want)
			}
		}
	}
}

// TestMessages: what programs print, log and answer has the same words as documents.
func TestMessages(t *testing.T) {
	vale := vale(t)
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "*.go", ":!*_test.go")
	list.Dir = root(t)
	names, err := list.Output()
	if err != nil {
		t.Skipf("no git here: %v", err)
	}
	var page strings.Builder // each text is a paragraph
	var places []string
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, filepath.Join(root(t), name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if words := strings.Fields(strings.ReplaceAll(text, "`", "'")); err == nil && len(words) > 1 {
				fmt.Fprintf(&page, "Text %s\n\n", strings.Join(words, " "))
				places = append(places, fmt.Sprintf("%s:%d: %s", name, files.Position(n.Pos()).Line, text))
			}
			return true
		})
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "messages.md"), []byte(page.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if len(places) < 1000 {
		t.Fatalf("%d texts were found", len(places))
	}
	for _, f := range findings(t, vale, dir, "messages.md") {
		t.Errorf("%s: %s", f.rule, places[(f.line-1)/2])
	}
}

// vale is the path of the command.
func vale(t *testing.T) string {
	path := filepath.Join(root(t), "bin", "vale")
	if _, err := os.Stat(path); err != nil {
		t.Skip("bin/vale is not there: make lint builds it")
	}
	return path
}

// finding is a rule that a line of a file breaks.
type finding struct {
	line int
	rule string
}

// findings are what vale finds in a file.
func findings(t *testing.T, vale, dir, name string) (found []finding) {
	t.Helper()
	run := exec.CommandContext(t.Context(), vale, "--config", filepath.Join(root(t), ".ci", "prose", "vale.ini"),
		"--no-exit", "--output", "line", name)
	run.Dir = dir
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("vale: %v: %s", err, out)
	}
	for line := range strings.Lines(string(out)) { // file:line:column:rule:message
		if fields := strings.SplitN(line, ":", 5); len(fields) == 5 {
			n, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatalf("vale: %s", line)
			}
			found = append(found, finding{n, fields[3]})
		}
	}
	return found
}
