package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/store/table"
)

// history is a store that lived for some transactions: the file after each, and what the kubelet's list was then.
type history struct {
	files [][]byte
	lists []string
}

func live(t testing.TB, transactions int) history { return liveOf(t, transactions, 30) }

func liveOf(t testing.TB, transactions, pods int) history {
	t.Helper()
	rnd := rand.New(rand.NewPCG(25, 1))
	s := open(t, Config{Dir: t.TempDir(), MaxBytes: 8 << 20})
	path := filepath.Join(s.Dir, table.FileName)
	version := uint64(10)
	var first []*wire.Object
	for i := range pods {
		first = append(first, pod(t, fmt.Sprintf("ns/p%02d", i), 5, "fill="+strings.Repeat("x", rnd.IntN(5000))))
	}
	list(t, s, kubelet(), podKind, version, first...)
	w := watch(t, s, kubelet(), podKind, version)
	defer s.Close()
	var h history
	for range transactions {
		for range 1 + rnd.IntN(6) {
			version++
			typ := wire.Modified
			if rnd.IntN(4) == 0 {
				typ = wire.Deleted
			}
			w.Event(
				event(typ,
					pod(t, fmt.Sprintf("ns/p%02d", rnd.IntN(pods+pods/3)), version, "fill="+strings.Repeat("y", rnd.IntN(5000)))))
		}
		s.step(true)
		b, err := os.ReadFile(path)
		check(t, err)
		h.files = append(h.files, b)
		h.lists = append(h.lists, read(t, s, kubelet()))
	}
	return h
}

// serve opens a store with this file and tells what its list is.
func serve(t testing.TB, file []byte) (got string, st Stats) { return serveAndWrite(t, file, 3) }

func serveAndWrite(t testing.TB, file []byte, writes int) (got string, st Stats) {
	t.Helper()
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, table.FileName), file, 0o600))
	s := open(t, Config{Dir: dir, MaxBytes: 8 << 20, Clock: clock.RealClock{}})
	defer s.Close()
	s.scrub(t.Context())
	s.step(true)
	got = read(t, s, kubelet())
	// Whatever it was, lists mend it.
	list2 := Shape{Component: "again", Resource: pods}
	for range writes { // a damage that is found by writing costs what is written
		list(t, s, list2, podKind, 1000, pod(t, "ns/new", 1000))
		s.step(true)
	}
	expect(t, "after a new list", read(t, s, list2), "1000: ns/new@1000")
	return got, s.Stats()
}

const pageSize = 4096

// changed are the pages in which two files differ.
func changed(a, b []byte) (pages []int) {
	for p := 0; p*pageSize < len(b); p++ {
		from, to := p*pageSize, min((p+1)*pageSize, len(b))
		if from >= len(a) || !bytes.Equal(a[from:min(to, len(a))], b[from:to]) {
			pages = append(pages, p)
		}
	}
	return pages
}

// TestPowerCut: power is cut in a transaction. bbolt writes pages that nothing refers to, syncs, writes the page that
// makes them count, and syncs. So on the disk are any of the first, even in part, and if all are, the last, even in
// part. What is served is the list before or the one after, never another.
func TestPowerCut(t *testing.T) {
	h := live(t, 12)
	rnd := rand.New(rand.NewPCG(25, 2))
	before, after := 0, 0
	for i := 1; i < len(h.files); i++ {
		a, b := h.files[i-1], h.files[i]
		pages := changed(a, b)
		for n := 0; n < 2*len(pages)+6; n++ {
			file := append(bytes.Clone(a), make([]byte, max(0, len(b)-len(a)))...)
			all := n >= 2*len(pages)
			for j, p := range pages {
				from, to := p*pageSize, min((p+1)*pageSize, len(b))
				if !all && p > 1 && (j > n/2 || n%2 == 1 && rnd.IntN(2) == 0) { // up to the n-th, or with holes
					continue
				}
				if p <= 1 {
					if !all {
						continue
					}
					to = from + []int{0, 512, 40, 70, 100, pageSize}[n-2*len(pages)]
				}
				copy(file[from:to], b[from:to])
			}
			got, st := serve(t, file)
			switch got {
			case h.lists[i]:
				after++
			case h.lists[i-1]:
				before++
			default:
				t.Fatalf("transaction %d, write %d of %d: %s\nbefore %s\nafter %s\n%+v", i, n, len(pages), got, h.lists[i-1],
					h.lists[i], st)
			}
			if st.SetAside+st.DamagedRows > 0 {
				t.Fatalf("transaction %d, write %d: a power cut did damage: %+v", i, n, st)
			}
		}
	}
	t.Logf("%d files served the list before, %d the one after", before, after)
	if before < 50 || after < 10 {
		t.Error("the test does not test much")
	}
}

