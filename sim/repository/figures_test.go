package repository

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const registerFile = "reports/figures.tsv"

// documents are those of the top level and of docs, and each README.
func documents(dir string) (all []string, err error) {
	for _, pattern := range []string{"*.md", "docs/*.md", "*/README.md", "*/*/README.md"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(file string) bool {
		return strings.HasPrefix(file, filepath.Join(dir, "reports"))
	}), nil
}

// TestFigures: each figure of README and docs stands in a committed report, or is set by a file.
func TestFigures(t *testing.T) {
	dir := root(t)
	data, err := os.ReadFile(filepath.Join(dir, registerFile))
	if err != nil {
		t.Fatal(err)
	}
	set, err := parseRegister(string(data))
	if err != nil {
		t.Fatalf("%s: %v", registerFile, err)
	}
	docs, err := documents(dir)
	if err != nil {
		t.Fatal(err)
	}
	used := map[[2]string]bool{}
	for _, file := range docs {
		if filepath.Base(file) == referenceFile { // what programs are set to, by their own word
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := filepath.Rel(dir, file)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range unfounded(dir, doc, string(text), set, used) {
			t.Error(p)
		}
	}
	for key, where := range set {
		if !used[key] {
			t.Errorf("%s: %s of %s is in no document, or stands in a report", registerFile, key[1], key[0])
		}
		if strings.HasPrefix(where, "published by ") {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, where)); err != nil {
			t.Errorf("%s: %s of %s: %v", registerFile, key[1], key[0], err)
		}
	}
}

func TestFindsFigures(t *testing.T) {
	for _, test := range []struct {
		text string
		want []string
	}{
		{"It takes 0.56 s in half of the cases, 0.70 s in 99 of 100.", []string{"0.56 s", "0.70 s"}},
		{"| hub | 18 MB | **1.03** (the copy: 1.004) |", []string{"18 MB", "1.03", "1.004"}},
		{"after `--grace` (30 s), `12 s` in code, 5 nodes, HTTP/1.1, v1.37.1, Kubernetes 1.37", []string{"30 s"}},
		{"4.0 to 4.4 s, 3.3 % and 1,024 kB.", []string{"4.0", "4.4 s", "3.3 %", "1,024 kB"}},
		{"[a link](../reports/x-1.5/a.md) and port 10268, 2026-11-23", nil},
		{"7 s† and 8 s", []string{"7 s†", "8 s"}},
		{
			"200 kills, 40 leader kills, 3 nodes, 0 re-lists in 1,000 schedules",
			[]string{"200 kills", "40 leader kills", "0 re-lists", "1,000 schedules"},
		},
	} {
		var got []string
		for _, f := range (block{text: test.text}).figures() {
			s := f.text
			if f.dagger {
				s += Dagger
			}
			got = append(got, s)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.text, diff)
		}
	}
}

// TestFindsUnfounded: what TestFigures is there for is found.
func TestFindsUnfounded(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"reports/a/summary.md": "it took 2.218 s, 1.028 of 10.6, 18.3 MB", "reports/b/x.txt": "1",
	} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		text string
		want int
	}{
		{"It took 2.2 s ([report](../reports/a/summary.md)).", 0},
		{"It took 2.2 s ([report](../reports/a)).", 0},
		{"It took 2.3 s ([report](../reports/a)).", 1},
		{"It took 2.2185 s ([report](../reports/a)).", 1},
		{"It took 2.2 s.", 1},
		{"Nobody listed in 200 kills.", 1},
		{"It took 2.2 s.\n\n[report](../reports/a)", 1},
		{"- It took 2.2 s.\n- See [report](../reports/a).", 1},
		{"It took 2.2 s ([report](../reports/c)).", 2},
		{"It took 2.2 s ([report](../reports/b)).", 2},
		{"It waits for 30 s.", 0},
		{"It took 7 s†.", 1},
		{"It took 7 s†.\n\n† no report yet.", 0},
		{"    7 s in code\n\n```\n8 s\n```\n", 0},
	} {
		got := unfounded(dir, "docs/x.md", test.text, register{{"docs/x.md", "30 s"}: "a"}, map[[2]string]bool{})
		if len(got) != test.want {
			t.Errorf("%q: %s, want %d", test.text, strings.Join(got, "; "), test.want)
		}
	}
	for _, bad := range []string{"a\tb", "a\tb\tc\td"} {
		if _, err := parseRegister(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}
