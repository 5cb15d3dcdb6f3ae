package reverse

import (
	"encoding/binary"
	"fmt"
	"io"

	"golang.org/x/net/http2"
)

// frames reads what a hub says in HTTP/2, and fails at a frame of a type that no server of net/http sends. net/http
// would write a line to the log of the process for each such frame, without a bound.
type frames struct {
	in   io.Reader
	head [9]byte // of the next frame, so far
	has  int     // bytes of head
	left int     // bytes of the frame that is read
}

// known are the types that a server sends.
var known = map[http2.FrameType]bool{
	http2.FrameData: true, http2.FrameHeaders: true, http2.FrameRSTStream: true, http2.FrameSettings: true,
	http2.FramePing: true, http2.FrameGoAway: true, http2.FrameWindowUpdate: true, http2.FrameContinuation: true,
}

// Read implements io.Reader.
func (f *frames) Read(p []byte) (int, error) {
	n, err := f.in.Read(p)
	for b := p[:n]; len(b) > 0; {
		if f.left > 0 {
			over := min(f.left, len(b))
			f.left, b = f.left-over, b[over:]
			continue
		}
		got := copy(f.head[f.has:], b)
		f.has, b = f.has+got, b[got:]
		if f.has == len(f.head) {
			if kind := http2.FrameType(f.head[3]); !known[kind] {
				return 0, fmt.Errorf("a frame of type %v: want those of a server", kind)
			}
			f.has, f.left = 0, int(binary.BigEndian.Uint32(f.head[:4])>>8)
		}
	}
	return n, err
}
