package disk

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Credential is the name of the key among the credentials that systemd gives a service.
const Credential = "weir-store-key"

// KeySource says where a key comes from.
type KeySource struct {
	File        string // one that is there; "": none is named
	Credentials string // the folder of systemd's credentials, $CREDENTIALS_DIRECTORY; "": there is none
	Generated   string // where a key is made if there is neither; "": none is
	DataDir     string // no key may lie in there: whoever copies it would have both
}

// KeyFileError says that a file cannot be the key.
type KeyFileError struct {
	Path string
	Err  error
}

func (e *KeyFileError) Error() string { return fmt.Sprintf("the key in %s: %v", e.Path, e.Err) }
func (e *KeyFileError) Unwrap() error { return e.Err }

// Key finds the key, or makes it, and tells which file has it; "" if none of them is named. An error is a FileError.
func (s KeySource) Key() (k *Key, path string, err error) {
	switch credential := filepath.Join(s.Credentials, Credential); {
	case s.File != "":
		path = s.File
		k, err = s.read(path)
	case s.Credentials != "" && there(credential):
		path = credential
		k, err = readKey(path) // systemd sees to the one that may read it, by means that the file's mode does not tell
	case s.Generated != "":
		path = s.Generated
		if err = s.outside(path); err == nil && !there(path) {
			err = generate(path)
		}
		if err == nil {
			k, err = s.read(path)
		}
	}
	if err != nil {
		return nil, path, &KeyFileError{path, err}
	}
	return k, path, nil
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// read reads a key that nobody else can.
func (s KeySource) read(path string) (*Key, error) {
	if err := s.outside(path); err != nil {
		return nil, err
	}
	if err := Private(path); err != nil {
		return nil, err
	}
	return readKey(path)
}

// readKey reads a key, and no more of the file than a key may be long.
func readKey(path string) (*Key, error) {
	b, err := ReadFile(path, 4*Size)
	if err != nil {
		return nil, err
	}
	return NewKey(b)
}

// outside reports whether a file lies elsewhere than the data, whatever links there are on the way.
func (s KeySource) outside(path string) error {
	if s.DataDir == "" {
		return nil
	}
	file, err := real(path)
	if err != nil {
		return err
	}
	dir, err := real(s.DataDir)
	if err != nil {
		return err
	}
	if in, err := filepath.Rel(dir, file); err == nil && in != ".." &&
		!strings.HasPrefix(in, ".."+string(filepath.Separator)) {
		return fmt.Errorf("it lies in the folder of the data, %s: a copy of that has both", s.DataDir)
	}
	return nil
}

// real is a path without links, as far as it is there.
func real(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	there, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return there, err
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path, nil
	}
	if parent, err = real(parent); err != nil {
		return "", err
	}
	return filepath.Join(parent, filepath.Base(path)), nil
}

// generate makes a key. If two processes do so at once, one of them does.
func generate(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	secret := make([]byte, Size)
	_, _ = rand.Read(secret) // never fails
	if err := WriteNew(path, secret); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
