package peer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-edge/weir/impl/cli"
)

const plain = "name: other\nbinary: sh\nserve: https://{{.Address}}:{{.Port}}\nhealth: " +
	"http://{{.Address}}:10267/healthz\n"

func load(t *testing.T, text string) (*Profile, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "profile.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(path)
}

// TestBadProfiles: each mistake is one line that names the field, the value and what is allowed, and exit code 2.
func TestBadProfiles(t *testing.T) {
	with := func(more string) string { return plain + more }
	without := func(field, instead string) string {
		var kept []string
		for line := range strings.Lines(plain) {
			if !strings.HasPrefix(line, field+":") {
				kept = append(kept, line)
			}
		}
		return strings.Join(kept, "") + instead
	}
	for _, c := range []struct {
		text string
		says []string
	}{
		{"", []string{"name", "for reports"}},
		{without("name", ""), []string{"name", "for reports"}},
		{without("name", "name: Other Hub"), []string{"name", "Other Hub", "for reports"}},
		{without("name", "name: direct"), []string{"name", "direct", "column"}},
		{without("binary", ""), []string{"binary", "PATH"}},
		{without("binary", "binary: no-such-program"), []string{"binary", "no-such-program", "PATH"}},
		{without("binary", "binary: ./profile.yaml"), []string{"binary", "permission denied"}},
		{without("serve", ""), []string{"serve", "URL"}},
		{without("serve", "serve: ftp://{{.Address}}"), []string{"serve", "ftp", "https"}},
		{without("serve", "serve: '{{.Address}}:10268'"), []string{"serve", "{{.Address}}:10268", "https"}},
		{without("health", ""), []string{"health", "URL"}},
		{with("flags: [x]"), []string{"unknown field", "flags", "fields name, about, binary, args", "docs/peers.md"}},
		{with("name: again"), []string{"already set"}},
		{with("args: [a, '--node={{.Nod}}']"), []string{"args[1]", "--node={{.Nod}}", "{{.Node}}"}},
		{with("args: ['{{.Node']"), []string{"args[0]", "{{.Node"}},
		{with("args: ['" + strings.Repeat("x", 5000) + "']"), []string{"args[0]", "5000 bytes", "4096"}},
		{with("args: [" + strings.Repeat("x,", 101) + "]"), []string{"args", "101 long", "100"}},
		{
			with("args: ['{{range .Nodes}}" + strings.Repeat("{{printf \"%999999d\" 1}}", 2) + "{{end}}']"),
			[]string{"args[0]", "more than 1048576 bytes"},
		},
		{with("files: [{path: x, text: '{{read \"/dev/zero\"}}'}]"), []string{"files[0].text", "/dev/zero has more than"}},
		{with("env: {A-B: c}"), []string{"env", "A-B", "letters"}},
		{with("env: {A: '{{.B}}'}"), []string{"env.A", "{{.B}}"}},
		{with("files: [{path: ../x, text: y}]"), []string{"files[0].path", "../x", "{{.Data}}"}},
		{with("files: [{path: '{{.Data}}/x', text: y}]"), []string{"files[0].path", "{{.Data}}"}},
		{with("files: [{path: x, text: '{{read \"/no/such\"}}'}]"), []string{"files[0].text", "no such file"}},
		{with("objects: [x.yaml]"), []string{"objects[0]", "x.yaml", "no such file"}},
		{with("objects: [../x.yaml]"), []string{"objects[0]", "../x.yaml", "beside"}},
		{with("identity: {groups: [x]}"), []string{"identity.user"}},
		{with("identity: {user: x, groups: ['']}"), []string{"identity[1]"}},
		{with("trust: ca.crt"), []string{"trust", "ca.crt", "absolute"}},
		{with("ready: 11m"), []string{"ready", "11m", "10m"}},
		{with("ready: 10ms"), []string{"ready", "10ms", "1s"}},
		{with("ready: soon"), []string{"soon"}},
		{with("about: " + strings.Repeat("x", 501)), []string{"about", "501 long", "500"}},
		{strings.Repeat("#", maxFile+1), []string{"65536"}},
	} {
		_, err := load(t, c.text)
		var usage *cli.UsageError
		if !errors.As(err, &usage) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.80q: %v: want one line of a usage error", c.text, err)
			continue
		}
		for _, s := range c.says {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%.80q: %v: does not say %q", c.text, err, s)
			}
		}
	}
	if _, err := Load(t.TempDir()); cli.ExitCode(err) != 2 {
		t.Errorf("a folder: %v", err)
	}
	if _, err := Load("/no/such"); cli.ExitCode(err) != 2 || !strings.Contains(err.Error(), "--peer") {
		t.Errorf("no file: %v", err)
	}
}

func TestDefaults(t *testing.T) {
	p, err := load(t, plain)
	if err != nil {
		t.Fatal(err)
	}
	user, groups, err := p.User(Machine{Node: "edge-1"})
	if err != nil || user != "system:node:edge-1" || len(groups) != 1 || groups[0] != "system:nodes" {
		t.Errorf("identity %s of %q: %v", user, groups, err)
	}
	if p.Trust != "{{.CA}}" || p.Ready.Duration != usualReady || len(p.Needs()) != 0 {
		t.Errorf("%+v", p)
	}
}

// TestIncluded: the profiles that come with the repository can be read, but for their programs.
func TestIncluded(t *testing.T) {
	files, err := filepath.Glob("../peers/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		if strings.HasSuffix(f, "-objects.yaml") {
			continue
		}
		n++
		p, err := Load(f)
		var usage *cli.UsageError
		if errors.As(err, &usage) && strings.HasSuffix(usage.Field, ": binary") { // it is built by make build, or by the user
			continue
		}
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := p.Manifests(example); err != nil {
			t.Error(err)
		}
	}
	if n < 2 {
		t.Errorf("%d profiles", n)
	}
}

// FuzzLoad: no profile panics.
func FuzzLoad(f *testing.F) {
	f.Add(plain)
	f.Add(plain + "args: ['{{range .Nodes}}{{.Node}}{{end}}']\nfiles: [{path: x, text: '{{read .CA}}'}]\nidentity: " +
		"{user: a, groups: [b]}")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "read") && !strings.Contains(text, "read .CA") {
			t.Skip() // of any file of this machine, a device among them
		}
		if _, err := load(t, text); err != nil && cli.ExitCode(err) != 2 {
			t.Error(err)
		}
	})
}
