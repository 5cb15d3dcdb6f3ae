package queue

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/weir-edge/weir/impl/disk"
)

// TestEveryByte: a file that is cut at any byte loses nothing before; one of which any byte is another loses one record
// at most, says so, and keeps a copy.
func TestEveryByte(t *testing.T) {
	d := flash(1)
	q := open(t, d)
	for i := range 5 {
		check(t, q.Put(Write{Target: pod(i), Base: status("a"), Ours: status(fmt.Sprint("w", i))}))
	}
	file := d.Files[fileName].Now
	for at := range file {
		d := flash(2)
		d.Put(fileName, file[:at])
		if at > len(magic) {
			if q := open(t, d); q.Stats().DamagedByte > 0 {
				t.Fatalf("cut at %d: %+v", at, q.Stats())
			}
		}
		d = flash(2)
		d.Put(fileName, append(append(bytes.Clone(file[:at]), file[at]^0x41), file[at+1:]...))
		q := open(t, d)
		n, s := q.Len(), q.Stats()
		last := at >= bytes.LastIndex(file, []byte(mark))
		switch {
		case n < 4 || at < len(magic) && n < 5:
			t.Fatalf("another byte at %d: %d entries are left", at, n)
		case s.DamagedByte == 0 && !last:
			t.Fatalf("another byte at %d: nobody noticed", at)
		case s.DamagedByte > 0 &&
			!bytes.Equal(d.Files[badName].Now, append(append(bytes.Clone(file[:at]), file[at]^0x41), file[at+1:]...)):
			t.Fatalf("another byte at %d: no copy is kept", at)
		}
		check(t, q.Put(Write{Target: pod(9), Ours: status("new")}))
		if again := open(t, d.Restart()); again.Len() != n+1 || again.Stats().DamagedByte > 0 {
			t.Fatalf("another byte at %d: after the next write: %d entries, %+v", at, again.Len(), again.Stats())
		}
	}
}

// TestAnotherVersion: what another version of Weir wrote, of which nothing can be read, is kept for it; without the
// key, and with it. A file in the clear is not kept beside a key.
func TestAnotherVersion(t *testing.T) {
	key, err := disk.NewKey(bytes.Repeat([]byte("k"), disk.Size))
	check(t, err)
	for name, key := range map[string]*disk.Key{"with a key": key, "without": nil} {
		d := flash(3)
		newer := []byte("weirqueue7\nnobody knows what this says")
		d.Put(fileName, newer)
		q, err := Open(Config{Disk: d, Key: key, Logger: quiet, PushedPerSecond: 1e9})
		check(t, err)
		if q.Len() != 0 || q.Stats().DamagedByte == 0 || !bytes.Equal(d.Files[badName].Now, newer) {
			t.Errorf("%s: %d entries, %+v; kept: %q", name, q.Len(), q.Stats(), d.Files[badName].Now)
		}
		check(t, q.Put(Write{Target: pod(1), Ours: status("new")}))
	}
	d := flash(4)
	check(t, open(t, d).Put(Write{Target: pod(1), Ours: status("a secret")}))
	d.Files[fileName].Now[len(magic)-2] = '7'
	if _, err := Open(Config{Disk: d, Key: key, Logger: quiet, PushedPerSecond: 1e9}); err != nil ||
		d.Files[badName] != nil {
		t.Errorf("%v; what stood in the clear is kept beside the key", err)
	}
}

// FuzzLog: no file makes the reader panic, and what it takes, it writes and reads again.
func FuzzLog(f *testing.F) {
	d := flash(1)
	q := open(f, d)
	check(f, q.Put(Write{Target: pod(1), Base: status("a"), Ours: status("b")}))
	check(f, q.Put(Write{Target: eventOf(1), Ours: []byte(`{"count":1}`)}))
	f.Add(d.Files[fileName].Now, []byte{})
	f.Add([]byte(magic), (&record{
		kind: recordKeep, seq: 3, flag: true, entry: Entry{
			Target: node(), Seq: 3, Ours: []byte("1"), Base: []byte("2"), Sent: []byte("3"), sentSeq: 2,
		},
	}).encode())
	f.Add([]byte(magic), (&record{kind: recordSent, seq: 3, sentAt: "5"}).encode())
	f.Fuzz(func(t *testing.T, file, one []byte) {
		s := newState()
		take := func(r *record) { s.apply(r.own()) }
		if c := (format{}).read(file, take); c.end > len(file) || c.bad > c.end {
			t.Fatalf("%d bytes: %+v", len(file), c)
		}
		if r, err := parseRecord(one); err == nil {
			s.apply(r.own())
			if again, err := parseRecord(r.encode()); err != nil || again.kind != r.kind {
				t.Fatalf("%+v: %v", r, err)
			}
		}
		out := newState()
		(format{}).read(append([]byte(magic), s.frames(format{})...), func(r *record) { out.apply(r.own()) })
		if len(out.entries) != len(s.entries) || out.bytes != s.bytes || out.events != s.events {
			t.Fatalf("%d entries of %d bytes, read again %d of %d", len(s.entries), s.bytes, len(out.entries), out.bytes)
		}
	})
}
