package process

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/weir-edge/weir/impl/disk"
)

const (
	maxFile = 1 << 20 // of a file that is copied
	maxAll  = 8 << 20 // of all of them
	// MaxStandIn bounds what is kept in the stand-in of objects: it takes the memory of the machine.
	MaxStandIn = 16 << 20
)

// DiskFailed reports whether an error is the machine's, not a mistake in what the hub was told: it came without
// anybody's doing, and may go.
func DiskFailed(err error) bool {
	return slices.ContainsFunc([]error{syscall.EROFS, syscall.EIO, syscall.ESTALE, disk.ErrDamaged},
		func(e error) bool { return errors.Is(err, e) })
}

// Place finds where a hub keeps its data, and the key for it, or what stands in for both: what was encrypted by a key
// that cannot be had is not to be replaced.
func (l *Lacks) Place(dir string, key func() (*disk.Key, error)) (in string, k *disk.Key, err error) {
	try := func() (err error) {
		if err = usable(dir); err == nil {
			k, err = key()
		}
		return err
	}
	switch err = try(); {
	case err == nil:
		removed(dir)
		return dir, k, nil
	case !DiskFailed(err) && (usable(dir) == nil || !DiskWorked(dir)):
		return "", nil, err
	}
	why := err
	secret := make([]byte, disk.Size)
	_, _ = rand.Read(secret) // never fails
	if k, err = disk.NewKey(secret); err == nil {
		in, err = folder(dir)
	}
	if err != nil {
		return "", nil, errors.Join(why, err)
	}
	l.Add("--data-dir", why, "what it keeps from now on is in memory, in "+in+
		", and is lost with this machine's power; what it kept before is as it was", try)
	return in, k, nil
}

// usable says why a folder cannot be written; nil: it can, or it is full, which its files bear.
func usable(dir string) error {
	err := disk.Make(dir)
	if err == nil {
		var f *os.File
		if f, err = os.CreateTemp(dir, ".usable-*.tmp"); err == nil {
			err = errors.Join(f.Close(), os.Remove(f.Name()))
		}
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return nil
	}
	return err
}

// DiskWorked reports whether a hub has kept anything in a folder before: what it was told was no mistake then.
func DiskWorked(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "store"))
	return err == nil
}

// bases are where a stand-in may be, in memory if the machine has it: what systemd gives the service, and what all
// machines have.
func bases() []string {
	return slices.DeleteFunc([]string{os.Getenv("RUNTIME_DIRECTORY"), "/run", "/dev/shm", os.TempDir()},
		func(dir string) bool { return dir == "" })
}

// folder makes the stand-in of a folder, for its owner alone, with what small files can be read of it: identities and
// certificates, and who may read. Objects, relays and writes that wait stay where they are. A stand-in of before goes.
func folder(dir string) (string, error) {
	var failed error
	for _, base := range bases() {
		in := filepath.Join(base, nameOf(dir))
		err := os.RemoveAll(in)
		if err == nil {
			err = os.Mkdir(in, 0o700) // what somebody else has put there is not used
		}
		if err == nil {
			copied(dir, in)
			return in, nil
		}
		failed = errors.Join(failed, err)
	}
	return "", fmt.Errorf("no place for a stand-in: %w", failed)
}

// nameOf is the name of the stand-in of a folder.
func nameOf(dir string) string { return fmt.Sprintf("weir-hub-%x", sha256.Sum256([]byte(dir)))[:25] }

// removed removes the stand-in of a folder that can be written again: it has copies of keys.
func removed(dir string) {
	for _, base := range bases() {
		_ = os.RemoveAll(filepath.Join(base, nameOf(dir)))
	}
}

// copied copies what can be read.
func copied(from, to string) {
	left := int64(maxAll)
	_ = filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		name, _ := filepath.Rel(from, path)
		switch {
		case err != nil && e != nil && e.IsDir():
			return filepath.SkipDir
		case err != nil:
			return nil //nolint:nilerr // one that cannot be read is left out
		case e.IsDir() && (name == "store" || name == "relays"):
			return filepath.SkipDir
		case e.IsDir():
			_ = os.MkdirAll(filepath.Join(to, name), 0o700)
			return nil
		case !e.Type().IsRegular() || name == "lock":
			return nil
		}
		text, err := disk.ReadFile(path, int(min(maxFile, left)))
		if err != nil {
			return nil //nolint:nilerr // likewise
		}
		left -= int64(len(text))
		_ = os.WriteFile(filepath.Join(to, name), text, 0o600)
		return nil
	})
}
