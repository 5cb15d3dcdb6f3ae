package table

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
)

// FileName is what the file is called in its folder.
const (
	FileName = "cache.db"
	// allocSize is by how much the file grows at once.
	allocSize = 256 << 10
)

// ErrFull says that the file must not grow any more.
var ErrFull = errors.New("the store has its full size")

// DamagedError says that the file cannot be used.
type DamagedError struct{ err error }

func (e *DamagedError) Error() string { return "it is damaged: " + e.err.Error() }
func (e *DamagedError) Unwrap() error { return e.err }

// Database is the file. bbolt trusts what it reads: a damaged page makes it panic, or fault where the file is shorter
// than it should be. Each call is guarded; a DamagedError means that the file should be set aside.
type Database struct {
	bolt *bbolt.DB
	path string
	file *os.File
	sums digest // of what the file has; who writes holds it
	// broken: bbolt panicked. It may hold its locks since, and its own Close would wait for them for ever.
	broken atomic.Bool
}

// openFile opens a file that mend has seen, or makes one. sealed: no object will be written in the clear.
func openFile(path string, maxBytes int64, sealed bool) (*Database, error) {
	d := &Database{path: path}
	options := &bbolt.Options{
		Timeout: 2 * time.Second, FreelistType: bbolt.FreelistMapType, MaxSize: int(maxBytes),
		InitialMmapSize: int(maxBytes), // so that no write waits for reads to end
		OpenFile: func(name string, flag int, mode os.FileMode) (f *os.File, err error) {
			f, err = os.OpenFile(name, flag|syscall.O_NOFOLLOW, mode)
			d.file = f
			return f, err
		},
	}
	err := d.guarded(func() (err error) {
		if d.bolt, err = bbolt.Open(d.path, 0o600, options); err != nil {
			return err
		}
		d.bolt.AllocSize = allocSize
		return d.begin(sealed)
	})
	if err == nil {
		return d, nil
	}
	_ = d.Close()
	// What is not the system's fault, nor another process's, is the file's.
	var damage *DamagedError
	var errno syscall.Errno
	if errors.As(err, &damage) || errors.As(err, &errno) || errors.Is(err, bbolterrors.ErrTimeout) {
		return nil, err
	}
	return nil, &DamagedError{err}
}

// begin reads the sums of the rows. A new file gets its tables.
func (d *Database) begin(sealed bool) error {
	known, bare := false, true
	err := d.bolt.View(func(tx *bbolt.Tx) (err error) {
		b := tx.Bucket([]byte(KindNames[About]))
		if b == nil {
			return nil
		}
		known, bare = true, b.Get([]byte(sealedRow)) == nil
		row, ok := Decode(About, digestRow, b.Get([]byte(digestRow)))
		if !ok {
			return &DamagedError{errors.New("the sums of its rows are damaged")}
		}
		d.sums, err = parseDigest(row)
		return err
	})
	if err != nil || known && bare == !sealed {
		return err
	}
	return d.update(func(tx *bbolt.Tx, _ *digest) error {
		for _, name := range KindNames {
			if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
				return err
			}
		}
		b := tx.Bucket([]byte(KindNames[About]))
		if !sealed { // from now on
			return errors.Join(b.Put([]byte(FormatRow), []byte(format)), b.Delete([]byte(sealedRow)))
		}
		return errors.Join(b.Put([]byte(FormatRow), []byte(format)), b.Put([]byte(sealedRow), Encode(About, sealedRow, nil)))
	})
}

// update makes a transaction, to which the sums of the rows belong.
func (d *Database) update(f func(*bbolt.Tx, *digest) error) error {
	sums := d.sums
	err := d.bolt.Update(func(tx *bbolt.Tx) error {
		if err := f(tx, &sums); err != nil {
			return err
		}
		sums.tx = uint64(tx.ID())
		return tx.Bucket([]byte(KindNames[About])).Put([]byte(digestRow), Encode(About, digestRow, sums.encode()))
	})
	if err == nil {
		d.sums = sums
	}
	return err
}

// guarded turns what bbolt does with a damaged file into a damagedError.
func (d *Database) guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			d.broken.Store(true)
			err = &DamagedError{fmt.Errorf("%v", r)}
		}
	}()
	return f()
}

