package answer

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// ShortWatch is the time for which a watch goes on behind what it has shown last, before it ends: client-go lists after
// one that has shown nothing for the whole of its life, if that was less than a second (VeryShortWatchError of its
// reflector). With a streaming list that life begins behind the last of the initial objects, when the client has taken
// them in.
const ShortWatch = 2 * time.Second

// Over reports whether a watch may end behind the frame that was just given: somebody else goes on from there. shown is
// what the frame says; nil: that cannot be told.
type Over func(shown func() *wire.Event) bool

// Frames is the body of a watch that somebody else gives. However that ends, its reader sees an end in order, behind a
// whole frame: after such a one client-go goes on at the version that it has seen. After a stream that is reset, and
// after half a frame in other clients, it lists.
type Frames struct {
	body     io.ReadCloser
	encoding wire.Encoding
	over     Over
	ctx      context.Context // of the request
	clock    clock.Clock
	last     time.Time // when it began, or gave a frame

	held   []byte // read, and not given
	whole  int    // so much of it are whole frames
	seen   int    // so much of it was looked at
	json   depth
	raw    bool  // these are no frames: they pass as they come
	broken error // how the body ended
	end    error // how this ends
}

// Whole makes an answer end in order if it is a watch; over may be nil. kube-apiserver compresses a watch for a client
// that asks for it, as client-go does: it crosses the link so, and its client, on this node, gets it plain.
func Whole(resp *http.Response, over Over, clk clock.Clock) {
	packed := resp.Header.Get("Content-Encoding")
	if resp.StatusCode != http.StatusOK || resp.ContentLength >= 0 || packed != "" && packed != "gzip" {
		return
	}
	f := &Frames{body: resp.Body, over: over, ctx: resp.Request.Context(), clock: clk, last: clk.Now()}
	switch media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media {
	case runtime.ContentTypeProtobuf:
		f.encoding = wire.Protobuf
	case runtime.ContentTypeJSON:
		f.encoding = wire.JSON
	default:
		return
	}
	if packed != "" {
		f.body = Unpack(resp.Body)
		resp.Header.Del("Content-Encoding")
	}
	resp.Body = f
}

// Unpack unpacks a compressed body as it comes.
func Unpack(body io.ReadCloser) io.ReadCloser { return &unpacked{body: body} }

// unpacked is a compressed body. It waits for the first byte when it is read, and not before.
type unpacked struct {
	body  io.ReadCloser
	plain *gzip.Reader
}

// Read implements io.Reader.
func (u *unpacked) Read(p []byte) (int, error) {
	if u.plain == nil {
		r, err := gzip.NewReader(u.body)
		if err != nil {
			return 0, err
		}
		u.plain = r
	}
	return u.plain.Read(p)
}

// Close implements io.Closer.
func (u *unpacked) Close() error { return u.body.Close() }

// Close implements io.Closer.
func (f *Frames) Close() error { return f.body.Close() }

// Read implements io.Reader.
func (f *Frames) Read(p []byte) (int, error) {
	for f.whole == 0 {
		if f.end == nil && f.broken != nil {
			f.finish()
		}
		if f.end != nil {
			return 0, f.end
		}
		n, err := f.body.Read(p)
		f.held, f.broken = append(f.held, p[:n]...), err
		f.look()
	}
	n := copy(p, f.held[:f.whole])
	f.held, f.whole, f.seen = f.held[n:], f.whole-n, f.seen-n
	if len(f.held) == 0 { // an idle watch holds nothing
		f.held = nil
	}
	return n, nil
}

// finish takes how the body ended.
func (f *Frames) finish() {
	switch f.end = io.EOF; {
	case f.raw:
		f.end = f.broken
	case errors.Is(f.broken, io.EOF):
	default:
		late := f.clock.NewTimer(ShortWatch - f.clock.Since(f.last))
		defer late.Stop()
		select {
		case <-late.C():
		case <-f.ctx.Done():
		}
	}
}

// look finds whole frames in what is held, up to the one behind which the watch is over.
func (f *Frames) look() {
	for !f.raw && f.end == nil {
		if f.encoding == wire.JSON && f.seen == f.whole { // of a frame that was given
			f.ended()
			f.whole = f.seen
		}
		start := f.whole
		n, ok := f.next()
		switch {
		case !ok || len(f.held)-start > wire.MaxObject && n == 0:
			f.raw = true
		case n == 0:
			return
		default:
			f.whole, f.last = start+n, f.clock.Now()
			f.seen = max(f.seen, f.whole)
			if f.over != nil && f.over(func() *wire.Event { return f.event(f.held[start:f.whole]) }) {
				f.held, f.end = f.held[:f.whole], io.EOF
			}
		}
	}
	if f.raw {
		f.whole, f.seen = len(f.held), len(f.held)
	}
}

// event reads a frame.
func (f *Frames) event(frame []byte) *wire.Event {
	ev, err := wire.NewEventReader(bytes.NewReader(frame), f.encoding, wire.Kind{}).Next()
	if err != nil {
		return nil
	}
	return ev
}

// next is the length of the first frame behind those that are known, 0 if it is not whole. ok is false of what is no
// frame.
func (f *Frames) next() (n int, ok bool) {
	rest := f.held[f.whole:]
	if f.encoding == wire.JSON {
		for f.seen < len(f.held) {
			c := f.held[f.seen]
			if f.json.open == 0 && c != '{' {
				return 0, false
			}
			f.seen++
			if f.json.take(c) {
				f.ended()
				return f.seen - f.whole, true
			}
		}
		return 0, true
	}
	if len(rest) < 4 {
		return 0, true
	}
	size := int64(binary.BigEndian.Uint32(rest)) + 4
	if size > wire.MaxObject {
		return 0, false
	}
	if int64(len(rest)) < size {
		return 0, true
	}
	return int(size), true
}

// ended takes the line end behind a JSON value, which some clients wait for.
func (f *Frames) ended() {
	for f.seen < len(f.held) && f.held[f.seen] == '\n' {
		f.seen++
	}
}

// depth follows how deep a JSON text is.
type depth struct {
	open           int
	text, escaping bool
}

// take takes a byte. It reports whether that ends a value.
func (d *depth) take(c byte) (ends bool) {
	switch {
	case d.escaping:
		d.escaping = false
	case d.text && c == '\\':
		d.escaping = true
	case c == '"':
		d.text = !d.text
	case d.text:
	case c == '{' || c == '[':
		d.open++
	case c == '}' || c == ']':
		d.open--
		return d.open == 0
	}
	return false
}
