package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	// formatRow of table about is the format of all rows.
	formatRow = "format"
	format    = "weirstore1"
	// allocSize is by how much the file grows at once.
	allocSize = 256 << 10
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
	// broken: bbolt panicked. It may hold its locks since, and its own Close would wait for them for ever.
	broken atomic.Bool
}

// openDatabase opens the file in dir, or makes one.
func openDatabase(dir string, maxBytes int64) (*database, error) {
	d := &database{path: filepath.Join(dir, databaseName)}
	options := &bbolt.Options{
		Timeout: 2 * time.Second, FreelistType: bbolt.FreelistMapType, MaxSize: int(maxBytes),
		InitialMmapSize: int(maxBytes), // so that no write waits for reads to end
		OpenFile: func(name string, flag int, mode os.FileMode) (f *os.File, err error) {
			f, err = os.OpenFile(name, flag, mode)
			d.file = f
			return f, err
		},
	}
	err := d.guarded(func() (err error) {
		if d.bolt, err = bbolt.Open(d.path, 0o600, options); err != nil {
			return err
		}
		d.bolt.AllocSize = allocSize
		return d.check()
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

// check makes sure that the file is as long as it should be, and of this format. A new one gets its tables.
func (d *database) check() error {
	known := false
	err := d.bolt.View(func(tx *bbolt.Tx) error {
		info, err := os.Stat(d.path)
		if err != nil {
			return err
		}
		if info.Size() < tx.Size() {
			return &damagedError{fmt.Errorf("it has %d bytes and should have %d", info.Size(), tx.Size())}
		}
		if b := tx.Bucket([]byte(tableNames[about])); b != nil {
			known = true
			if got := string(b.Get([]byte(formatRow))); got != format {
				return &damagedError{fmt.Errorf("its format is %q, known is %q", got, format)}
			}
		}
		return nil
	})
	if err != nil || known {
		return err
	}
	return d.bolt.Update(func(tx *bbolt.Tx) error {
		for _, name := range tableNames {
			if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
				return err
			}
		}
		return tx.Bucket([]byte(tableNames[about])).Put([]byte(formatRow), []byte(format))
	})
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

// commit makes changes durable, all or none of them, and tells how many bytes that took. errFull: nothing was changed. After any
// other error the file must be opened anew: bbolt's memory and the disk may differ.
func (d *database) commit(o *overlay) (written int64, err error) {
	if d == nil {
		return 0, errors.New("there is no database")
	}
	err = d.guarded(func() error {
		return d.bolt.Update(func(tx *bbolt.Tx) error {
			tx.OnCommit(func() {
				stats := tx.Stats()
				written = stats.GetPageAlloc() + int64(os.Getpagesize()) // and the page that makes it count
			})
			return d.fill(tx, o)
		})
	})
	if errors.Is(err, bbolterrors.ErrMaxSizeReached) || err != nil && strings.Contains(err.Error(), bbolterrors.ErrMaxSizeReached.Error()) {
		err = errFull
	}
	return written, err
}

func (d *database) fill(tx *bbolt.Tx, o *overlay) error {
	for t, rows := range o.rows {
		b := tx.Bucket([]byte(tableNames[t]))
		if b == nil {
			return &damagedError{fmt.Errorf("table %s is not there", tableNames[t])}
		}
		keys := make([]string, 0, len(rows))
		for k := range rows {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			var err error
			if v := rows[k]; v == nil {
				err = b.Delete([]byte(k))
			} else {
				err = b.Put([]byte(k), v)
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

// setAside gives a file that cannot be used a name with the time, and removes earlier ones: one is enough to look at.
func setAside(dir string, now time.Time) (string, error) {
	old, _ := filepath.Glob(filepath.Join(dir, "cache-*.bad"))
	name := "cache-" + now.UTC().Format("20060102T150405.000Z") + ".bad"
	err := os.Rename(filepath.Join(dir, databaseName), filepath.Join(dir, name))
	if err != nil {
		return "", err
	}
	for _, f := range old {
		if filepath.Base(f) != name {
			_ = os.Remove(f)
		}
	}
	return name, nil
}
