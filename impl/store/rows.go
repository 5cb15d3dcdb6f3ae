package store

import (
	"bytes"
	"errors"
	"strings"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/weir-edge/weir/impl/store/table"
)

// maxKey is how long a key may be: a caller chooses its selectors and names, and the engine takes no key of more than
// 32 KiB.
const maxKey = 4 << 10

// faults are damages that readers found. Who writes next sees to them.
type faults struct {
	mu     sync.Mutex
	broken error // of the whole file
	rows   map[table.Place]string
}

func (f *faults) file(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken == nil {
		f.broken = err
	}
}

func (f *faults) row(p table.Place, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rows == nil {
		f.rows = map[table.Place]string{}
	}
	f.rows[p] = why
}

// take gives what was found, and forgets it.
func (f *faults) take() (rows map[table.Place]string, broken error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	broken, rows = f.broken, f.rows
	f.broken, f.rows = nil, nil
	return rows, broken
}

// get reads a row, newest first: what waits to be written, what is being written, what is on the disk. The payload is the caller's, or
// immutable. mu must be held.
func (s *Store) get(t table.Kind, key string) (payload []byte, ok bool) {
	for _, o := range []*table.Overlay{s.pending, s.inFlight} {
		if b, there := o.Get(t, key); there {
			if b == nil {
				return nil, false
			}
			return b[table.HeadSize:], true
		}
	}
	err := s.db.View(t, func(b *bbolt.Bucket) error {
		row := b.Get([]byte(key))
		if row == nil {
			return nil
		}
		p, whole := table.Decode(t, key, row)
		if !whole {
			s.damaged(t, key, "its checksum is wrong")
			return nil
		}
		payload, ok = bytes.Clone(p), true
		return nil
	})
	if s.failed(err) {
		return nil, false
	}
	return payload, ok
}

// put and remove change a row; mu must be held for writing. A row with a key that is too long is not kept: what it is a
// part of is not whole then.
func (s *Store) put(t table.Kind, key string, payload []byte) {
	if len(key) > maxKey {
		s.stats.Refused++
		return
	}
	s.pending.Set(t, key, table.Encode(t, key, payload))
}

func (s *Store) remove(t table.Kind, key string) { s.pending.Set(t, key, nil) }

// errOrder says that a table is not in order: the file is damaged where bbolt does not look.
var errOrder = table.Damaged("keys are not in order")

// scan reads all rows of which the key begins with prefix, in no order; the payload is valid only inside f. mu must be held.
func (s *Store) scan(t table.Kind, prefix string, f func(key string, payload []byte)) {
	seen := map[string]bool{}
	for _, o := range []*table.Overlay{s.pending, s.inFlight} {
		if o == nil {
			continue
		}
		for k, b := range o.Rows[t] {
			if strings.HasPrefix(k, prefix) && !seen[k] {
				seen[k] = true
				if b != nil {
					f(k, b[table.HeadSize:])
				}
			}
		}
	}
	last := ""
	err := s.db.View(t, func(b *bbolt.Bucket) error {
		c := b.Cursor()
		for k, row := c.Seek([]byte(prefix)); k != nil && bytes.HasPrefix(k, []byte(prefix)); k, row = c.Next() {
			if len(k) > bbolt.MaxKeySize {
				return errOrder
			}
			key := string(k)
			if key <= last && last != "" {
				return errOrder
			}
			last = key
			if seen[key] {
				continue
			}
			if p, whole := table.Decode(t, key, row); whole {
				f(key, p)
			} else {
				s.damaged(t, key, "its checksum is wrong")
			}
		}
		return nil
	})
	s.failed(err)
}

// damaged notes a row that cannot be used.
func (s *Store) damaged(t table.Kind, key, why string) {
	s.faults.row(table.Place{Kind: t, Key: key}, why)
	s.poke()
}

// failed notes an error of a read, if there is one.
func (s *Store) failed(err error) bool {
	var d *table.DamagedError
	switch {
	case err == nil:
		return false
	case errors.As(err, &d):
		s.faults.file(err)
		s.poke()
	default:
		s.Logger.Warn("cannot read the store", "err", err)
	}
	return true
}

// poke lets Run look at once.
func (s *Store) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
