package reverse

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"golang.org/x/net/http2"
)

// FuzzFrames: what is read is what was sent, up to a frame of another type, however the bytes come.
func FuzzFrames(f *testing.F) {
	frame := func(kind http2.FrameType, n int) []byte {
		var b bytes.Buffer
		_ = http2.NewFramer(&b, nil).WriteRawFrame(kind, 0, 1, make([]byte, n))
		return b.Bytes()
	}
	good := append(frame(http2.FrameData, 300), frame(http2.FramePing, 8)...)
	f.Add(good)
	f.Add(append(good, frame(0xee, 10)...))
	f.Add(append(good, frame(http2.FramePushPromise, 0)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		wrong := false
		for rest := b; len(rest) >= 9; {
			n := 9 + (int(rest[0])<<16 | int(rest[1])<<8 | int(rest[2]))
			if wrong = !known[http2.FrameType(rest[3])]; wrong || n > len(rest) {
				break
			}
			rest = rest[n:]
		}
		for _, in := range []io.Reader{bytes.NewReader(b), iotest.OneByteReader(bytes.NewReader(b))} {
			got, err := io.ReadAll(&frames{in: in})
			if wrong != (err != nil) || !wrong && !bytes.Equal(got, b) || !bytes.HasPrefix(b, got) {
				t.Fatalf("%x: %x, %v: want an error: %v", b, got, err, wrong)
			}
		}
	})
}

// TestFramesError: an error of the connection is passed on.
func TestFramesError(t *testing.T) {
	other := errors.New("other")
	if _, err := io.ReadAll(&frames{in: iotest.ErrReader(other)}); !errors.Is(err, other) {
		t.Errorf("%v", err)
	}
}
