package snapshot

import (
	"bytes"
	"errors"
	"testing"
	"time"
)

// FuzzDecode: no file makes the reader panic, take more memory than the file is large, or half fill a relay; and what
// it takes it writes and reads again. The second argument is read as blocks without checksums: the right ones are put
// in.
func FuzzDecode(f *testing.F) {
	w, disk := small(f)
	good := disk.Files[fileName].Now
	f.Add(good, []byte{})
	f.Add([]byte{}, blocks(good))
	f.Add(good[:len(good)-3], blocks(good[:len(good)-9]))
	f.Fuzz(func(t *testing.T, file, unsigned []byte) {
		w.t = t
		for _, b := range [][]byte{file, sign(unsigned)} {
			r, c, err := w.load(b)
			if err != nil {
				if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrForeign) && !errors.Is(err, ErrNewer) {
					t.Fatal(err)
				}
				if r.Status().Synced {
					t.Fatal("refused, and the relay has something")
				}
				continue
			}
			if c.end.offset+c.torn != int64(len(b)) {
				t.Fatalf("%d bytes: %+v", len(b), c)
			}
			x, from, to := held(t, r)
			var out bytes.Buffer
			k := w.keeper(r, nil)
			copied, _ := r.Export()
			e := newEncoder(&out, position{})
			if err := k.export(t.Context(), e, copied, time.Unix(5, 0)); err != nil {
				t.Fatal(err)
			}
			again, _, err := w.load(out.Bytes())
			if err != nil {
				t.Fatalf("what was written is not read: %v", err)
			}
			if y, from2, to2 := held(t, again); y.From != x.From || y.To != x.To || from != from2 || to != to2 {
				t.Fatalf("%d to %d, was %d to %d", y.From, y.To, x.From, x.To)
			}
		}
	})
}

// blocks takes the checksums out of a file.
func blocks(b []byte) (out []byte) {
	for b = b[startSize:]; len(b) > headSize; {
		n := int(b[1]) | int(b[2])<<8
		n = min(n, len(b)-headSize)
		out = append(out, b[0], byte(n), byte(n>>8))
		out = append(out, b[headSize:headSize+n]...)
		b = b[headSize+n:]
	}
	return out
}

// sign makes a file of blocks without checksums.
func sign(b []byte) []byte {
	var out bytes.Buffer
	e := newEncoder(&out, position{})
	e.start()
	for len(b) >= 3 {
		kind, n := b[0], min(int(b[1])|int(b[2])<<8, len(b)-3)
		e.flush() // one block each
		e.block(kind)
		e.buf = append(e.buf, b[3:3+n]...)
		b = b[3+n:]
	}
	_ = e.end()
	return out.Bytes()
}
