package store

import (
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

// table is a kind of rows.
type table uint8

const (
	objects   table = iota // resource, namespace, name, form → fact
	members                // id of a shape, namespace, name → nothing
	shapes                 // shape → what is known of it
	documents              // name → document
	about                  // of the store itself
	tables
)

var tableNames = [tables]string{"objects", "members", "shapes", "documents", "about"}

const (
	databaseName = "cache.db"
	// allocSize is by how much the file grows at once.
	allocSize = 256 << 10
)

// Rows of table about. formatRow has no checksum of its own.
const (
	freshRow  = "fresh"
	epochRow  = "epoch"
	digestRow = "digest" // see digest
	formatRow = "format" // of all rows
	sealedRow = "sealed" // it is there if no object was ever written in the clear
	format    = "weirstore2"
)

// errFull says that the file must not grow any more.
var errFull = errors.New("the store has its full size")

// damagedError says that the file cannot be used.
type damagedError struct{ err error }

func (e *damagedError) Error() string { return "it is damaged: " + e.err.Error() }
func (e *damagedError) Unwrap() error { return e.err }

// database is the file. bbolt trusts what it reads: a damaged page makes it panic, or fault where the file is shorter than it
// should be. Each call is guarded; a damagedError means that the file should be set aside.
type database struct {
	bolt *bbolt.DB
	path string
	file *os.File
	sums digest // of what the file has; who writes holds it
	// broken: bbolt panicked. It may hold its locks since, and its own Close would wait for them for ever.
	broken atomic.Bool
}

// openFile opens a file that mend has seen, or makes one. sealed: no object will be written in the clear.
func openFile(path string, maxBytes int64, sealed bool) (*database, error) {
	d := &database{path: path}
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
	_ = d.close()
	// What is not the system's fault, nor another process's, is the file's.
	var damage *damagedError
	var errno syscall.Errno
	if errors.As(err, &damage) || errors.As(err, &errno) || errors.Is(err, bbolterrors.ErrTimeout) {
		return nil, err
	}
	return nil, &damagedError{err}
}

// begin reads the sums of the rows. A new file gets its tables.
func (d *database) begin(sealed bool) error {
	known, bare := false, true
	err := d.bolt.View(func(tx *bbolt.Tx) (err error) {
		b := tx.Bucket([]byte(tableNames[about]))
		if b == nil {
			return nil
		}
		known, bare = true, b.Get([]byte(sealedRow)) == nil
		row, ok := decodeRow(about, digestRow, b.Get([]byte(digestRow)))
		if !ok {
			return &damagedError{errors.New("the sums of its rows are damaged")}
		}
		d.sums, err = parseDigest(row)
		return err
	})
	if err != nil || known && bare == !sealed {
		return err
	}
	return d.update(func(tx *bbolt.Tx, _ *digest) error {
		for _, name := range tableNames {
			if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
				return err
			}
		}
		b := tx.Bucket([]byte(tableNames[about]))
		if !sealed { // from now on
			return errors.Join(b.Put([]byte(formatRow), []byte(format)), b.Delete([]byte(sealedRow)))
		}
		return errors.Join(b.Put([]byte(formatRow), []byte(format)), b.Put([]byte(sealedRow), encodeRow(about, sealedRow, nil)))
	})
}

// update makes a transaction, to which the sums of the rows belong.
func (d *database) update(f func(*bbolt.Tx, *digest) error) error {
	sums := d.sums
	err := d.bolt.Update(func(tx *bbolt.Tx) error {
		if err := f(tx, &sums); err != nil {
			return err
		}
		sums.tx = uint64(tx.ID())
		return tx.Bucket([]byte(tableNames[about])).Put([]byte(digestRow), encodeRow(about, digestRow, sums.encode()))
	})
	if err == nil {
		d.sums = sums
	}
	return err
}

// guarded turns what bbolt does with a damaged file into a damagedError.
func (d *database) guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			d.broken.Store(true)
			err = &damagedError{fmt.Errorf("%v", r)}
		}
	}()
	return f()
}

// close gives the file back. After a panic its mapping stays until the process ends; the file is set aside.
func (d *database) close() error {
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

// view reads a table. What it is given is valid only inside f. d may be nil: then there is nothing.
func (d *database) view(t table, f func(*bbolt.Bucket) error) error {
	if d == nil {
		return nil
	}
	return d.guarded(func() error {
		return d.bolt.View(func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte(tableNames[t]))
			if b == nil {
				return &damagedError{fmt.Errorf("table %s is not there", tableNames[t])}
			}
			return f(b)
		})
	})
}

// commit makes changes durable, all or none of them, and tells how many bytes that took. Rows that bbolt does not take
// are left out: one that cannot be written must not keep all others from the disk. errFull: nothing was changed. After
// any other error the file must be opened anew: bbolt's memory and the disk may differ.
func (d *database) commit(o *overlay) (done committed, err error) {
	if d == nil {
		return done, errors.New("there is no database")
	}
	err = d.guarded(func() error {
		return d.update(func(tx *bbolt.Tx, sums *digest) error {
			tx.OnCommit(func() {
				stats := tx.Stats()
				done.bytes = stats.GetPageAlloc() + int64(os.Getpagesize()) // and the page that makes it count
			})
			return fill(tx, o, sums, &done)
		})
	})
	if errors.Is(err, bbolterrors.ErrMaxSizeReached) || err != nil && strings.Contains(err.Error(), bbolterrors.ErrMaxSizeReached.Error()) {
		err = errFull
	}
	return done, err
}

// committed is what became of a commit.
type committed struct {
	bytes   int64
	refused []place // rows that were left out
}

func fill(tx *bbolt.Tx, o *overlay, sums *digest, done *committed) error {
	for t, rows := range o.rows {
		b := tx.Bucket([]byte(tableNames[t]))
		if b == nil {
			return &damagedError{fmt.Errorf("table %s is not there", tableNames[t])}
		}
		for _, k := range slices.Sorted(maps.Keys(rows)) {
			key, row := []byte(k), rows[k]
			old := b.Get(key)
			sums.change(table(t), key, old, row)
			var err error
			if row == nil {
				err = b.Delete(key)
			} else {
				err = b.Put(key, row)
			}
			if errors.Is(err, bbolterrors.ErrKeyTooLarge) || errors.Is(err, bbolterrors.ErrKeyRequired) || errors.Is(err, bbolterrors.ErrValueTooLarge) {
				sums.change(table(t), key, row, nil)
				done.refused = append(done.refused, place{table(t), k})
				continue
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// size is what the file has, and how much of that is in use.
func (d *database) size() (file, used int64) {
	_ = d.guarded(func() error {
		return d.bolt.View(func(tx *bbolt.Tx) error { file = tx.Size(); return nil })
	})
	s := d.bolt.Stats()
	return file, file - int64(s.FreePageN+s.PendingPageN)*int64(os.Getpagesize())
}
