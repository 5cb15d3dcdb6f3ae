package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weir-edge/weir/impl/disk"
)

// newName is what a database is called until it is whole.
const newName = databaseName + ".new"

// renewBytes is how much of a database is written anew in one transaction, which is in memory until it ends.
const renewBytes = 1 << 20

// mended is what was done with a file before it could be opened.
type mended struct {
	why     error // nil: nothing had to be done
	back    bool  // it is as it was before the last transaction
	rows    int   // that could not be believed, and are gone
	removed bool  // all of it is gone
}

// tableConfig says where a database is and what it may hold.
type tableConfig struct {
	Dir      string
	MaxBytes int64
	// Seal makes what may be kept of the payload of an object that was written in the clear, nil if nothing may. It is nil where all is written in the clear.
	Seal func(key string, payload []byte) []byte
}

// openDatabase opens the database as far as it can be believed, or begins a new one. An error is the system's.
func openDatabase(c tableConfig) (d *database, m mended, err error) {
	if m, err = c.mend(); err != nil {
		return nil, m, err
	}
	path := filepath.Join(c.Dir, databaseName)
	d, err = openFile(path, c.MaxBytes, c.Seal != nil)
	var damage *damagedError
	if errors.As(err, &damage) { // in a way that mend does not know
		m = mended{why: err, removed: true}
		if err := removeFile(path); err != nil {
			return nil, m, err
		}
		d, err = openFile(path, c.MaxBytes, c.Seal != nil)
	}
	return d, m, err
}

// mend makes a file one that bbolt can believe, or removes it.
func (c *tableConfig) mend() (m mended, err error) {
	path := filepath.Join(c.Dir, databaseName)
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
	m.why = errors.New("no page of it makes a transaction count")
	var best *survey
	for i, at := range metas(f) {
		found := look(f, info.Size(), at, nil)
		if i == 0 {
			m.why = found.why()
		}
		if found.whole() {
			best = found
			m.back = i > 0
			break
		}
		if found.err == nil && best == nil {
			best = found
		}
	}
	bare := best != nil && c.Seal != nil && best.about[sealedRow] == nil
	switch {
	case best == nil:
		m.removed = true
		return m, removeFile(path)
	case bare:
		m.why = errors.Join(m.why, errors.New("it is not encrypted, and there is a key now"))
	case m.back:
		return m, stepBack(f, best)
	case m.why == nil:
		return m, nil
	}
	if m.rows, err = c.renew(f, info.Size(), best); err != nil {
		m.removed, m.why = true, errors.Join(m.why, err)
		return m, errors.Join(removeFile(path))
	}
	return m, nil
}

// stepBack makes a file what it was before its last transaction, of which a page is missing: the disk did not write all
// of it before the power was cut. The pages of the one before are still there.
func stepBack(f *os.File, to *survey) error {
	last := to.size // of two pages, the one that is not to's
	if to.at != 0 {
		last = 0
	}
	if _, err := f.WriteAt(make([]byte, pageHead+metaSize), last); err != nil {
		return err
	}
	return f.Sync()
}

// renew writes a new file with the rows of an old one that can be believed, sealed if that is wanted, and tells how
// many cannot.
func (c *tableConfig) renew(f *os.File, size int64, old *survey) (lost int, err error) {
	d, err := openFile(filepath.Join(c.Dir, newName), c.MaxBytes, c.Seal != nil)
	if err != nil {
		return 0, err
	}
	o, copied := newOverlay(), 0
	flush := func() error {
		if err != nil {
			return err
		}
		_, err = d.commit(o)
		o = newOverlay()
		return err
	}
	look(f, size, old.meta, func(t table, key []byte, at int64, size int) {
		if err != nil || !old.believable(t, key) || t == about && (string(key) != freshRow && string(key) != epochRow) {
			return
		}
		row := make([]byte, size)
		if _, err := f.ReadAt(row, at); err != nil {
			return
		}
		payload, ok := decodeRow(t, string(key), row)
		if !ok {
			return
		}
		if t == objects && c.Seal != nil {
			if payload = c.Seal(string(key), payload); payload == nil {
				return
			}
		}
		o.set(t, string(key), encodeRow(t, string(key), payload))
		if copied++; t == about {
			copied--
		}
		if o.bytes > renewBytes {
			_ = flush()
		}
	})
	err = errors.Join(flush(), d.close())
	if err == nil {
		err = disk.Folder(c.Dir).Rename(newName, databaseName)
	}
	if err != nil {
		return 0, fmt.Errorf("it cannot be written anew: %w", err)
	}
	return max(0, old.rows-len(old.about)-copied), nil
}

// removeFile removes a file that cannot be used. It is not kept for anybody to look at: it may hold what should not lie
// about.
func removeFile(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