// Close gives the file back. After a panic its mapping stays until the process ends; the file is set aside.
func (d *Database) Close() error {
	if d.bolt != nil && !d.broken.Load() {
		if err := d.guarded(d.bolt.Close); !d.broken.Load() {
			return err
		}
	}
	if d.file == nil {
		return nil
	}
	return d.file.Close()
}

// Get gives a row, nil if there is none. d may be nil: then there is nothing.
func (d *Database) Get(t Kind, key string) (row []byte, err error) {
	err = d.view(t, func(b *bbolt.Bucket) error {
		row = bytes.Clone(b.Get([]byte(key)))
		return nil
	})
	return row, err
}

// Walk reads, in order, the rows of which the key begins with prefix, from a key on, until f has enough. What f is
// given is valid only inside it. d may be nil.
func (d *Database) Walk(t Kind, prefix, from string, f func(key string, row []byte) (more bool)) error {
	return d.view(t, func(b *bbolt.Bucket) error {
		c, last := b.Cursor(), ""
		for k, row := c.Seek([]byte(from)); k != nil && bytes.HasPrefix(k, []byte(prefix)); k, row = c.Next() {
			key := string(k)
			if len(k) > bbolt.MaxKeySize || key <= last && last != "" {
				return &DamagedError{errors.New("keys are not in order")} // bbolt does not look
			}
			if last = key; !f(key, row) {
				return nil
			}
		}
		return nil
	})
}

func (d *Database) view(t Kind, f func(*bbolt.Bucket) error) error {
	if d == nil {
		return nil
	}
	return d.guarded(func() error {
		return d.bolt.View(func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte(KindNames[t]))
			if b == nil {
				return &DamagedError{fmt.Errorf("table %s is not there", KindNames[t])}
			}
			return f(b)
		})
	})
}

// Commit makes changes durable, all or none of them, and tells how many bytes that took. Rows that bbolt does not take
// are left out: one that cannot be written must not keep all others from the disk. ErrFull: nothing was changed. After
// any other error the file must be opened again: bbolt's memory and the disk may differ.
func (d *Database) Commit(o *Overlay) (done Committed, err error) {
	if d == nil {
		return done, errors.New("there is no database")
	}
	err = d.guarded(func() error {
		return d.update(func(tx *bbolt.Tx, sums *digest) error {
			tx.OnCommit(func() {
				stats := tx.Stats()
				done.Bytes = stats.GetPageAlloc() + int64(os.Getpagesize()) // and the page that makes it count
			})
			return fill(tx, o, sums, &done)
		})
	})
	if errors.Is(err, bbolterrors.ErrMaxSizeReached) ||
		err != nil && strings.Contains(err.Error(), bbolterrors.ErrMaxSizeReached.Error()) {
		err = ErrFull
	}
	return done, err
}

// Committed is what became of a commit.
type Committed struct {
	Bytes   int64
	Refused []Place // rows that were left out
}

func fill(tx *bbolt.Tx, o *Overlay, sums *digest, done *Committed) error {
	for t, rows := range o.Rows {
		b := tx.Bucket([]byte(KindNames[t]))
		if b == nil {
			return &DamagedError{fmt.Errorf("table %s is not there", KindNames[t])}
		}
		for _, k := range slices.Sorted(maps.Keys(rows)) {
			key, row := []byte(k), rows[k]
			old := b.Get(key)
			sums.change(Kind(t), key, old, row)
			var err error
			if row == nil {
				err = b.Delete(key)
			} else {
				err = b.Put(key, row)
			}
			if errors.Is(err, bbolterrors.ErrKeyTooLarge) || errors.Is(err, bbolterrors.ErrKeyRequired) ||
				errors.Is(err, bbolterrors.ErrValueTooLarge) {
				sums.change(Kind(t), key, row, nil)
				done.Refused = append(done.Refused, Place{Kind(t), k})
				continue
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Size is what the file has, and how much of that is in use.
func (d *Database) Size() (file, used int64) {
	_ = d.guarded(func() error {
		return d.bolt.View(func(tx *bbolt.Tx) error { file = tx.Size(); return nil })
	})
	s := d.bolt.Stats()
	return file, file - int64(s.FreePageN+s.PendingPageN)*int64(os.Getpagesize())
}
