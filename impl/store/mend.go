package store

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/weir-edge/weir/impl/store/table"
)

// open opens the database, and tells what had to be done for that.
func (s *catalog) open() (m table.Mended, err error) {
	c := table.Config{Dir: s.Dir, MaxBytes: s.MaxBytes}
	if s.Key != nil {
		c.Seal = s.sealed
	}
	if s.db, m, err = table.Open(c); err == nil {
		s.tell(m)
	}
	return m, err
}

// tell says what was done with a file.
func (s *catalog) tell(m table.Mended) {
	switch {
	case m.Aside != "":
		s.stats.SetAside++
		s.Logger.Error("what was kept is of another version of weir-hub: it is put aside, and that version goes on with it "+
			"when it is started again; "+
			"clients fill what is kept now while the cloud can be reached", "file", m.Aside, "own-was-aside", m.Found,
			"why", m.Why)
	case m.Removed:
		s.stats.SetAside++
		s.Logger.Error("what was kept cannot be used: it is removed and a new store begins; clients refill it while the "+
			"cloud can be reached", "why", m.Why)
	case m.Rows > 0:
		s.stats.DamagedRows += m.Rows
		s.Logger.Error("parts of the store were damaged and are dropped; they are fetched again when clients ask and the "+
			"cloud can be reached",
			"rows", m.Rows, "why", m.Why)
	case m.Back:
		s.Logger.Warn("the disk did not keep the last write of the store: what was before it counts", "why", m.Why)
	case m.Why != nil:
		s.Logger.Info("the store was rewritten", "why", m.Why)
	}
}

// reopen opens the file again. flushing and mu must be held.
func (s *catalog) reopen(why error) {
	if s.db != nil {
		_ = s.db.Close()
		s.db = nil
	}
	m, err := s.open()
	var d *table.DamagedError
	if err == nil && m.Why == nil && errors.As(why, &d) { // it is damaged in a way that mend does not know
		_ = s.db.Close()
		s.db = nil
		if err = table.Remove(filepath.Join(s.Dir, table.FileName)); err == nil {
			s.tell(table.Mended{Why: why, Removed: true})
			m, err = s.open()
			m.Removed = true
		}
	}
	switch {
	case err != nil:
		s.Logger.Error("cannot open the store: it serves from memory; trying again", "err", err)
	case m.Removed || m.Back:
		s.forgetAll()
	case m.Rows > 0:
		s.recheck()
	}
}

// forgetAll takes it that nothing is kept. What was asked for is known as incomplete, so that it is fetched again.
func (s *catalog) forgetAll() {
	for _, c := range s.collections {
		c.complete, c.count, c.sum = false, 0, 0
		s.dirty[c] = true
	}
	s.put(table.About, table.EpochRow, fmt.Append(nil, s.epoch))
	clear(s.pending.Rows[table.Members]) // they do not add up without those that are lost
}

// repair sees to damages that readers found. flushing must be held.
func (s *catalog) repair() {
	rows, broken := s.faults.take()
	if broken == nil && len(rows) == 0 {
		if s.db != nil {
			return
		}
		broken = errors.New("it is not open")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if broken != nil {
		s.stats.Errors++
		s.reopen(broken)
		return
	}
	for p, why := range rows {
		if _, ok := s.pending.Get(p.Kind, p.Key); ok {
			continue // rewritten since
		}
		s.stats.DamagedRows++
		s.Logger.Error("a part of the store was damaged and is dropped; it is fetched again when a client asks and the "+
			"cloud can be reached",
			"table", table.KindNames[p.Kind], "key", fmt.Sprintf("%q", p.Key), "why", why)
		s.remove(p.Kind, p.Key)
	}
	s.recheck()
}

// recheck finds the collections of which something is missing.
func (s *catalog) recheck() {
	for _, c := range s.collections {
		if c.complete && s.incomplete(c) {
			c.complete = false
			s.dirty[c] = true
		}
	}
}
