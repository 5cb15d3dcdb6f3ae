package kind

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/weir-edge/weir/sim/docker"
	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/proc/gobuild"
)

// imagesOf is what the names of a run's images begin with.
func imagesOf(id string) string { return "localhost/" + id }

// Released makes the image of one of Weir's commands as a release has it, of the sources as they are, and loads it into
// the engine: its name there. dir is for files.
func (r *Run) Released(ctx context.Context, spawner *proc.Spawner, dir, command string, progress func(string)) (
	string, error) {
	root, err := gobuild.Root("")
	if err != nil {
		return "", err
	}
	tool := gobuild.Spec{Name: "release", Dir: filepath.Join(root, ".ci", "release"), Packages: []string{"."}, Output: dir}
	if err := gobuild.Run(ctx, spawner, tool, progress); err != nil {
		return "", err
	}
	progress("making the image of " + command)
	const version = "v0.0.0-testbed"
	build := exec.CommandContext(ctx, filepath.Join(dir, "release"), "images", "-root", root, "-out", dir, "-arch",
		runtime.GOARCH,
		"-repository", imagesOf(r.ID), "-version", version, "-only", command)
	build.Env = append(os.Environ(), gobuild.Env()...)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("make the image of %s: %w: %s", command, err, strings.TrimSpace(string(out)))
	}
	_, err = docker.Run(ctx, "load", "--quiet", "--input", filepath.Join(dir, command+".tar"))
	return imagesOf(r.ID) + "/" + command + ":" + version, err
}
