package testkit

import (
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"syscall"

	"github.com/weir-edge/weir/impl/disk"
)

// ErrCut is what the operation in which power is cut, and each later one, returns.
var ErrCut = errors.New("the power is cut")

// Flash is a disk that loses power and fills up. It keeps what was made durable apart from what was only written: after
// a power cut a file has its durable bytes and any part of the rest, even with holes.
type Flash struct {
	rnd     *rand.Rand
	Files   map[string]*Inode
	Ops     int // so far
	CutAt   int // power is cut in this operation; 0: never
	Fail    func(op string) bool
	Written int64
	Syncs   int
	Down    bool
}

// Inode is a file on it.
type Inode struct {
	Now     []byte
	durable []byte // at the last Sync
	// Bytes that a failed Sync gave up: they can be read, and no later Sync writes them.
	lostFrom, lostTo int
}

// NewFlash makes an empty one; what is left to chance is decided by rnd.
func NewFlash(rnd *rand.Rand) *Flash {
	return &Flash{rnd: rnd, Files: map[string]*Inode{}, Fail: func(string) bool { return false }}
}

// op counts an operation. done reports whether it happens, and err what its caller is told.
func (d *Flash) op(name string) (done bool, err error) {
	if d.Down {
		return false, ErrCut
	}
	d.Ops++
	switch {
	case d.Ops == d.CutAt:
		d.Down = true
		return d.rnd.IntN(2) == 0, ErrCut
	case d.Fail(name):
		return d.rnd.IntN(2) == 0, syscall.ENOSPC
	}
	return true, nil
}

// Restart gives the disk as it is found after a power cut.
func (d *Flash) Restart() *Flash {
	after := NewFlash(d.rnd)
	for name, f := range d.Files {
		b := f.afterCut(d.rnd)
		after.Files[name] = &Inode{Now: b, durable: append([]byte(nil), b...)}
	}
	return after
}

func (f *Inode) afterCut(rnd *rand.Rand) []byte {
	// A cut that was not synced may not have happened.
	n := min(len(f.durable), len(f.Now))
	if string(f.durable[:n]) != string(f.Now[:n]) || len(f.Now) < len(f.durable) && rnd.IntN(2) == 0 {
		return append([]byte(nil), f.durable...)
	}
	b := append([]byte(nil), f.Now[:n+rnd.IntN(len(f.Now)-n+1)]...)
	if len(b) > n && rnd.IntN(3) == 0 { // the size arrived, the bytes did not
		clear(b[n+rnd.IntN(len(b)-n):])
	}
	return b
}

// Open implements disk.Disk.
func (d *Flash) Open(name string) (disk.File, error) {
	f, ok := d.Files[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return &handle{d: d, f: f}, nil
}

// Create implements disk.Disk.
func (d *Flash) Create(name string) (disk.File, error) {
	done, err := d.op("create")
	f := &Inode{}
	if done {
		d.Files[name] = f
	}
	return &handle{d: d, f: f}, err
}

// Rename implements disk.Disk.
func (d *Flash) Rename(from, to string) error {
	done, err := d.op("rename")
	if f, ok := d.Files[from]; !ok {
		return fs.ErrNotExist
	} else if done {
		d.Files[to] = f
		delete(d.Files, from)
	}
	return err
}

// Remove implements disk.Disk.
func (d *Flash) Remove(name string) error {
	done, err := d.op("remove")
	if done {
		delete(d.Files, name)
	}
	return err
}

type handle struct {
	d  *Flash
	f  *Inode
	at int
}

func (h *handle) Read(p []byte) (int, error) {
	if h.at >= len(h.f.Now) {
		return 0, io.EOF
	}
	n := copy(p, h.f.Now[h.at:])
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
	h.f.Now = append(h.f.Now, p[:n]...)
	h.d.Written += int64(n)
	return n, err
}

func (h *handle) Sync() error {
	done, err := h.d.op("sync")
	switch {
	case done:
		h.f.durable = append([]byte(nil), h.f.Now...)
		if h.f.lostTo > 0 {
			clear(h.f.durable[h.f.lostFrom:h.f.lostTo])
		}
		h.d.Syncs++
	case err != nil:
		h.f.lostFrom, h.f.lostTo = min(len(h.f.durable), len(h.f.Now)), len(h.f.Now)
	}
	return err
}

func (h *handle) Cut(size int64) error {
	done, err := h.d.op("cut")
	if done {
		h.f.Now = h.f.Now[:size:size]
		if h.f.lostTo = min(h.f.lostTo, int(size)); h.f.lostTo <= h.f.lostFrom {
			h.f.lostFrom, h.f.lostTo = 0, 0
		}
	}
	return err
}

func (h *handle) Size() (int64, error) { return int64(len(h.f.Now)), nil }
func (h *handle) Close() error         { return nil }

// Put makes a file with a content, durably, without an operation.
func (d *Flash) Put(name string, content []byte) {
	d.Files[name] = &Inode{Now: append([]byte(nil), content...), durable: append([]byte(nil), content...)}
}
