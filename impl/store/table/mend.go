package table

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weir-edge/weir/impl/disk"
)

// newName is what a database is called until it is whole.
const newName = FileName + ".new"

// renewBytes is how much of a database is rewritten in one transaction, which is in memory until it ends.
const renewBytes = 1 << 20

// Mended is what was done with a file before it could be opened.
type Mended struct {
	Why     error // nil: nothing had to be done
	Back    bool  // it is as it was before the last transaction
	Rows    int   // that could not be believed, and are gone
	Removed bool  // all of it is gone, or put aside
	// the file where it is, which another version of Weir has written and will find again; "": it was not put aside.
	Aside string
	Found bool // this version's own was put aside before, and counts again
}

// Config says where a database is and what it may hold.
type Config struct {
	Dir      string
	MaxBytes int64
	// Seal makes what may be kept of the payload of an object that was written in the clear, nil if nothing may. It is nil
	// where all is written in the clear.
	Seal func(key string, payload []byte) []byte
}

// Open opens the database as far as it can be believed, or begins a new one. An error is the system's.
func Open(c Config) (d *Database, m Mended, err error) {
	if m, err = c.mend(); err != nil {
		return nil, m, err
	}
	path := filepath.Join(c.Dir, FileName)
	d, err = openFile(path, c.MaxBytes, c.Seal != nil)
	var damage *DamagedError
	if errors.As(err, &damage) { // in a way that mend does not know
		m = Mended{Why: err, Removed: true}
		if err := Remove(path); err != nil {
			return nil, m, err
		}
		d, err = openFile(path, c.MaxBytes, c.Seal != nil)
	}
	return d, m, err
}

// mend makes a file one that bbolt can believe, or removes it.
func (c *Config) mend() (m Mended, err error) {
	path := filepath.Join(c.Dir, FileName)
	_ = os.Remove(filepath.Join(c.Dir, newName)) // of a process that was killed
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return m, err
	}
	m.Why = errors.New("no page of it makes a transaction count")
	var best *survey
	var other *formatError
	for i, at := range metas(f) {
		found := look(f, info.Size(), at, nil)
		if i == 0 {
			m.Why = found.why()
			errors.As(found.err, &other)
		}
		if found.whole() {
			best = found
			m.Back = i > 0
			break
		}
		if found.err == nil && best == nil {
			best = found
		}
	}
	bare := best != nil && c.Seal != nil && best.about[sealedRow] == nil
	switch {
	case best == nil && other != nil && other.file() != "":
		return c.exchange(m, other)
	case best == nil:
		m.Removed = true
		return m, Remove(path)
	case bare:
		m.Why = errors.Join(m.Why, errors.New("it is not encrypted, and there is a key now"))
	case m.Back:
		return m, stepBack(f, best)
	case m.Why == nil:
		return m, nil
	}
	if m.Rows, err = c.renew(f, info.Size(), best); err != nil {
		m.Removed, m.Why = true, errors.Join(m.Why, err)
		return m, errors.Join(Remove(path))
	}
	return m, nil
}

// exchange puts aside what another version of Weir has written, who goes on with it when it is started again, and
// brings this version's own back if it was put aside.
func (c *Config) exchange(m Mended, other *formatError) (Mended, error) {
	aside, own, path := filepath.Join(c.Dir, other.file()), filepath.Join(c.Dir, (&formatError{format}).file()),
		filepath.Join(c.Dir, FileName)
	if err := os.Rename(path, aside); err != nil {
		return m, err
	}
	err := os.Rename(own, path)
	if errors.Is(err, fs.ErrNotExist) {
		return Mended{Why: m.Why, Removed: true, Aside: aside}, nil
	}
	if err != nil {
		return m, err
	}
	found, err := c.mend()
	found.Why, found.Aside, found.Found = errors.Join(m.Why, found.Why), aside, true
	return found, err
}

// stepBack makes a file what it was before its last transaction, of which a page is missing: the disk did not write all
// of it before the power was cut. The pages of the one before are still there.
func stepBack(f *os.File, to *survey) error {
	last := to.size // of two pages, the one that is not to's
	if to.at != 0 {
		last = 0
	}
	if _, err := f.WriteAt(make([]byte, PageHead+MetaSize), last); err != nil {
		return err
	}
	return f.Sync()
}

// renew writes a new file with the rows of an old one that can be believed, sealed if that is wanted, and tells how
// many cannot.
func (c *Config) renew(f *os.File, size int64, old *survey) (lost int, err error) {
	d, err := openFile(filepath.Join(c.Dir, newName), c.MaxBytes, c.Seal != nil)
	if err != nil {
		return 0, err
	}
	o, copied := NewOverlay(), 0
	flush := func() error {
		if err != nil {
			return err
		}
		_, err = d.Commit(o)
		o = NewOverlay()
		return err
	}
	look(f, size, old.meta, func(t Kind, key []byte, at int64, size int) {
		if err != nil || !old.believable(t, key) || t == About && (string(key) != FreshRow && string(key) != EpochRow) {
			return
		}
		row := make([]byte, size)
		if _, err := f.ReadAt(row, at); err != nil {
			return
		}
		payload, ok := Decode(t, string(key), row)
		if !ok {
			return
		}
		if t == Objects && c.Seal != nil {
			if payload = c.Seal(string(key), payload); payload == nil {
				return
			}
		}
		o.Set(t, string(key), Encode(t, string(key), payload))
		if copied++; t == About {
			copied--
		}
		if o.Bytes > renewBytes {
			_ = flush()
		}
	})
	err = errors.Join(flush(), d.Close())
	if err == nil {
		err = disk.Folder(c.Dir).Rename(newName, FileName)
	}
	if err != nil {
		return 0, fmt.Errorf("it cannot be rewritten: %w", err)
	}
	return max(0, old.rows-len(old.about)-copied), nil
}

// Remove removes a file that cannot be used. It is not kept for anybody to look at: it may hold what should not lie
// about.
func Remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
