package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// InUseError says that another process has taken the folder.
type InUseError struct{ Dir string }

func (e *InUseError) Error() string {
	return fmt.Sprintf("folder %s is in use by another process: stop that one, or use another folder", e.Dir)
}

// Lock is a folder that this process has taken.
type Lock struct{ file *os.File }

// Take makes the folder if need be, readable by its owner alone, and takes it: until Release, or until this process ends however
// that may be, nobody else can. The error is an InUseError if somebody has it.
func Take(dir string) (*Lock, error) {
	if err := Make(dir); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, &InUseError{dir}
		}
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return &Lock{f}, nil
}

// Release gives the folder back.
func (l *Lock) Release() error { return l.file.Close() }
