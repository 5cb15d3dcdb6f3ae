package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// device is a file system of its own on a loop device, whose kernel counts what is written to it: journal, inodes and
// all.
type device struct {
	dir, name string // where it is mounted; loopN
	scratch   string
}

// newDevice makes one. Only root can.
func newDevice(ctx context.Context) (_ *device, err error) {
	scratch, err := os.MkdirTemp("", "weir-device-")
	if err != nil {
		return nil, err
	}
	d := &device{scratch: scratch, dir: filepath.Join(scratch, "mnt")}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(scratch))
		}
	}()
	image := filepath.Join(scratch, "image")
	if err := errors.Join(os.Mkdir(d.dir, 0o700), os.WriteFile(image, nil, 0o600), os.Truncate(image, 256<<20)); err !=
		nil {
		return nil, err
	}
	for _, c := range [][]string{
		{"mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", image},
		{"mount", "-o", "loop,noatime", image, d.dir},
	} {
		if out, err := exec.CommandContext(ctx, c[0], c[1:]...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", c[0], err, bytes.TrimSpace(out))
		}
	}
	out, err := exec.CommandContext(ctx, "findmnt", "-n", "-o", "SOURCE", d.dir).Output()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("findmnt: %w", err), d.unmount())
	}
	d.name = filepath.Base(strings.TrimSpace(string(out)))
	return d, nil
}

func (d *device) unmount() error { return unix.Unmount(d.dir, 0) }

// close gives all of it back.
func (d *device) close() error { return errors.Join(d.unmount(), os.RemoveAll(d.scratch)) }

// written is what was written to the device so far, once everything is.
func (d *device) written() (int64, error) {
	f, err := os.Open(d.dir)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return 0, err
	}
	b, err := os.ReadFile("/sys/block/" + d.name + "/stat")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(b))
	if len(fields) < 7 {
		return 0, fmt.Errorf("/sys/block/%s/stat: %q", d.name, b)
	}
	sectors, err := strconv.ParseInt(fields[6], 10, 64)
	return sectors * 512, err
}
