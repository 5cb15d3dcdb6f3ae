package queue

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
)

// state is what the records so far amount to. Entries in it are never changed, only replaced.
type state struct {
	entries map[Target]*Entry
	bySeq   map[uint64]Target // of Seq and of sentSeq
	last    uint64            // highest Seq ever
	events  int
	bytes   int // in memory
}

func newState() *state { return &state{entries: map[Target]*Entry{}, bySeq: map[uint64]Target{}} }

// apply does what a record says; what it does not know of, it leaves.
func (s *state) apply(r *record) {
	s.last = max(s.last, r.seq)
	switch r.kind {
	case recordPut:
		e := r.entry
		if old := s.entries[e.Target]; old != nil {
			e.Base, e.At, e.Sent, e.SentAt, e.sentSeq = old.Base, old.At, old.Sent, old.SentAt, old.sentSeq
		}
		s.set(&e)
	case recordKeep:
		e := r.entry
		s.set(&e)
	case recordSent:
		if old := s.at(r.seq); old != nil && old.Seq == r.seq {
			e := *old
			if r.flag && old.sent() {
				e.Base = old.Sent
			}
			e.Sent, e.SentAt, e.sentSeq = old.Ours, r.sentAt, r.seq
			s.set(&e)
		}
	case recordDone:
		switch old := s.at(r.seq); {
		case old == nil:
		case old.Seq == r.seq:
			s.remove(old)
		default: // it was written again while what it had been was sent
			e := *old
			if r.flag {
				e.Base = old.Sent
			}
			e.Sent, e.SentAt, e.sentSeq = nil, "", 0
			s.set(&e)
		}
	}
}

// at finds an entry by what it is or by what was sent of it.
func (s *state) at(seq uint64) *Entry {
	t, ok := s.bySeq[seq]
	if !ok {
		return nil
	}
	return s.entries[t]
}

func (s *state) set(e *Entry) {
	if old := s.entries[e.Target]; old != nil {
		s.remove(old)
	}
	s.entries[e.Target] = e
	s.bySeq[e.Seq] = e.Target
	if e.sentSeq != 0 {
		s.bySeq[e.sentSeq] = e.Target
	}
	s.count(e, 1)
}

func (s *state) remove(e *Entry) {
	delete(s.entries, e.Target)
	delete(s.bySeq, e.Seq)
	delete(s.bySeq, e.sentSeq)
	s.count(e, -1)
}

func (s *state) count(e *Entry, n int) {
	s.bytes += n * e.size()
	if e.Kind.event() {
		s.events += n
	}
}

// first is the entry that is pushed first, nil if there is none.
func (s *state) first() (first *Entry) {
	for _, e := range s.entries {
		if first == nil || before(e, first) < 0 {
			first = e
		}
	}
	return first
}

// before is the order in which entries are pushed: by kind, and then by their last writes.
func before(a, b *Entry) int {
	return cmp.Or(cmp.Compare(a.Kind.rank(), b.Kind.rank()), cmp.Compare(a.Seq, b.Seq))
}

// ordered gives all entries in the order in which they are pushed.
func (s *state) ordered() []*Entry { return slices.SortedFunc(maps.Values(s.entries), before) }

// frames are the records that make a state like this one.
func (s *state) frames(f format) []byte {
	var b []byte
	for _, e := range s.ordered() {
		b = f.appendFrame(b, &record{kind: recordKeep, seq: e.Seq, flag: e.Base != nil, entry: *e})
	}
	return b
}

// own copies the bytes of a record that are parts of a larger buffer.
func (r *record) own() *record {
	e := &r.entry
	for _, b := range []*[]byte{&e.Base, &e.Ours, &e.Sent} {
		*b = bytes.Clone(*b)
	}
	return r
}
