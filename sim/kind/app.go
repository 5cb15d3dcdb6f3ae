package kind

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/weir-edge/weir/sim/docker"
	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/proc/gobuild"
)

const (
	appCommand = "app"
	appOnNode  = "/usr/local/bin/weir-app"
)

// App is what the pods of a run run, kind/app, so that nothing has to be pulled.
type App struct {
	run              *Run
	command, archive string // files
}

// BuildApp builds it in a folder.
func (r *Run) BuildApp(ctx context.Context, spawner *proc.Spawner, dir string, progress func(string)) (App, error) {
	a := App{r, filepath.Join(dir, appCommand), filepath.Join(dir, "image.tar")}
	root, err := gobuild.Root("")
	if err != nil {
		return a, err
	}
	if err := gobuild.Run(ctx, spawner, gobuild.Spec{
		Name: appCommand, Dir: root, Packages: []string{"./kind/app"}, Output: dir, LDFlags: "-s -w",
	}, progress); err != nil {
		return a, err
	}
	return a, Pack(ctx, a.command, a.name(), a.archive)
}

// Pack writes an image that has a static program and nothing else, which it runs, as an archive. The name is the
// image's in the engine meanwhile, and in the archive.
func Pack(ctx context.Context, program, name, archive string) error {
	tree := archive + ".tree"
	if out, err := exec.CommandContext(ctx, "tar", "-cf", tree, "-C", filepath.Dir(program),
		filepath.Base(program)).CombinedOutput(); err != nil {
		return fmt.Errorf("tar: %w: %s", err, out)
	}
	if _, err := docker.Run(ctx, "import", "-c", `ENTRYPOINT ["/`+filepath.Base(program)+`"]`, tree, name); err != nil {
		return err
	}
	_, err := docker.Run(ctx, "save", "-o", archive, name)
	_, gone := docker.Run(context.WithoutCancel(ctx), "rmi", name)
	return errors.Join(err, gone, os.Remove(tree))
}

// name is that of its image in the engine, of this run: another one may be doing the same.
func (a App) name() string { return "localhost/weir-app:" + a.run.ID }

// Load gives a machine the image, by the name that pods call it, and its command.
func (a App) Load(ctx context.Context, m docker.Container, image string) error {
	if err := LoadImage(ctx, m, a.archive); err != nil {
		return err
	}
	if _, err := m.Exec(ctx, "ctr", "--namespace=k8s.io", "images", "tag", a.name(), image); err != nil {
		return err
	}
	return give(ctx, m, a.command, "install", "-m", "755", "/dev/stdin", appOnNode)
}

// LoadImage gives a machine the images of an archive, as `kind load image-archive` does.
func LoadImage(ctx context.Context, m docker.Container, archive string) error {
	return give(ctx, m, archive, "ctr", "--namespace=k8s.io", "images", "import",
		"--label=io.cri-containerd.image=managed", "-")
}

// give runs a command in the machine that reads a file of this one.
func give(ctx context.Context, m docker.Container, path string, command ...string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return m.Feed(ctx, f, command...)
}

// Call calls a URL from a machine that has the App, again and again until ctx ends, each time by a new connection, and
// tells how each call went. as is nothing, or two files of the machine: the authority of the one that answers, and the
// caller's certificate with its key.
func Call(ctx context.Context, m docker.Container, url string, every, patience time.Duration, told func(error),
	as ...string) error {
	out, in := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if said := lines.Text(); said != "ok" {
				told(errors.New(said))
			} else {
				told(nil)
			}
		}
		_, _ = io.Copy(io.Discard, out)
	}()
	err := m.Follow(ctx, in, append([]string{appOnNode, "call", every.String(), patience.String(), url}, as...)...)
	_ = in.Close()
	<-done
	if err != nil && ctx.Err() == nil { // else it was asked to end
		return err
	}
	return nil
}
