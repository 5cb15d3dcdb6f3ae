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

var (
	anyLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`^#{1,6} +(.+?) *$`)
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N}\-_ ]`)
)

// TestLinks: each link in Markdown to a file of this repository leads to one that is there, and to a heading that is
// there.
func TestLinks(t *testing.T) {
	dir := root(t)
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md")
	list.Dir = dir
	out, err := list.Output()
	if err != nil {
		t.Skipf("no git here: %v", err)
	}
	for _, doc := range strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }) {
		if strings.Contains(doc, "testdata/") { // made of runs: their links lead into the folder of a report
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, doc))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range deadLinks(dir, doc, string(text)) {
			t.Error(p)
		}
	}
}

// deadLinks returns the links of a document that lead nowhere. Code has no links, and links to other sites are not
// followed.
func deadLinks(dir, doc, text string) (dead []string) {
	for i, line := range prose(text) {
		for _, m := range anyLink.FindAllStringSubmatch(inCode.ReplaceAllString(line, ""), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			to, anchor, _ := strings.Cut(m[1], "#")
			target := doc
			if to != "" {
				target = path.Join(path.Dir(doc), to)
			}
			full := filepath.Join(dir, filepath.FromSlash(target))
			if _, err := os.Stat(full); err != nil {
				dead = append(dead, fmt.Sprintf("%s:%d: %s is not there", doc, i+1, m[1]))
				continue
			}
			if anchor == "" || !strings.HasSuffix(target, ".md") {
				continue
			}
			data, err := os.ReadFile(full)
			if err != nil || !slices.Contains(anchors(string(data)), anchor) {
				dead = append(dead, fmt.Sprintf("%s:%d: %s has no heading #%s (%v)", doc, i+1, target, anchor, err))
			}
		}
	}
	return dead
}

// prose returns the lines of a document, with those of fenced code empty.
func prose(text string) (lines []string) {
	fenced := false
	for _, line := range strings.Split(text, "\n") {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fence {
			fenced = !fenced
		}
		if fenced || fence {
			line = ""
		}
		lines = append(lines, line)
	}
	return lines
}

// anchors of the headings of a document, as GitHub makes them.
func anchors(text string) (all []string) {
	times := map[string]int{}
	for _, line := range prose(text) {
		m := heading.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		slug := strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(linkText.ReplaceAllString(m[1], "]")), ""), " ",
			"-")
		times[slug]++
		if n := times[slug]; n > 1 {
			slug = fmt.Sprintf("%s-%d", slug, n-1)
		}
		all = append(all, slug)
	}
	return all
}

func TestDeadLinks(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "other.md"),
		[]byte("# A pool's `x`, told\n\n## Twice\n\n## Twice\n\n```\n# no heading\n```\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{
		"[a](other.md) [b](other.md#a-pools-x-told) [c](other.md#twice-1) [d](#here) [e](https://x/y)\n# Here": 0,
		"`[a](gone.md)` and\n```\n[a](gone.md)\n```":                                                           0,
		"[a](gone.md)":                   1,
		"[a](other.md#gone)":             1,
		"[a](other.md#no-heading)":       1,
		"[a](other.md#twice-2)":          1,
		"[a](#here)":                     1,
		"[a](../gone/) and [b](gone.go)": 2,
	} {
		if err := os.WriteFile(filepath.Join(dir, "doc.md"), []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := deadLinks(dir, "doc.md", text+"\n"); len(got) != want {
			t.Errorf("%q: %v, want %d", text, got, want)
		}
	}
}
