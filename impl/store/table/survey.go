package table

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"strconv"
	"strings"

	"go.etcd.io/bbolt"
)

// The file of bbolt, in the byte order of the machine:
//
//	page     number (8), kind (2), elements (2), pages that follow and belong to it (4), then the elements
//	branch   of each child: where its first key stands, counted from here (4), length of that (4), page (8); then the
//	         keys
//	leaf     of each row: flags (4), where it stands, counted from here (4), length of its key (4), of its value (4);
//	         then keys and values
//	bucket   the value of a row of the root: page (8), a number (8), and if the page is 0 a leaf of its own
//	free     the free pages, 8 bytes each; if there are 65535 or more, the first is how many
//	meta     magic, version, page size, flags (4 each), root (8), a number (8), free pages (8), pages in all (8),
//	         transaction (8), FNV-1a (8)
const (
	PageHead     = 16
	elementHead  = 16
	bucketHead   = 16
	MetaSize     = 64
	branchKind   = 0x01
	leafKind     = 0x02
	freeKind     = 0x10
	bucketFlag   = 0x01
	metaMagic    = 0xED0CDAED
	metaVersion  = 2
	smallestPage = 4 << 10
	largestPage  = 64 << 10
	// deepest a tree can be: each branch has at least two children, and there are less than 2^32 pages.
	deepest = 32
)

var native = binary.NativeEndian

// meta is the page that makes a transaction count.
type meta struct {
	at                  int64 // in the file
	size                int64 // of a page
	root, free, end, tx uint64
}

func parseMeta(b []byte, size int64) (m meta, ok bool) {
	h := fnv.New64a()
	_, _ = h.Write(b[:MetaSize-8])
	if native.Uint32(b) != metaMagic || native.Uint32(b[4:]) != metaVersion || int64(native.Uint32(b[8:])) != size ||
		native.Uint64(b[56:]) != h.Sum64() {
		return m, false
	}
	return meta{
		size: size, root: native.Uint64(b[16:]), free: native.Uint64(b[32:]), end: native.Uint64(b[40:]),
		tx: native.Uint64(b[48:]),
	}, true
}

// metas are the transactions that a file may be at, the latest first: there are two, and one may be damaged.
func metas(r io.ReaderAt) (all []meta) {
	for size := int64(smallestPage); size <= largestPage && len(all) < 2; size *= 2 {
		all = nil
		for _, at := range []int64{0, size} {
			b := make([]byte, MetaSize)
			if _, err := r.ReadAt(b, at+PageHead); err != nil {
				continue
			}
			if m, ok := parseMeta(b, size); ok {
				m.at = at
				all = append(all, m)
			}
		}
		if len(all) > 0 {
			break
		}
	}
	if len(all) == 2 && all[0].tx < all[1].tx {
		all[0], all[1] = all[1], all[0]
	}
	return all
}

// survey is what a look at a whole file finds, before bbolt believes any of it. bbolt checks neither how many pages a
// page says that belong to it, which it frees one by one, nor how long it says that its rows are, which it copies. The
// look visits each page once, so it takes no more than the file is large, whatever stands there; of long rows it does
// not read what is behind their first page.
type survey struct {
	meta
	file  io.ReaderAt
	pages uint64 // that the file has
	seen  []uint64
	take  func(t Kind, key []byte, at int64, size int) // a row

	err    error // nothing of it can be believed
	broken error // the first page that is not what it should be; rows are missing
	rows   int
	about  map[string][]byte
	said   digest // what the rows were
	found  digest // what they are
}

// look surveys the file as it was after a transaction.
func look(file io.ReaderAt, size int64, m meta, take func(t Kind, key []byte, at int64, size int)) *survey {
	s := &survey{meta: m, file: file, pages: min(m.end, uint64(size/m.size)), about: map[string][]byte{}, take: take}
	s.seen = make([]uint64, s.pages/64+1)
	if s.pages < m.end {
		s.note(fmt.Errorf("it has %d pages and should have %d", s.pages, m.end))
	}
	var there [Kinds]bool
	s.tree(m.root, nil, nil, 0, func(p *page, e element) error {
		for t, name := range KindNames {
			if name == string(e.key) && e.flags == bucketFlag {
				there[t] = true
				s.note(s.bucket(Kind(t), p, e))
				return nil
			}
		}
		return errors.New("a row of the root that is no table")
	})
	if s.broken == nil {
		s.note(s.freePages())
	}
	s.err = s.sums()
	for t, ok := range there {
		if s.err == nil && !ok {
			s.err = fmt.Errorf("table %s cannot be read: %w", KindNames[t], s.broken)
		}
	}
	return s
}

