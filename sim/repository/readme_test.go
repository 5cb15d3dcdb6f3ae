package repository

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What README is for: a newcomer reads all of it, from top to bottom, in a few minutes.
const (
	readmeLines = 120
	readmeWords = 900
	// readmeCommands stand below "Install": kind/install types them, word for word.
	readmeCommands = 5
)

var readmeSections = []string{
	"Two commands", "A real result", "Install", "Undo", "What it costs, and where it does not pay", "Where to read on",
}

// TestReadme: README is short, has its sections in their order, and the commands that kind/install types.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range readmeProblems(string(text)) {
		t.Errorf("README.md: %s", p)
	}
}

func readmeProblems(text string) (all []string) {
	if n := strings.Count(text, "\n"); n > readmeLines {
		all = append(all, fmt.Sprintf("%d lines, want %d at most", n, readmeLines))
	}
	if n := len(strings.Fields(text)); n > readmeWords {
		all = append(all, fmt.Sprintf("%d words, want %d at most", n, readmeWords))
	}
	var sections []string
	commands := 0
	for line := range strings.Lines(text) {
		title, ok := strings.CutPrefix(line, "## ")
		if ok {
			sections = append(sections, strings.TrimSpace(title))
		}
		if len(sections) > 0 && sections[len(sections)-1] == "Install" && strings.HasPrefix(line, "    ") {
			commands++
		}
	}
	if !slices.Equal(sections, readmeSections) {
		all = append(all, fmt.Sprintf("sections %q, want %q", sections, readmeSections))
	}
	if commands != readmeCommands {
		all = append(all, fmt.Sprintf("%d commands below Install, want %d", commands, readmeCommands))
	}
	return all
}

func TestReadmeProblems(t *testing.T) {
	good := "# Weir\n"
	for _, s := range readmeSections {
		good += "\n## " + s + "\n\n" + strings.Repeat("    a command\n", readmeCommands)
	}
	if got := readmeProblems(good); len(got) > 0 {
		t.Errorf("a good one: %v", got)
	}
	for name, text := range map[string]string{
		"lines":    good + strings.Repeat("\n", readmeLines),
		"words":    good + strings.Repeat("word ", readmeWords),
		"order":    strings.Replace(good, "## Undo", "## Remove", 1),
		"commands": strings.Replace(good, "## Install\n\n    a command\n", "## Install\n\n", 1),
	} {
		if got := readmeProblems(text); len(got) != 1 {
			t.Errorf("%s: %v", name, got)
		}
	}
}
