package command

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/sim/kind"
)

// TestDevLoadRefuses: what keeps it from loading anything is said before something is built, with what to do.
func TestDevLoadRefuses(t *testing.T) {
	for _, c := range []struct {
		name, docker string // a script in the place of the engine; "": there is none
		elsewhere    bool   // not in a checkout
		code         int
		says         string
	}{
		{"not in a checkout", "exit 0", true, 1, "run this inside its repository"},
		{"no docker", "", false, 1, "there is no docker command: install Docker"},
		{"no engine", "echo Cannot connect >&2; exit 1", false, 1, "start Docker"},
		{"no cluster", "exit 0", false, 2, "there is none: kind create cluster --name harbour"},
		{"another cluster", `[ "$1" = version ] || echo barge`, false, 2, "a cluster of kind: barge"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := t.TempDir()
			if c.docker != "" {
				if err := os.WriteFile(filepath.Join(path, "docker"), []byte("#!/bin/sh\n"+c.docker+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("PATH", path)
			if c.elsewhere {
				t.Chdir(path)
			}
			var out bytes.Buffer
			err := Run(t.Context(), []string{"dev", "load", "--cluster", "harbour"}, &out, io.Discard)
			if err == nil || cli.ExitCode(err) != c.code || !strings.Contains(err.Error(), c.says) || out.Len() > 0 {
				t.Errorf("%v, exit code %d, want %d and %q; %s", err, cli.ExitCode(err), c.code, c.says, &out)
			}
		})
	}
}

// TestDevValues: the values name each image of the chart by its tag, and none by a digest, whatever the chart says.
func TestDevValues(t *testing.T) {
	type values map[string]struct{ Image map[string]string }
	text := devValues([]kind.Made{
		{Repository: "ghcr.io/weir-edge/weir-installer", Tag: "1234567"}, // a number, if nothing says that it is none
		{Repository: "ghcr.io/weir-edge/weir-coordinator", Tag: "v2"},
		{Repository: "ghcr.io/weir-edge/weir-manager", Tag: "v1"}, {Repository: "ghcr.io/weir-edge/weir-gate", Tag: "v1"},
	})
	var got, chart values
	if err := yaml.UnmarshalStrict([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("../../charts/weir/values.yaml")
	if err == nil {
		_ = yaml.Unmarshal(data, &chart) // what has no image is of no interest
	}
	named := 0
	for name, v := range chart {
		if v.Image["repository"] == "" {
			continue
		}
		named++
		is := got[name].Image
		digest, there := is["digest"]
		if is["repository"] != v.Image["repository"] || is["tag"] == "" || !there || digest != "" {
			t.Errorf("%s: %v, want repository %s", name, is, v.Image["repository"])
		}
	}
	if named != 4 || len(got) != named {
		t.Errorf("%d images in the chart (%v), %d in %s", named, err, len(got), text)
	}
}