func (s *survey) note(err error) {
	if s.broken == nil {
		s.broken = err
	}
}

// formatError says that another version of Weir has written a file.
type formatError struct{ is string }

func (e *formatError) Error() string {
	return fmt.Sprintf("its format is %.32q, known is %q", e.is, format)
}

// file is what a file of another format is called while this one counts; "": it is damaged, and is of none.
func (e *formatError) file() string {
	number, ok := strings.CutPrefix(e.is, formatName)
	if n, err := strconv.Atoi(number); !ok || err != nil || n < 1 || n > 1000 {
		return ""
	}
	return FileName + "." + e.is
}

// sums reads what the file says of itself.
func (s *survey) sums() error {
	if got := string(s.about[FormatRow]); got != format {
		return &formatError{got}
	}
	b, ok := Decode(About, digestRow, s.about[digestRow])
	if !ok {
		return errors.New("the sums of its rows are damaged")
	}
	var err error
	if s.said, err = parseDigest(b); err != nil {
		return err
	}
	if s.said.tx != s.tx {
		return fmt.Errorf("it is at transaction %d, and the sums of its rows are of %d", s.tx, s.said.tx)
	}
	return nil
}

// whole reports whether every row is there, and of this transaction.
func (s *survey) whole() bool { return s.err == nil && s.broken == nil && s.said.sums == s.found.sums }

// believable reports whether a row is one of this transaction.
func (s *survey) believable(t Kind, key []byte) bool {
	g := groupOf(t, key)
	return s.err == nil && s.said.sums[g] == s.found.sums[g]
}

// why says what is wrong with it.
func (s *survey) why() error {
	switch {
	case s.err != nil:
		return s.err
	case s.broken != nil:
		return s.broken
	case s.whole():
		return nil
	}
	return errors.New("rows are missing, or older than they should be")
}

// bucket looks at a table.
func (s *survey) bucket(t Kind, p *page, e element) error {
	row := func(p *page, e element) error {
		if e.flags != 0 || len(e.key) == 0 {
			return errors.New("a row of a table that is none")
		}
		n := HeadSize
		if t == About {
			n = smallestPage
		}
		head, err := p.read(e.from, min(e.size, n))
		if err != nil {
			return err
		}
		s.rows++
		s.found.change(t, e.key, nil, head)
		if t == About {
			s.about[string(e.key)] = bytes.Clone(head)
		}
		if s.take != nil {
			s.take(t, e.key, p.at+int64(e.from), e.size)
		}
		return nil
	}
	if e.size < bucketHead {
		return errors.New("a table without a head")
	}
	value, err := p.read(e.from, min(e.size, int(s.size)))
	if err != nil {
		return err
	}
	if root := native.Uint64(value); root != 0 {
		s.tree(root, nil, nil, 0, row)
		return nil
	}
	in := &page{file: s.file, at: p.at + int64(e.from) + bucketHead, total: e.size - bucketHead, b: value[bucketHead:]}
	if err := in.parse(0); err != nil {
		return err
	}
	if in.kind != leafKind || in.more != 0 {
		return errors.New("a small table that is no leaf")
	}
	return in.each(nil, nil, row)
}

// tree looks at a page and all below, of which the keys should be from low up to high.
func (s *survey) tree(id uint64, low, high []byte, depth int, row func(*page, element) error) {
	p, err := s.page(id)
	switch {
	case err != nil:
	case depth > deepest:
		err = errors.New("a tree that is too deep")
	case p.kind == leafKind:
		err = p.each(low, high, row)
	case p.kind == branchKind && p.count > 0:
		var children []element
		err = p.each(low, high, func(_ *page, e element) error {
			children = append(children, e)
			return nil
		})
		for i, e := range children {
			end := high
			if i+1 < len(children) {
				end = children[i+1].key
			}
			s.tree(e.child, e.key, end, depth+1, row)
		}
	default:
		err = fmt.Errorf("page %d is of kind %#x", id, p.kind)
	}
	s.note(err)
}

