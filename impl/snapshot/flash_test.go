package snapshot

import (
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"syscall"
)

var errCut = errors.New("the power is cut")

// flash is a disk that loses power and fills up. It keeps what was made durable apart from what was only written: after a power
// cut a file has its durable bytes and any part of the rest, even with holes.
type flash struct {
	rnd     *rand.Rand
	files   map[string]*inode
	ops     int // so far
	cutAt   int // power is cut in this operation; 0: never
	fail    func(op string) bool
	written int64
	syncs   int
	down    bool
}

type inode struct {
	now     []byte
	durable []byte // at the last Sync
	// Bytes that a failed Sync gave up: they can be read, and no later Sync writes them.
	lostFrom, lostTo int
}

func newFlash(rnd *rand.Rand) *flash {
	return &flash{rnd: rnd, files: map[string]*inode{}, fail: func(string) bool { return false }}
}

// op counts an operation. done tells whether it happens, and err what its caller is told.
func (d *flash) op(name string) (done bool, err error) {
	if d.down {
		return false, errCut
	}
	d.ops++
	switch {
	case d.ops == d.cutAt:
		d.down = true
		return d.rnd.IntN(2) == 0, errCut
	case d.fail(name):
		return d.rnd.IntN(2) == 0, syscall.ENOSPC
	}
	return true, nil
}

// restart gives the disk as it is found after a power cut.
func (d *flash) restart() *flash {
	after := newFlash(d.rnd)
	for name, f := range d.files {
		b := f.afterCut(d.rnd)
		after.files[name] = &inode{now: b, durable: append([]byte(nil), b...)}
	}
	return after
}

func (f *inode) afterCut(rnd *rand.Rand) []byte {
	// A cut that was not synced may not have happened.
	n := min(len(f.durable), len(f.now))
	if string(f.durable[:n]) != string(f.now[:n]) || len(f.now) < len(f.durable) && rnd.IntN(2) == 0 {
		return append([]byte(nil), f.durable...)
	}
	b := append([]byte(nil), f.now[:n+rnd.IntN(len(f.now)-n+1)]...)
	if len(b) > n && rnd.IntN(3) == 0 { // the size arrived, the bytes did not
		clear(b[n+rnd.IntN(len(b)-n):])
	}
	return b
}

func (d *flash) Open(name string) (file, error) {
	f, ok := d.files[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return &handle{d: d, f: f}, nil
}

func (d *flash) Create(name string) (file, error) {
	done, err := d.op("create")
	f := &inode{}
	if done {
		d.files[name] = f
	}
	return &handle{d: d, f: f}, err
}

func (d *flash) Rename(from, to string) error {
	done, err := d.op("rename")
	if f, ok := d.files[from]; !ok {
		return fs.ErrNotExist
	} else if done {
		d.files[to] = f
		delete(d.files, from)
	}
	return err
}

func (d *flash) Remove(name string) error {
	done, err := d.op("remove")
	if done {
		delete(d.files, name)
	}
	return err
}

type handle struct {
	d  *flash
	f  *inode
	at int
}

func (h *handle) Read(p []byte) (int, error) {
	if h.at >= len(h.f.now) {
		return 0, io.EOF
	}
	n := copy(p, h.f.now[h.at:])
	h.at += n
	return n, nil
}

func (h *handle) Write(p []byte) (int, error) {
	done, err := h.d.op("write")
	n := len(p)
	if err != nil {
		n = h.d.rnd.IntN(len(p) + 1)
	}
	if !done {
		n = 0
	}
	h.f.now = append(h.f.now, p[:n]...)
	h.d.written += int64(n)
	return n, err
}

func (h *handle) Sync() error {
	done, err := h.d.op("sync")
	switch {
	case done:
		h.f.durable = append([]byte(nil), h.f.now...)
		if h.f.lostTo > 0 {
			clear(h.f.durable[h.f.lostFrom:h.f.lostTo])
		}
		h.d.syncs++
	case err != nil:
		h.f.lostFrom, h.f.lostTo = min(len(h.f.durable), len(h.f.now)), len(h.f.now)
	}
	return err
}

func (h *handle) Cut(size int64) error {
	done, err := h.d.op("cut")
	if done {
		h.f.now = h.f.now[:size:size]
		if h.f.lostTo = min(h.f.lostTo, int(size)); h.f.lostTo <= h.f.lostFrom {
			h.f.lostFrom, h.f.lostTo = 0, 0
		}
	}
	return err
}

func (h *handle) Size() (int64, error) { return int64(len(h.f.now)), nil }
func (h *handle) Close() error         { return nil }
