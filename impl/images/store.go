package images

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-edge/weir/impl/exchange"
)

// DefaultRoot is where containerd keeps content, unless its configuration says otherwise.
const DefaultRoot = "/var/lib/containerd/io.containerd.content.v1.content"

// Bounds of what is read of a store.
const (
	maxIngests = 4096
	maxRef     = 4 << 10
	maxSize    = 1 << 40 // bytes of a blob
)

// Store is the content store of the node's containerd, as files. It is only read, and it need not exist.
//
//	blobs/sha256/<hex>         complete, and verified by containerd
//	ingest/<hex>/ref           what is being pulled; ends in sha256:<hex> of the blob
//	ingest/<hex>/data, total   so far, and how much it will be
//
// An open file outlives containerd's garbage collection, and goes on through the rename that completes a pull.
type Store struct{ Root string }

func (s *Store) blobs() string { return filepath.Join(s.Root, "blobs", "sha256") }

// Open opens a complete blob. The error is fs.ErrNotExist if there is none.
func (s *Store) Open(d exchange.Digest) (*os.File, fs.FileInfo, error) {
	f, err := os.Open(filepath.Join(s.blobs(), d.Hex()))
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: f.Name(), Err: fs.ErrNotExist}
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// Size is that of a complete blob; false: there is none.
func (s *Store) Size(d exchange.Digest) (bytes int64, ok bool) {
	info, err := os.Stat(filepath.Join(s.blobs(), d.Hex()))
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	return info.Size(), true
}

// errNoSize is of a pull of which nobody knows how much it will be.
var errNoSize = errors.New("containerd does not know the size of what it pulls")

// Ingest opens what is being pulled of a blob; of several, the one that is furthest. The error is fs.ErrNotExist if
// there is none.
func (s *Store) Ingest(d exchange.Digest) (data *os.File, total int64, err error) {
	dir, err := s.ingest(d)
	if err != nil {
		return nil, 0, err
	}
	text, err := readSmall(filepath.Join(dir, "total"))
	if err == nil {
		total, err = strconv.ParseInt(text, 10, 64)
	}
	if err != nil || total <= 0 || total > maxSize {
		return nil, 0, errNoSize
	}
	data, err = os.Open(filepath.Join(dir, "data"))
	return data, total, err
}

// Ingested is how many bytes there are of a blob that is being pulled, and whether a process has it open to write
// more. The error is fs.ErrNotExist if it is not.
func (s *Store) Ingested(d exchange.Digest) (size int64, open bool, err error) {
	dir, err := s.ingest(d)
	if err != nil {
		return 0, false, err
	}
	data, err := os.Open(filepath.Join(dir, "data"))
	if err != nil {
		return 0, false, err
	}
	defer data.Close()
	info, err := data.Stat()
	if err != nil {
		return 0, false, err
	}
	return info.Size(), isWritten(data), nil
}

// isWritten reports whether a process has a file open to write it. Nothing else says so of containerd, which writes a
// MiB at a time. The kernel refuses a lease for reading of such a file. One that it grants is given back at once: a
// process that opens the file in that moment waits for that. Where the kernel grants no leases, yes is the answer.
func isWritten(f *os.File) bool {
	written := true
	raw, err := f.SyscallConn()
	if err != nil {
		return written
	}
	_ = raw.Control(func(fd uintptr) {
		if _, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_RDLCK); err == nil {
			written = false
			_, _ = unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_UNLCK)
		}
	})
	return written
}

// ingest finds the folder of a pull.
func (s *Store) ingest(d exchange.Digest) (best string, err error) {
	all := filepath.Join(s.Root, "ingest")
	names, err := readNames(all, maxIngests)
	if err != nil {
		return "", err
	}
	most, suffix := int64(-1), d.String()
	for _, name := range names {
		dir := filepath.Join(all, name)
		if ref, err := readSmall(filepath.Join(dir, "ref")); err != nil || !strings.HasSuffix(ref, suffix) {
			continue
		}
		if info, err := os.Stat(filepath.Join(dir, "data")); err == nil && info.Size() > most {
			best, most = dir, info.Size()
		}
	}
	if best == "" {
		return "", &fs.PathError{Op: "find", Path: filepath.Join(all, suffix), Err: fs.ErrNotExist}
	}
	return best, nil
}

// Changed is when a blob last came or went; zero: there is no store.
func (s *Store) Changed() time.Time {
	info, err := os.Stat(s.blobs())
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// List lists the blobs that are complete, sorted: the newest, if there are more than most.
func (s *Store) List(most int) (all []exchange.Digest, err error) {
	names, err := readNames(s.blobs(), 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	type dated struct {
		d  exchange.Digest
		at time.Time
	}
	var found []dated
	for _, name := range names {
		x := dated{}
		if x.d.UnmarshalText([]byte(name)) != nil {
			continue
		}
		if len(names) > most {
			if info, err := os.Stat(filepath.Join(s.blobs(), name)); err == nil {
				x.at = info.ModTime()
			}
		}
		found = append(found, x)
	}
	if len(found) > most {
		slices.SortFunc(found, func(a, b dated) int { return b.at.Compare(a.at) })
		found = found[:most]
	}
	for _, x := range found {
		all = append(all, x.d)
	}
	slices.SortFunc(all, func(a, b exchange.Digest) int { return cmp.Compare(string(a[:]), string(b[:])) })
	return all, nil
}

// readNames reads the names of a folder; most 0: all of them.
func readNames(dir string, most int) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(cmp.Or(most, -1))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}

// readSmall reads a file of a few bytes.
func readSmall(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRef))
	return string(text), err
}
