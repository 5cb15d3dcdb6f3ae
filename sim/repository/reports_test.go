package repository

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A reader who doubts a figure builds the revision that was measured, and runs the command that measured it.
var (
	revisionOf = regexp.MustCompile(`(?i)(?:revision|base|head)[ |:` + "`" + `]+[0-9a-f]{7,12}\b`)
	commandOf  = regexp.MustCompile(`\b(?:make|bin/weir|go test) [a-z.-]+`)
)

// TestReports: each committed report says which revision was measured, and by which command.
func TestReports(t *testing.T) {
	dir := filepath.Join(root(t), "reports")
	seen := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if rel == "TRACK-RECORD.md" || strings.HasPrefix(rel, "out"+string(filepath.Separator)) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		seen++
		for _, p := range unrepeatable(string(text)) {
			t.Errorf("reports/%s names no %s", rel, p)
		}
		return nil
	})
	if err != nil || seen == 0 {
		t.Fatalf("%d reports: %v", seen, err)
	}
}

// unrepeatable is what a report lacks for the one that wants to repeat it.
func unrepeatable(text string) (lacks []string) {
	if !revisionOf.MatchString(text) {
		lacks = append(lacks, "revision")
	}
	if !commandOf.MatchString(text) {
		lacks = append(lacks, "command")
	}
	return lacks
}

func TestUnrepeatable(t *testing.T) {
	for text, want := range map[string]string{
		"Revision 79335d1551b7, 2026. Repeat: `make bench`.": "",
		"| revision | 62ba7b8 |\n bin/weir scenario run x":   "",
		"Base `60d44c932389` make report":                    "",
		"of 2026-11-23, make bench":                          "revision",
		"revision 62ba7b8, measured by hand":                 "command",
		"good":                                               "revision command",
	} {
		if got := strings.Join(unrepeatable(text), " "); got != want {
			t.Errorf("%q lacks %q, want %q", text, got, want)
		}
	}
}
