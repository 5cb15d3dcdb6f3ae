package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/weir-edge/weir/impl/disk"
)

// Dir is a data directory that this process has locked. The lock ends with the process, however it ends.
type Dir struct {
	path   string
	lock   *os.File
	handle *os.File // of the directory, for short paths
}

// LockedError says that another process uses the directory.
type LockedError struct {
	Path string
	By   string // what the other process wrote into the lock file, its process id
}

func (e *LockedError) Error() string {
	by := "another process"
	if e.By != "" {
		by = "process " + e.By
	}
	return fmt.Sprintf("data directory %s is in use by %s: stop it, or use another directory", e.Path, by)
}

// Lock makes the directory if need be and takes it.
func Lock(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	// etcd's socket asks nobody who they are: the folder is what keeps others of this machine out.
	if err := os.Chmod(path, 0o700); err != nil {
		return nil, err
	}
	d := &Dir{path: path}
	if d.lock, err = os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	if err := disk.TryLock(d.lock); err != nil {
		defer d.lock.Close()
		if !errors.Is(err, disk.ErrLocked) {
			return nil, err
		}
		by, _ := io.ReadAll(io.LimitReader(d.lock, 32))
		return nil, &LockedError{Path: path, By: strings.TrimSpace(string(by))}
	}
	// The holder of the lock is read for the message above only.
	if err := d.lock.Truncate(0); err == nil {
		_, _ = d.lock.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	}
	if d.handle, err = os.Open(path); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Path is the absolute path of the directory.
func (d *Dir) Path() string { return d.path }

// Close gives the directory free.
func (d *Dir) Close() {
	_ = disk.Unlock(d.lock)
	if d.handle != nil {
		d.handle.Close()
	}
}

// maxSocketPath is what fits into sockaddr_un on Linux, with its final zero.
const maxSocketPath = 107

// socket is a path of a socket in the directory that is short enough for the system: a directory may lie deep, but
// there is always a short way to it by way of its handle.
func (d *Dir) socket(name string) (string, error) {
	path := filepath.Join(d.path, name)
	if len(path) <= maxSocketPath {
		return path, nil
	}
	short := fmt.Sprintf("/proc/self/fd/%d/%s", d.handle.Fd(), name)
	if _, err := os.Stat(filepath.Dir(short)); err != nil {
		return "", fmt.Errorf("the path of socket %s is longer than %d bytes, use a shorter data directory: %w", path,
			maxSocketPath, err)
	}
	return short, nil
}
