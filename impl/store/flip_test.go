package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-edge/weir/impl/store/table"
)

// TestFlippedBits: each bit of each page's header is another, one at a time. Nothing of that takes more memory or time
// than the file is large. It runs in a process of its own that may not have more address space than a store needs.
func TestFlippedBits(t *testing.T) {
	if dir := os.Getenv(roleVariable); dir != "" {
		flipBits(t, dir)
		return
	}
	dir := t.TempDir()
	h := liveOf(t, 3, 6)
	check(t, os.WriteFile(filepath.Join(dir, table.FileName), h.files[2], 0o600))
	check(t, os.WriteFile(filepath.Join(dir, "want"), []byte(h.lists[2]), 0o600))
	check(t, os.WriteFile(filepath.Join(dir, "before"), []byte(h.lists[1]), 0o600))
	out, err := child(t, "TestFlippedBits", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%.1000s\n...\n%s", err, out, out[max(0, len(out)-3000):])
	}
	t.Logf("%s", out)
}

// spaceOfStores bounds what a process that opens stores may map. The Go runtime and a store of 8 MiB take 1.3 GB of it,
// nearly all of it never touched.
const spaceOfStores = 2 << 30

func flipBits(t *testing.T, dir string) {
	file, err := os.ReadFile(filepath.Join(dir, table.FileName))
	check(t, err)
	want, err := os.ReadFile(filepath.Join(dir, "want"))
	check(t, err)
	before, err := os.ReadFile(filepath.Join(dir, "before"))
	check(t, err)
	check(t, unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: spaceOfStores, Max: spaceOfStores}))
	check(t, unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: 300, Max: 300})) // beyond all that it needs
	step := 1
	if testing.Short() {
		step = 11 // another bit of each page
	}
	outcome := map[string]int{}
	for bit := 0; bit < len(file)/pageSize*table.PageHead*8; bit += step {
		page, in := bit/(table.PageHead*8), table.PageHead*8-1-bit%(table.PageHead*8) // the highest first
		at := page*pageSize + in/8
		file[at] ^= 1 << (in % 8)
		if !bytes.ContainsFunc(file[page*pageSize:(page+1)*pageSize], func(r rune) bool { return r != 0 }) {
			continue // never written
		}
		switch got, _ := serveAndWrite(t, file, 1); got {
		case string(want):
			outcome["the list"]++
		case string(before):
			outcome["the one before"]++
		case "unknown":
			outcome["unknown"]++
		default:
			t.Fatalf("page %d, bit %d: %.100s", page, in, got)
		}
		file[at] ^= 1 << (in % 8)
	}
	var use syscall.Rusage
	check(t, syscall.Getrusage(syscall.RUSAGE_SELF, &use))
	fmt.Fprintf(os.Stderr, "\n%d pages, %v, at most %d MB in memory\n", len(file)/pageSize, outcome, use.Maxrss>>10)
	if use.Maxrss>>10 > 256 {
		t.Errorf("it took %d MB of memory, for a file of %d kB", use.Maxrss>>10, len(file)>>10)
	}
}
