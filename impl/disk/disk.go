package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
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

// Open implements Disk. It follows no link: nobody but this process makes files here.
func (d Folder) Open(name string) (File, error) {
	f, err := os.OpenFile(d.path(name), os.O_RDWR|syscall.O_NOFOLLOW, 0)
	return osFile{f}, err
}

// Create implements Disk. A file or a link that is there goes: what it led to is not written.
func (d Folder) Create(name string) (File, error) {
	if err := os.Remove(d.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := os.OpenFile(d.path(name), os.O_RDWR|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	return osFile{f}, err
}

// Rename implements Disk.
func (d Folder) Rename(from, to string) error {
	if err := os.Rename(d.path(from), d.path(to)); err != nil {
		return err
	}
	return d.sync()
}

// WriteFile makes a small file with a content, in place of one that exists, at once and durably. Only its owner can
// read it.
func WriteFile(path string, content []byte) error {
	d, name := Folder(filepath.Dir(path)), filepath.Base(path)
	f, err := d.Create(name + ".tmp")
	if err != nil {
		return err
	}
	if err := fill(f, content); err != nil {
		return errors.Join(err, d.Remove(name+".tmp"))
	}
	return d.Rename(name+".tmp", name)
}

// WriteNew is WriteFile of one that does not exist; else its error is fs.ErrExist, and the file is what it was.
func WriteNew(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-*.tmp")
	if err != nil {
		return err
	}
	if err = fill(f, content); err == nil {
		err = os.Link(f.Name(), path)
	}
	return errors.Join(err, os.Remove(f.Name()), Folder(filepath.Dir(path)).sync())
}

// fill writes a file, durably, and closes it.
func fill(f interface {
	io.WriteCloser
	Sync() error
}, content []byte) error {
	_, err := f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// sync makes durable which files there are.
func (d Folder) sync() error {
	dir, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
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
