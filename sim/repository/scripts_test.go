package repository

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// script runs a script of .ci, with commands of the network that only note how they were called, and answer what is
// told.
func script(t *testing.T, dir, name string, answers map[string]string, env ...string) (said, called string, err error) {
	t.Helper()
	fakes := t.TempDir()
	log := filepath.Join(fakes, "log")
	for command, answer := range answers {
		text := "#!/bin/bash\necho " + command + " \"$@\" >>'" + log +
			"'\nfor a; do case $a in body=@*) cat \"${a#body=@}\" >>'" + log + "' ;; esac; done\n" + answer
		if err := os.WriteFile(filepath.Join(fakes, command), []byte(text), 0o755); err != nil { //nolint:gosec // it is run
			t.Fatal(err)
		}
	}
	parts := strings.Fields(name)
	c := exec.CommandContext(t.Context(), filepath.Join(dir, ".ci", parts[0]), parts[1:]...)
	c.Dir, c.Env = dir,
		append(append(os.Environ(), "PATH="+fakes+":"+os.Getenv("PATH"), "GITHUB_REPOSITORY=o/n", "GH_TOKEN=secret",
			"GITHUB_ACTOR=me"), env...)
	out, err := c.CombinedOutput()
	calls, _ := os.ReadFile(log)
	return string(out), string(calls), err
}

// copied is a folder with the scripts and files, by name.
func copied(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, ".ci"), os.DirFS(filepath.Join(root(t), ".ci"))); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestComment: a comment is made once, and rewritten afterwards; a stranger's report cannot say where.
func TestComment(t *testing.T) {
	const report = "reports/out/change/report.md"
	text := "<!-- weir report -->\n### Weir report: unchanged\n![what happened](change.svg)\n"
	head := "HEAD=" + strings.Repeat("a", 40)
	const run = "RUN=https://x/run"
	const known = `case "$*" in *"pulls?"*) echo 7 ;; *"comments?"*) echo 41; echo 42 ;; esac`
	for _, test := range []struct {
		name, text, gh string
		env            []string
		ok             bool
		calls, says    string
		never          string
	}{
		{
			"the comment that is there", text, known, []string{head, run}, true,
			"gh api --method PATCH repos/o/n/issues/comments/41", "", "(change.svg)",
		},
		{
			"the first", text, `case "$*" in *"pulls?"*) echo 7 ;; esac`, []string{head, run}, true,
			"gh api --method POST repos/o/n/issues/7/comments", "", "",
		},
		{"its picture", text, known, []string{head, run}, true, "all figures](https://x/run#artifacts)", "", ""},
		{"of its own only", text, known, []string{head, run}, true, `.user.login == "github-actions[bot]"`, "", "POST"},
		{"no report", "", known, []string{head, run}, true, "### Weir report: ? none", "", ""},
		{"no pull request of this head", text, "", []string{head, run}, true, "pulls?", "nothing is posted", "--method"},
		{"another file", "hello\n", known, []string{head, run}, false, "", "marker", "--method"},
		{"a file without end", text + strings.Repeat("x", 60000), known, []string{head, run}, false, "", "60000", "--method"},
		{"no revision", text, known, []string{`HEAD=$(id)`, run}, false, "", "40 digits", "--method"},
	} {
		files := map[string]string{}
		if test.text != "" {
			files[report] = test.text
		}
		said, called, err := script(t, copied(t, files), "comment", map[string]string{"gh": test.gh}, test.env...)
		if (err == nil) != test.ok || !strings.Contains(called, test.calls) || !strings.Contains(said, test.says) ||
			test.never != "" && strings.Contains(called, test.never) {
			t.Errorf("%s: %v: %s\ncalled: %s", test.name, err, said, called)
		}
	}
}

// TestPublish: what was summed up is published, images by their digests, and no token is seen by other processes.
func TestPublish(t *testing.T) {
	files := map[string]string{"bin/release/weir-hub.tar": "hub", "bin/release/weir.yaml": "x"}
	dir := copied(t, files)
	sum := exec.CommandContext(t.Context(), "bash", "-c", "sha256sum weir-hub.tar weir.yaml >SHA256SUMS")
	sum.Dir = filepath.Join(dir, "bin/release")
	if err := sum.Run(); err != nil {
		t.Fatal(err)
	}
	fakes := map[string]string{
		"gh": "",
		"skopeo": `[ "$1" != login ] || [ "$(cat)" = secret ] || exit 1
# It reads its input, as skopeo does: printf in front of it gets a signal otherwise.
while [ $# -gt 0 ]; do [ "$1" != --digestfile ] || printf 'sha256:abc' >"$2"; shift; done`,
	}
	said, called, err := script(t, dir, "publish v0.1.0-rc.1", fakes)
	for _, want := range []string{
		"oci-archive:bin/release/weir-hub.tar docker://ghcr.io/weir-edge/weir-hub:v0.1.0-rc.1",
		"gh release create v0.1.0-rc.1 --repo o/n --verify-tag", "--prerelease", "bin/release/weir.yaml",
	} {
		if err != nil || !strings.Contains(called, want) {
			t.Errorf("%v: %s\ncalled: %s\nwant %s", err, said, called, want)
		}
	}
	if strings.Contains(called, "secret") {
		t.Errorf("the token is on a command line: %s", called)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "bin/published/SHA256SUMS")); err != nil ||
		string(got) != "abc  ghcr.io/weir-edge/weir-hub\n" {
		t.Errorf("digests: %q, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bin/release/weir.yaml"), []byte("another"), 0o644); err != nil {
		t.Fatal(err)
	}
	if said, called, err := script(t, dir, "publish v0.1.0", fakes); err == nil || called != "" {
		t.Errorf("a file that is not what was summed up is published: %s: %s", said, called)
	}
}

// TestLanded: two changes that land at once both get their line into main.
func TestLanded(t *testing.T) {
	origin := t.TempDir()
	git := func(dir string, args ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), "git",
			append([]string{"-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"}, args...)...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	git(origin, "init", "-q", "--bare", "-b", "main")
	attributes, err := os.ReadFile(filepath.Join(root(t), "reports", ".gitattributes"))
	if err != nil {
		t.Fatal(err)
	}
	first := copied(t, map[string]string{
		"reports/history.tsv": "date\trevision\taccepted\n", "reports/.gitattributes": string(attributes),
	})
	git(first, "init", "-q", "-b", "main")
	git(first, "add", "-A")
	git(first, "commit", "-qm", "first")
	git(first, "remote", "add", "origin", origin)
	git(first, "push", "-q", "origin", "main")
	second := t.TempDir()
	git(second, "clone", "-q", origin, ".")
	if said, _, err := script(t, first, "landed", nil); err != nil || !strings.Contains(said, "no new line") {
		t.Errorf("nothing new: %v: %s", err, said)
	}
	for i, dir := range []string{first, second} {
		line := []string{"2026-11-24\tone\t\n", "2026-11-24\ttwo\t\n"}[i]
		f, err := os.OpenFile(filepath.Join(dir, "reports/history.tsv"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(line); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if said, _, err := script(t, dir, "landed", nil); err != nil {
			t.Errorf("%v: %s", err, said)
		}
	}
	if got, want := git(origin, "show", "main:reports/history.tsv"),
		"date\trevision\taccepted\n2026-11-24\tone\t\n2026-11-24\ttwo\t\n"; got != want {
		t.Errorf("main has %q, want %q", got, want)
	}
}