// TestDamage: bytes of the file are others, pages are another's, the end is missing, the disk wrote in another order
// than it was told to. Nothing of it is served; the rest is; the file is mended, or removed.
func TestDamage(t *testing.T) {
	h := live(t, 6)
	last := len(h.files) - 1
	file, want := h.files[last], h.lists[last]
	seed := uint64(3)
	if s := os.Getenv("WEIR_DAMAGE_SEED"); s != "" { // to look for more
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		check(t, err)
	}
	rnd := rand.New(rand.NewPCG(25, seed))
	outcome := map[string]int{}
	runs := 300
	if testing.Short() {
		runs = 100
	}
	for n := range runs {
		b := bytes.Clone(file)
		what := ""
		switch n % 7 {
		case 0:
			at := rnd.IntN(len(b))
			b[at] ^= byte(1 << rnd.IntN(8))
			what = fmt.Sprint("a bit at ", at)
		case 1:
			at := rnd.IntN(len(b)/512) * 512
			clear(b[at : at+512])
			what = fmt.Sprint("zeros at ", at)
		case 2:
			b = b[:rnd.IntN(len(b))]
			what = fmt.Sprint("cut at ", len(b))
		case 3:
			from, to := rnd.IntN(len(b)/pageSize), rnd.IntN(len(b)/pageSize)
			copy(b[to*pageSize:], bytes.Clone(b[from*pageSize:(from+1)*pageSize]))
			what = fmt.Sprint("page ", from, " in place of ", to)
		case 4:
			at := rnd.IntN(len(b)/pageSize) * pageSize
			for i := range 64 {
				b[at+i] = byte(rnd.Uint32())
			}
			what = fmt.Sprint("noise in the head of page ", at/pageSize)
		case 5: // the page that makes a transaction count is there, and a page that it refers to is not
			old := h.files[last-1]
			pages := changed(old, b)
			p := pages[rnd.IntN(len(pages))]
			if p > 1 {
				copy(b[p*pageSize:(p+1)*pageSize], append(bytes.Clone(old), make([]byte, len(b))...)[p*pageSize:])
			}
			what = fmt.Sprint("page ", p, " is that of before")
		case 6: // neither of the pages that make a transaction count is good
			b[table.PageHead+rnd.IntN(table.MetaSize)] ^= 0x55
			b[pageSize+table.PageHead+rnd.IntN(table.MetaSize)] ^= 0x55
			what = "both metas"
		}
		got, st := serve(t, b)
		switch {
		case got == want:
			outcome["as it was"]++
		case got == h.lists[last-1]:
			outcome["as it was before the last transaction"]++
		case got != "unknown":
			t.Fatalf("%s: %s, want %s or unknown\n%+v", what, got, want, st)
		case st.SetAside > 0:
			outcome["removed"]++
		default:
			outcome["parts dropped"]++
		}
	}
	t.Log(outcome)
	if outcome["removed"] == 0 || outcome["parts dropped"] == 0 || outcome["as it was"] == 0 {
		t.Error("the test does not test much")
	}
}

// TestDamagedPart: the objects that are whole are served, and what must be fetched again is told.
func TestDamagedPart(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Config{Dir: dir})
	other := Shape{Component: "agent", Resource: pods, Labels: "a=b"}
	list(t, s, kubelet(), podKind, 10, pod(t, "a/x", 5, "note="+strings.Repeat("damage-me", 50)), pod(t, "a/y", 6))
	list(t, s, other, podKind, 10, pod(t, "a/y", 6))
	s.Close()
	path := filepath.Join(dir, table.FileName)
	b, err := os.ReadFile(path)
	check(t, err)
	at := bytes.Index(b, []byte("damage-me"))
	b[at] = 'D'
	check(t, os.WriteFile(path, b, 0o600))
	s = open(t, s.Config)
	defer s.Close()
	expect(t, "a list with a damaged object", read(t, s, kubelet()), "unknown")
	expect(t, "a list without it", read(t, s, other), "10: a/y@6")
	expect(t, "the object", get(s, pods, Protobuf, "a/x"), "unknown")
	expect(t, "another", get(s, pods, Protobuf, "a/y"), "@6")
	s.step(true)
	if st := s.Stats(); st.Collections-st.Complete != 1 || st.DamagedRows == 0 || st.SetAside != 0 {
		t.Errorf("%+v", st)
	}
	list(t, s, kubelet(), podKind, 12, pod(t, "a/x", 5), pod(t, "a/y", 6))
	expect(t, "fetched again", read(t, s, kubelet()), "12: a/x@5 a/y@6")
}

// TestRemoved: a file that cannot be used is removed, since it may hold what should not lie about, and the queue is not
// touched.
func TestRemoved(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Config{Dir: dir})
	putStatus(t, s)
	for range 3 {
		s.Close()
		check(t, os.WriteFile(filepath.Join(dir, table.FileName), bytes.Repeat([]byte("junk"), 20000), 0o600))
		s = open(t, s.Config)
		list(t, s, kubelet(), podKind, 10, pod(t, "a/x", 5))
	}
	defer s.Close()
	if junk := holding(t, dir, "junkjunk"); len(junk) != 0 || s.Queue().Len() != 1 || s.Stats().SetAside != 1 {
		t.Errorf("%v, %d writes wait, %+v", junk, s.Queue().Len(), s.Stats())
	}
}
