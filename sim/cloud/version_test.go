package cloud

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/sim/proc/gobuild"
	"github.com/weir-edge/weir/sim/proc/proctest"
)

func TestChoose(t *testing.T) {
	oldest := Versions()[len(Versions())-1]
	for _, c := range []struct{ name, env, want, refused string }{
		{want: Version},
		{name: oldest, want: oldest},
		{env: oldest, want: oldest},
		{name: Version, env: oldest, want: Version},
		{
			name: "v1.20.0", env: oldest, refused: `--kubernetes: "v1.20.0" is not allowed: ` + strings.Join(Versions(), " or "),
		},
		{env: "1.36", refused: VersionEnv + `: "1.36" is not allowed: ` + strings.Join(Versions(), " or ")},
	} {
		t.Setenv(VersionEnv, c.env)
		k, err := Choose(c.name)
		switch {
		case c.refused == "":
			if err != nil || k.String() != c.want {
				t.Errorf("%+v: got %s, %v", c, k, err)
			}
		case err == nil || err.Error() != c.refused || cli.ExitCode(err) != 2:
			t.Errorf("%+v: got %s, %v", c, k, err)
		}
	}
}

// What is not built for a version is refused before anything is built, by anyone who asks.
func TestAVersionSaysWhatItLacks(t *testing.T) {
	oldest := Versions()[len(Versions())-1]
	t.Setenv(VersionEnv, oldest)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nothing is built when it is not refused
	got, err := Find(ctx, proctest.Spawner(t), func(m string) { t.Error(m) }, HollowNode)
	want := `version of Kubernetes: "` + oldest + `" is not allowed: this needs hollow-node, which is there for ` + Version
	if err == nil || err.Error() != want || cli.ExitCode(err) != 2 {
		t.Errorf("got %v, %v, want %s", got, err, want)
	}
	if Built(t.Context(), HollowNode) {
		t.Error("it is said to be built")
	}
}

// TestVersionsAreThoseThatAreBuilt keeps the versions and their nested modules together.
func TestVersionsAreThoseThatAreBuilt(t *testing.T) {
	root, err := gobuild.Root("")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range versions() {
		data, err := os.ReadFile(filepath.Join(root, k.module, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes ` + regexp.QuoteMeta(k.String()) + `( |$)`).Match(data) {
			t.Errorf("%s/go.mod does not require k8s.io/kubernetes %s", k.module, k)
		}
		staging := strings.Replace(k.String(), "v1.", "v0.", 1)
		for _, m := range regexp.MustCompile(`(?m)^\s*(k8s\.io/\S+) => k8s\.io/\S+ (\S+)$`).FindAllStringSubmatch(
			string(data), -1) {
			if m[2] != staging {
				t.Errorf("%s/go.mod has %s %s, want %s", k.module, m[1], m[2], staging)
			}
		}
	}
	k, err := Choose(Version)
	if got := k.ldflags(); err != nil ||
		!strings.HasSuffix(got,
			"gitVersion=v1.37.1 -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37") {
		t.Errorf("ldflags %s, %v", got, err)
	}
}

// TestTheOldestVersionIsRun: the first version that the chart and `weir check` take is one that is run, and `make
// versions` takes the oldest.
func TestTheOldestVersionIsRun(t *testing.T) {
	root, err := gobuild.Root("")
	if err != nil {
		t.Fatal(err)
	}
	all := versions()
	oldest := all[len(all)-1]
	minor := strings.TrimPrefix(oldest.minor(), "v")
	for path, want := range map[string]string{
		"charts/weir/Chart.yaml":            `kubeVersion: ">=` + minor + `.0-0"`,
		"impl/operator/check/checks.go":     "const least = " + strings.TrimPrefix(minor, "1."),
		"impl/manager/manifests/missing.go": minor + " is the first that does",
		"docs/operations.md":                "Kubernetes " + minor + " or later",
		"Makefile":                          "OLDEST  := " + oldest.String() + "\n",
		".github/workflows/nightly.yaml":    "versions",
		"sim/controlplane/" + filepath.Base(oldest.module) + "/go.mod": "module github.com/weir-edge/weir/" + oldest.module +
			"\n",
	} {
		data, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), want) {
			t.Errorf("%s does not say %q", path, want)
		}
	}
}
