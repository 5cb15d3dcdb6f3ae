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

// Take makes the folder if need be, readable by its owner alone, and takes it: until Release, or until this process
// ends however that may be, nobody else can. The error is an InUseError if somebody has it.
func Take(dir string) (*Lock, error) {
	if err := Make(dir); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := TryLock(f); err != nil {
		f.Close()
		if errors.Is(err, ErrLocked) {
			return nil, &InUseError{dir}
		}
		return nil, err
	}
	return &Lock{f}, nil
}

// Release gives the folder back.
func (l *Lock) Release() error { return Unlock(l.file) }

// ErrLocked says that another open file has the lock.
var ErrLocked = errors.New("it is locked")

// TryLock locks an open file or folder, until Unlock or until this process ends however that may be. The error is
// ErrLocked if it is locked already.
func TryLock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return ErrLocked
	case err != nil:
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}

// Unlock closes a file that was locked. A program that is being started has a copy of it for a moment: to close it
// alone would leave it locked until then.
func Unlock(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}
