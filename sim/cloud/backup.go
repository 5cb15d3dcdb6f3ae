package cloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Backup is a copy of all that etcd held at a moment. There is one at a time; it goes with the Spawner's scratch
// directory.
type Backup struct {
	dir string
}

// Backup copies what etcd holds while it runs. As after a power cut, etcd takes up the copy at the last whole entry of
// its log.
func (c *Cloud) Backup(ctx context.Context) (*Backup, error) {
	c.starting.Lock()
	defer c.starting.Unlock()
	if c.etcd.run == nil {
		return nil, errors.New("back up etcd: it does not run")
	}
	dir, err := c.config.Spawner.Scratch("backup")
	if err != nil {
		return nil, err
	}
	b := &Backup{dir: filepath.Join(dir, "data")}
	if err := os.RemoveAll(b.dir); err != nil {
		return nil, fmt.Errorf("back up etcd: %w", err)
	}
	if err := c.etcd.copyTo(ctx, b.dir); err != nil {
		return nil, fmt.Errorf("back up etcd: %w", err)
	}
	return b, nil
}

// Restore puts a backup in the place of what etcd holds, and returns the revision that etcd is at then. The apiserver
// must not run. A backup can be restored once.
func (c *Cloud) Restore(ctx context.Context, b *Backup) (revision uint64, err error) {
	c.starting.Lock()
	defer c.starting.Unlock()
	if p := c.APIServer(); p != nil && p.Running() {
		return 0, errors.New("restore etcd: kube-apiserver is running")
	}
	c.etcd.stop()
	data := filepath.Join(c.etcd.dir, "data")
	if err := os.RemoveAll(data); err != nil {
		return 0, fmt.Errorf("restore etcd: %w", err)
	}
	if err := os.Rename(b.dir, data); err != nil {
		return 0, fmt.Errorf("restore etcd: %w", err)
	}
	if err := c.etcd.start(ctx); err != nil {
		return 0, fmt.Errorf("restore etcd: %w", err)
	}
	return uint64(c.etcd.run.Server.KV().Rev()), nil
}

// copyTo copies the data of a running etcd. The order matters: a database or an old snapshot may be older than the log
// that is replayed over it, and never newer.
func (e *etcd) copyTo(ctx context.Context, dir string) error {
	from, to := filepath.Join(e.dir, "data", "member"), filepath.Join(dir, "member")
	for _, sub := range []string{"snap", "wal"} {
		if err := os.MkdirAll(filepath.Join(to, sub), 0o700); err != nil {
			return err
		}
	}
	if err := copyFiles(filepath.Join(from, "snap"), filepath.Join(to, "snap"), ".snap"); err != nil {
		return err
	}
	if err := e.copyDatabase(filepath.Join(to, "snap", "db")); err != nil {
		return err
	}
	if err := copyFiles(filepath.Join(from, "wal"), filepath.Join(to, "wal"), ".wal"); err != nil {
		return err
	}
	return ctx.Err()
}

func (e *etcd) copyDatabase(path string) error {
	snapshot := e.run.Server.Backend().Snapshot()
	f, err := os.Create(path)
	if err != nil {
		return errors.Join(err, snapshot.Close())
	}
	_, err = snapshot.WriteTo(f)
	return errors.Join(err, snapshot.Close(), f.Close())
}

func copyFiles(from, to, suffix string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), suffix) {
			continue
		}
		if err := copyFile(filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