// page reads the first page of those that belong together. Each can be read only once.
func (s *survey) page(id uint64) (*page, error) {
	if id < 2 || id >= s.pages {
		return nil, fmt.Errorf("page %d of %d", id, s.pages)
	}
	p := &page{file: s.file, at: int64(id) * s.size, total: int(s.size), b: make([]byte, s.size)}
	if _, err := s.file.ReadAt(p.b, p.at); err != nil {
		return nil, err
	}
	if err := p.parse(id); err != nil {
		return nil, err
	}
	if uint64(p.more) >= s.pages-id {
		return nil, fmt.Errorf("page %d of %d says that %d more belong to it", id, s.pages, p.more)
	}
	p.total *= 1 + int(p.more)
	for i := id; i <= id+uint64(p.more); i++ {
		if !s.visit(i) {
			return nil, fmt.Errorf("page %d has two places", i)
		}
	}
	return p, nil
}

// visit notes that a page has its place; false if it had one before.
func (s *survey) visit(id uint64) bool {
	bit := uint64(1) << (id % 64)
	first := s.seen[id/64]&bit == 0
	s.seen[id/64] |= bit
	return first
}

// freePages looks at the pages that bbolt takes for free.
func (s *survey) freePages() error {
	p, err := s.page(s.free)
	if err != nil {
		return err
	}
	if p.kind != freeKind {
		return fmt.Errorf("page %d should have the free pages, and is of kind %#x", s.free, p.kind)
	}
	n, from := p.count, PageHead
	ids, err := p.read(0, p.total)
	if err != nil {
		return err
	}
	if n == 0xFFFF {
		n, from = int(min(native.Uint64(ids[from:]), s.pages)), from+8
	}
	if from+8*n > len(ids) {
		return fmt.Errorf("%d free pages in %d bytes", n, len(ids))
	}
	for i := range n {
		if id := native.Uint64(ids[from+8*i:]); id < 2 || id >= s.pages || !s.visit(id) {
			return fmt.Errorf("page %d of %d is in use, and free", id, s.pages)
		}
	}
	return nil
}

// page is one of bbolt's, with those that belong to it.
type page struct {
	file  io.ReaderAt
	at    int64  // in the file
	total int    // bytes, with those that belong to it
	b     []byte // of these, what was read
	kind  uint16
	count int
	more  uint32
}

// parse reads the header of a page.
func (p *page) parse(id uint64) error {
	if len(p.b) < PageHead || native.Uint64(p.b) != id {
		return fmt.Errorf("page %d says that it is another", id)
	}
	p.kind, p.count, p.more = native.Uint16(p.b[8:]), int(native.Uint16(p.b[10:])), native.Uint32(p.b[12:])
	return nil
}

// read gives a part of a page, which must lie inside it.
func (p *page) read(from, n int) ([]byte, error) {
	if from+n <= len(p.b) {
		return p.b[from : from+n], nil
	}
	b := make([]byte, n)
	_, err := p.file.ReadAt(b, p.at+int64(from))
	return b, err
}

// element is a child of a branch or a row of a leaf.
type element struct {
	flags uint32
	child uint64
	key   []byte
	from  int // where the value stands in the page
	size  int // of the value
}

// each gives all elements to f, if each stands where it may and their keys are in order, from low up to high.
func (p *page) each(low, high []byte, f func(*page, element) error) error {
	behind := int64(PageHead + elementHead*p.count)
	if behind > int64(p.total) {
		return fmt.Errorf("%d elements in %d bytes", p.count, p.total)
	}
	heads, err := p.read(0, int(behind))
	if err != nil {
		return err
	}
	last := low
	for i := range p.count {
		head := heads[PageHead+elementHead*i:]
		word := func(n int) int64 { return int64(native.Uint32(head[4*n:])) }
		at, key, size := word(1), word(2), word(3)
		e := element{flags: native.Uint32(head)}
		if p.kind == branchKind {
			e = element{child: native.Uint64(head[8:])}
			at, key, size = word(0), word(1), 0
		}
		at += int64(PageHead + elementHead*i)
		if at < behind || key > bbolt.MaxKeySize || at+key+size > int64(p.total) {
			return fmt.Errorf("an element of %d and %d bytes at %d of %d", key, size, at, p.total)
		}
		behind = at + key + size
		e.from, e.size = int(at+key), int(size)
		if e.key, err = p.read(int(at), int(key)); err != nil {
			return err
		}
		if c := bytes.Compare(e.key, last); c < 0 || c == 0 && i > 0 || high != nil && bytes.Compare(e.key, high) >= 0 {
			return errors.New("keys are not in order")
		}
		last = e.key
		if err := f(p, e); err != nil {
			return err
		}
	}
	return nil
}
