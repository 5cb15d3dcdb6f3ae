package kind

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
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
	made, err := images(ctx, spawner, dir, []string{command}, progress,
		"-repository", imagesOf(r.ID), "-version", "v0.0.0-testbed")
	if err != nil {
		return "", err
	}
	_, err = docker.Run(ctx, "load", "--quiet", "--input", made[0].archive)
	return made[0].Repository + ":" + made[0].Tag, err
}

// Made is an image as a release has it.
type Made struct {
	Repository, Tag string
	archive         string // a file
}

// madeAs is how .ci/release says what it has made.
var madeAs = regexp.MustCompile(`(?m) (\S+/(\S+)):(\S+)@sha256:[0-9a-f]+$`)

// images makes images of Weir's commands as a release has them, of the sources as they are, as archives in a folder.
func images(ctx context.Context, spawner *proc.Spawner, dir string, names []string, progress func(string),
	more ...string) ([]Made, error) {
	root, err := gobuild.Root("")
	if err != nil {
		return nil, err
	}
	tool := gobuild.Spec{Name: "release", Dir: filepath.Join(root, ".ci", "release"), Packages: []string{"."}, Output: dir}
	if err := gobuild.Run(ctx, spawner, tool, progress); err != nil {
		return nil, err
	}
	which := strings.Join(names, ", ")
	progress("making the images of " + which)
	build := exec.CommandContext(ctx, filepath.Join(dir, "release"), append([]string{
		"images", "-root", root, "-out", dir, "-arch", runtime.GOARCH, "-only", strings.Join(names, ","),
	}, more...)...)
	build.Env = append(os.Environ(), gobuild.Env()...)
	out, err := build.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("make the images of %s: %w: %s", which, err, strings.TrimSpace(string(out)))
	}
	var made []Made
	for _, m := range madeAs.FindAllStringSubmatch(string(out), -1) {
		made = append(made, Made{Repository: m[1], Tag: m[3], archive: filepath.Join(dir, m[2]+".tar")})
	}
	if len(made) != len(names) {
		return nil, fmt.Errorf("make the images of %s: it says %q", which, out)
	}
	return made, nil
}

// Clusters are the names of all clusters of kind in the engine, of runs and of anybody else.
func Clusters() ([]string, error) {
	names, err := provider().List()
	if err != nil {
		return nil, fmt.Errorf("list clusters of kind: %w", err)
	}
	slices.Sort(names)
	return names, nil
}

// Load makes images as Released does, and gives them to each machine of a cluster. Another image gets another tag, so
// that the cluster notices. dir is for files.
func Load(ctx context.Context, spawner *proc.Spawner, dir, cluster, version string, names []string,
	progress func(string)) ([]Made, error) {
	made, err := images(ctx, spawner, dir, names, progress, "-version", version, "-by-content")
	if err != nil {
		return nil, err
	}
	nodes, err := provider().ListInternalNodes(cluster)
	if err != nil {
		return nil, fmt.Errorf("list the nodes of cluster %s: %w", cluster, err)
	}
	for _, n := range nodes {
		for _, image := range made {
			progress("loading " + image.Repository + ":" + image.Tag + " into " + n.String())
			if err := LoadImage(ctx, docker.Container(n.String()), image.archive); err != nil {
				return nil, fmt.Errorf("load an image into node %s: %w", n, err)
			}
		}
	}
	return made, nil
}
