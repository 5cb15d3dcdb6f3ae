package disk

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
)

// Private tells what is wrong if others than its owner can read a file: a key that they can read is no key. It is no
// error that the file is not there: who reads it finds out.
func Private(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil //nolint:nilerr // see above
	case !info.Mode().IsRegular():
		return errors.New("it is no file")
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("its mode is %04o: others than its owner can read or change it; chmod 600 %s", info.Mode().Perm(),
			path)
	}
	return nil
}

// Make makes a folder if need be, for its owner alone.
func Make(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.Chmod(dir, 0o700) // it may have been there
}

// TellOpen warns of keys of certificates that others than their owner can read. It is no error: in a container's
// volume, or by a group that an operator made for that, it may be meant. Unlike the key of a store they were made by
// others, who chose the mode.
func TellOpen(log *slog.Logger, files ...string) {
	for _, file := range files {
		if err := Private(file); file != "" && err != nil {
			log.Warn("a key is not this process's alone", "file", file, "why", err)
		}
	}
}
