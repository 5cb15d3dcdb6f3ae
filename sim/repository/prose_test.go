package repository

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestProse: each rule of .ci/prose finds what it is for, in a comment and in a document, and leaves plain words alone.
func TestProse(t *testing.T) {
	vale := filepath.Join(root(t), "bin", "vale")
	if _, err := os.Stat(vale); err != nil {
		t.Skip("bin/vale is not there: make lint builds it")
	}
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
			if got := findings(t, vale, dir, name); !slices.Equal(got, want) {
				t.Errorf("%s, %q: found %v, want %v", name, text, got, want)
			}
		}
	}
}

// findings are the rules that a file breaks, as vale says.
func findings(t *testing.T, vale, dir, name string) (rules []string) {
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
			rules = append(rules, fields[3])
		}
	}
	return rules
}
