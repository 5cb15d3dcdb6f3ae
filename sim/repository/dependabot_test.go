package repository

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// byHand are folders whose modules name Kubernetes, or parts of a node image, at one version on purpose: a person moves
// them together.
var byHand = []string{"sim/controlplane", "kind/node-image"}

// TestDependabot: each module of Go is looked after, but for those that are moved by hand.
func TestDependabot(t *testing.T) {
	dir := root(t)
	data, err := os.ReadFile(filepath.Join(dir, ".github", "dependabot.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Updates []struct {
			Ecosystem   string   `yaml:"package-ecosystem"`
			Directories []string `yaml:"directories"`
		} `yaml:"updates"`
	}
	if err := yaml.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	var has []string
	for _, u := range config.Updates {
		if u.Ecosystem == "gomod" {
			has = append(has, u.Directories...)
		}
	}
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard",
		"go.mod", "*/go.mod")
	list.Dir = dir
	out, err := list.Output()
	if err != nil {
		t.Skipf("no git here: %v", err)
	}
	var want []string
	for _, file := range strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }) {
		folder := path.Dir(file)
		if !slices.ContainsFunc(byHand, func(h string) bool { return strings.HasPrefix(folder+"/", h+"/") }) {
			want = append(want, path.Join("/", folder))
		}
	}
	slices.Sort(want)
	if slices.Sort(has); !slices.Equal(has, want) {
		t.Errorf(".github/dependabot.yml looks after the modules %v, want %v", has, want)
	}
}
