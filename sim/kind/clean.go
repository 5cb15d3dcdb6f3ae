package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/weir-edge/weir/sim/docker"
)

// Labels of all that a run creates in the engine beside the nodes. The network is created first and removed last, so
// whoever finds it finds all.
const (
	runLabel  = "weir.dev/run"  // the id of the run, also the name of its cluster and network
	lockLabel = "weir.dev/lock" // a file that is locked as long as the run lives
)

// takeLock makes a file that is locked until it is closed or this process ends, however it does.
func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("take lock: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("take lock %s: %w", path, err), f.Close())
	}
	return f, nil
}

// locked reports whether a process holds the lock. A dead one's file is gone, with its other files, or free.
func locked(path string) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// Clean removes what runs left in the Docker engine whose process is dead: clusters, containers, volumes, networks.
// Runs that live are left alone.
func Clean(ctx context.Context, progress func(string)) error {
	if err := docker.Ping(ctx); err != nil {
		return err
	}
	networks, err := docker.Networks(ctx, lockLabel)
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range networks {
		id := n.Labels[runLabel]
		live, err := locked(n.Labels[lockLabel])
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("whether run %s lives: %w", id, err))
		case live:
			progress("run " + id + " lives: left alone")
		default:
			err := remove(ctx, id, n)
			errs = append(errs, err)
			if err == nil {
				progress("run " + id + " removed")
			}
		}
	}
	return errors.Join(errs...)
}

// remove removes a cluster and everything around it.
func remove(ctx context.Context, id string, n *docker.Network) error {
	errs := []error{provider().Delete(id, os.DevNull)}
	boxes, err := docker.Containers(ctx, runLabel, id)
	errs = append(errs, err)
	for _, b := range boxes {
		errs = append(errs, b.Remove(ctx))
	}
	images, err := docker.Run(ctx, "image", "ls", "--filter", "reference="+imagesOf(id)+"/*", "--format",
		"{{.Repository}}:{{.Tag}}")
	errs = append(errs, err)
	for _, image := range strings.Fields(images) {
		_, err := docker.Run(ctx, "rmi", image)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove run %s: %w; try again: weir clean", id, err)
	}
	return n.Remove(ctx)
}
