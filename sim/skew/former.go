package skew

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/proc/gobuild"
)

// Former is the revision that this tree works beside: the last one without an installer, whose flags the testbed still
// has. After a release it becomes the release's: put its commit here, run make skew, and mend what fails or say in
// docs/operations.md what does not work together any more.
const Former = "96378da756f02f94944955d41479613fc1fd681d"

// ErrNoHistory says that the clone does not have a revision.
var ErrNoHistory = errors.New("the repository has no such revision: a shallow clone? git fetch --unshallow")

// Build returns Weir's commands of a revision, from the cache or built into it.
func Build(ctx context.Context, s *proc.Spawner, revision string, progress func(string)) (parts.Binaries, error) {
	root, err := gobuild.Root("")
	if err != nil {
		return nil, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("find the cache folder: %w", err)
	}
	commands := []string{parts.HubCommand, parts.CoordinatorCommand, parts.ManagerCommand}
	dir := filepath.Join(cache, "weir", "former", revision+"-"+runtime.GOOS+"-"+runtime.GOARCH)
	if found, ok := in(dir, commands); ok {
		return found, nil
	}
	if err := exec.CommandContext(ctx, "git", "-C", root, "cat-file", "-e", revision+"^{commit}").Run(); err != nil {
		return nil, fmt.Errorf("%s: %w", revision, ErrNoHistory)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), ".build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	source, output := filepath.Join(temp, "source"), filepath.Join(temp, "bin")
	if err := errors.Join(os.Mkdir(source, 0o755), os.Mkdir(output, 0o755), unpack(ctx, root, revision, source)); err !=
		nil {
		return nil, err
	}
	spec := gobuild.Spec{
		Name: "weir of " + revision[:min(12, len(revision))], Dir: source, Output: output, LDFlags: "-s -w",
	}
	for _, c := range commands {
		spec.Packages = append(spec.Packages, "./impl/cmd/"+c)
	}
	if err := gobuild.Run(ctx, s, spec, progress); err != nil {
		return nil, err
	}
	if err := os.Rename(output, dir); err != nil {
		if found, ok := in(dir, commands); ok { // another run was quicker
			return found, nil
		}
		return nil, err
	}
	found, _ := in(dir, commands)
	return found, nil
}

// unpack writes the product's sources of a revision into a folder. The repository's work tree and its list of work
// trees stay as they are.
func unpack(ctx context.Context, root, revision, dir string) error {
	archive := exec.CommandContext(ctx, "git", "-C", root, "archive", "--format=tar", revision, "go.mod", "go.sum", "impl")
	extract := exec.CommandContext(ctx, "tar", "-x", "-C", dir)
	pipe, err := archive.StdoutPipe()
	if err != nil {
		return err
	}
	extract.Stdin = pipe
	var said strings.Builder
	archive.Stderr, extract.Stderr = &said, &said
	if err := extract.Start(); err != nil {
		return err
	}
	if err := errors.Join(archive.Run(), extract.Wait()); err != nil {
		return fmt.Errorf("unpack %s: %w: %s", revision, err, strings.TrimSpace(said.String()))
	}
	return nil
}

// in finds commands in a folder.
func in(dir string, commands []string) (parts.Binaries, bool) {
	found := parts.Binaries{}
	for _, c := range commands {
		path := filepath.Join(dir, c)
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			return nil, false
		}
		found[c] = path
	}
	return found, true
}
