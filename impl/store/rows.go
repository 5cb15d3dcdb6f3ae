package store

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/weir-edge/weir/impl/store/table"
)

// faults are damages that readers found. The next writer sees to them.
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

// rows are those of the database, and those that wait for it.
type rows struct {
	Config
	faults faults
	wake   chan struct{}

	// mu guards all below and all that is made of rows. It is not held while the disk is waited for.
	mu                sync.RWMutex
	db                *table.Database // nil: it cannot be opened now
	pending, inFlight *table.Overlay
	urgent            bool // something came or went since the last write
	stats             Stats
}

func newRows(c Config) rows {
	return rows{Config: c, wake: make(chan struct{}, 1), pending: table.NewOverlay()}
}

// get reads a row, newest first: what waits to be written, what is being written, what is on the disk. The payload is
// the caller's, or immutable. mu must be held.
func (s *rows) get(t table.Kind, key string) (payload []byte, ok bool) {
	for _, o := range []*table.Overlay{s.pending, s.inFlight} {
		if b, there := o.Get(t, key); there {
			if b == nil {
				return nil, false
			}
			return b[table.HeadSize:], true
		}
	}
	row, err := s.db.Get(t, key)
	if s.failed(err) || row == nil {
		return nil, false
	}
	return s.whole(t, key, row)
}

// number reads a row of the store itself.
func (s *rows) number(key string) (v int64, ok bool) {
	b, _ := s.get(table.About, key)
	v, err := strconv.ParseInt(string(b), 10, 64)
	return v, err == nil && v >= 0
}

// put and remove change a row; mu must be held for writing. What has a row with too long a key is not whole.
func (s *rows) put(t table.Kind, key string, payload []byte) {
	if len(key) > maxKey {
		s.stats.Refused++
		return
	}
	s.pending.Set(t, key, table.Encode(t, key, payload))
}

func (s *rows) remove(t table.Kind, key string) { s.pending.Set(t, key, nil) }

// refused notes what a commit left out. What such a row was part of is not whole, as each reader finds.
func (s *rows) refused(done table.Committed) {
	s.stats.Written += done.Bytes
	for _, p := range done.Refused {
		s.stats.Refused++
		s.Logger.Error("a part of the store cannot be written and is dropped", "table", table.KindNames[p.Kind],
			"key", fmt.Sprintf("%.100q", p.Key))
	}
}

// scan reads all rows of which the key begins with prefix, in no order; the payload is valid only inside f. mu must be
// held.
func (s *rows) scan(t table.Kind, prefix string, f func(key string, payload []byte)) {
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
	s.failed(s.db.Walk(t, prefix, prefix, func(key string, row []byte) bool {
		if !seen[key] {
			if p, ok := s.whole(t, key, row); ok {
				f(key, p)
			}
		}
		return true
	}))
}

// whole gives the payload of a row. One that is damaged is noted.
func (s *rows) whole(t table.Kind, key string, row []byte) (payload []byte, ok bool) {
	if payload, ok = table.Decode(t, key, row); !ok {
		s.damaged(t, key, "its checksum is wrong")
	}
	return payload, ok
}

// damaged notes a row that cannot be used.
func (s *rows) damaged(t table.Kind, key, why string) {
	s.faults.row(table.Place{Kind: t, Key: key}, why)
	s.poke()
}

// failed notes an error of a read, if there is one.
func (s *rows) failed(err error) bool {
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
func (s *rows) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
