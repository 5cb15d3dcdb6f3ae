package runtime

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
	"github.com/weir-edge/weir/sim/proc/gobuild"
)

const (
	appCommand = "app"
	appOnNode  = "/usr/local/bin/weir-app"
)

// LoadApp builds AppImage from kind/app and gives it to all nodes of pools, and its command to the nodes themselves.
func (s *kindSite) LoadApp(ctx context.Context) error {
	if err := s.loadApp(ctx); err != nil {
		return fmt.Errorf("load the image of the pods: %w", err)
	}
	return nil
}

func (s *kindSite) loadApp(ctx context.Context) error {
	root, err := gobuild.Root("")
	if err != nil {
		return err
	}
	dir, err := s.spawner.Scratch(appCommand)
	if err != nil {
		return err
	}
	if err := gobuild.Run(ctx, s.spawner, gobuild.Spec{Name: appCommand, Dir: root, Packages: []string{"./kind/app"}, Output: dir, LDFlags: "-s -w"}, s.progress); err != nil {
		return err
	}
	tree, archive := filepath.Join(dir, "tree.tar"), filepath.Join(dir, "image.tar")
	if out, err := exec.CommandContext(ctx, "tar", "-cf", tree, "-C", dir, appCommand).CombinedOutput(); err != nil {
		return fmt.Errorf("tar: %w: %s", err, out)
	}
	// In the engine it has a name of this run: another one may be doing the same.
	name := "localhost/weir-app:" + s.run.ID
	if _, err := docker.Run(ctx, "import", "-c", `ENTRYPOINT ["/`+appCommand+`"]`, tree, name); err != nil {
		return err
	}
	_, err = docker.Run(ctx, "save", "-o", archive, name)
	if _, gone := docker.Run(context.WithoutCancel(ctx), "rmi", name); err != nil || gone != nil {
		return errors.Join(err, gone)
	}
	return s.each(ctx, func(ctx context.Context, m *machine) error {
		if m == s.control {
			return nil
		}
		if err := m.give(ctx, archive, "ctr", "--namespace=k8s.io", "images", "import", "--label=io.cri-containerd.image=managed", "-"); err != nil {
			return err
		}
		if _, err := m.Exec(ctx, "ctr", "--namespace=k8s.io", "images", "tag", name, AppImage); err != nil {
			return err
		}
		return m.give(ctx, filepath.Join(dir, appCommand), "install", "-m", "755", "/dev/stdin", appOnNode)
	})
}

// give runs a command in the machine that reads a file of this one.
func (m *machine) give(ctx context.Context, path string, command ...string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return m.Feed(ctx, f, command...)
}

// Call implements Callers. The node's kube-proxy leads each call to a pod.
func (s *kindSite) Call(ctx context.Context, node, url string, every, patience time.Duration, told func(error)) error {
	m := s.byNode[node]
	if m == nil {
		return fmt.Errorf("there is no node %q", node)
	}
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
	err := m.Follow(ctx, in, appOnNode, "call", every.String(), patience.String(), url)
	_ = in.Close()
	<-done
	if err != nil && ctx.Err() == nil { // else it was asked to end
		return err
	}
	return nil
}
