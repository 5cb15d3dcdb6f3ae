package disk

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Disk is what durable files need of a folder. Names are of files in it.
type Disk interface {
	// Open opens a file that exists, for reading and then for appending.
	Open(name string) (File, error)
	// Create makes an empty file, in place of one that exists.
	Create(name string) (File, error)
	// Rename gives a file another name, in place of one that exists, and makes that durable.
	Rename(from, to string) error
	Remove(name string) error
}

// File is an open file.
type File interface {
	io.ReadWriteCloser
	Size() (int64, error)
	// Cut shortens the file and goes to its end.
	Cut(size int64) error
	// Sync makes durable what was written.
	Sync() error
}

// Folder is a real one.
type Folder string

func (d Folder) path(name string) string { return filepath.Join(string(d), name) }

// Open implements Disk.
func (d Folder) Open(name string) (File, error) {
	f, err := os.OpenFile(d.path(name), os.O_RDWR, 0)
	return osFile{f}, err
}

// Create implements Disk.
func (d Folder) Create(name string) (File, error) {
	f, err := os.OpenFile(d.path(name), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	return osFile{f}, err
}

// Rename implements Disk.
func (d Folder) Rename(from, to string) error {
	if err := os.Rename(d.path(from), d.path(to)); err != nil {
		return err
	}
	dir, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// WriteFile makes a small file with a content, in place of one that exists, at once and durably.
func WriteFile(path string, content []byte) error {
	d, name := Folder(filepath.Dir(path)), filepath.Base(path)
	f, err := d.Create(name + ".tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, d.Remove(name+".tmp"))
	}
	return d.Rename(name+".tmp", name)
}

// Remove implements Disk.
func (d Folder) Remove(name string) error { return os.Remove(d.path(name)) }

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	s, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return s.Size(), nil
}

func (f osFile) Cut(size int64) error {
	if err := f.Truncate(size); err != nil {
		return err
	}
	_, err := f.Seek(size, io.SeekStart)
	return err
}
