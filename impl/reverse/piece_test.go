package reverse

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

func pieced(all ...string) []byte {
	var b []byte
	for _, s := range all {
		head := make([]byte, pieceHead)
		putHead(head, len(s))
		b = append(append(b, head...), s...)
	}
	return b
}

// TestPieces: what pieces hold is read whatever the sizes of reads are, and a cut is no end.
func TestPieces(t *testing.T) {
	whole := pieced("one", "t", "hree", "")
	for name, in := range map[string]io.Reader{
		"at once": bytes.NewReader(whole), "by bytes": iotest.OneByteReader(bytes.NewReader(whole)),
		"with its end": iotest.DataErrReader(bytes.NewReader(whole)),
	} {
		if got, err := io.ReadAll(&pieces{in: in}); err != nil || string(got) != "onethree" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for n := range len(whole) {
		if _, err := io.ReadAll(&pieces{in: bytes.NewReader(whole[:n])}); !errors.Is(err, errCut) {
			t.Errorf("%d bytes: %v, want that it is cut", n, err)
		}
	}
	if _, err := io.ReadAll(&pieces{in: bytes.NewReader([]byte{0xff, 0xff})}); !errors.Is(err, errSize) {
		t.Errorf("too long: %v", err)
	}
	other := errors.New("other")
	if _, err := io.ReadAll(&pieces{in: iotest.ErrReader(other)}); !errors.Is(err, other) {
		t.Errorf("%v, want another error", err)
	}
}

// FuzzPieces: what somebody sends is read within its length, and ends well only by an empty piece.
func FuzzPieces(f *testing.F) {
	f.Add(pieced("one", "two", ""))
	f.Add(pieced("one"))
	f.Add([]byte{0x40, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		in := bytes.NewReader(b)
		got, err := io.ReadAll(&pieces{in: in})
		read := b[:len(b)-in.Len()]
		if len(got) > len(b) || err == nil && !bytes.HasSuffix(read, []byte{0, 0}) {
			t.Fatalf("%x: %x, %v", b, got, err)
		}
	})
}
