package operator

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Bounds of an archive, before it is compressed.
const (
	maxFile = 2 << 20
	maxAll  = 64 << 20
)

// archive is the one that is written.
type archive struct {
	file *os.File
	gzip *gzip.Writer
	tar  *tar.Writer
	name string // of the folder that all is in
	at   time.Time
	size int
	errs bytes.Buffer
}

// createArchive makes the file, which only its owner can read. One that exists is left alone.
func createArchive(path string, at time.Time) (*archive, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	a := &archive{file: f, at: at, gzip: gzip.NewWriter(f), name: strings.TrimSuffix(filepath.Base(path), ".tar.gz")}
	a.tar = tar.NewWriter(a.gzip)
	return a, nil
}

// add puts a text into the archive, without its secrets; what is too long then loses its beginning. A secret that was
// cut before would not look like one.
func (a *archive) add(name string, text []byte) error {
	text = redact(text)
	if cut := len(text) - maxFile; cut > 0 {
		text = append(fmt.Appendf(nil, "(the first %d bytes are left out)\n", cut), text[cut:]...)
	}
	return a.write(name, text)
}

func (a *archive) write(name string, text []byte) error {
	if a.size+len(text) > maxAll {
		a.failed(name, fmt.Errorf("left out: the archive would have more than %d bytes", maxAll))
		return nil
	}
	a.size += len(text)
	header := &tar.Header{
		Name: a.name + "/" + name, Mode: 0o600, Size: int64(len(text)), ModTime: a.at, Format: tar.FormatPAX,
	}
	if err := a.tar.WriteHeader(header); err != nil {
		return err
	}
	_, err := a.tar.Write(text)
	return err
}

// failed tells what could not be read.
func (a *archive) failed(name string, err error) {
	if a.errs.Len() < maxFile {
		fmt.Fprintf(&a.errs, "%s: %s\n", name, strings.Join(strings.Fields(err.Error()), " "))
	}
}

// close ends the archive. Of one that could not be written nothing is left.
func (a *archive) close(why error) error {
	if why == nil {
		why = a.end()
	}
	if why = errors.Join(why, a.file.Close()); why != nil {
		return errors.Join(fmt.Errorf("write %s: %w", a.file.Name(), why), os.Remove(a.file.Name()))
	}
	return nil
}

func (a *archive) end() error {
	if a.errs.Len() > 0 {
		text := redact(a.errs.Bytes())
		a.size -= len(text) // there is always room for it
		if err := a.write("errors.txt", text); err != nil {
			return err
		}
	}
	return errors.Join(a.tar.Close(), a.gzip.Close(), a.file.Sync())
}
