package rest

import (
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/weir-edge/weir/impl/relay"
)

// gzipFrom is the size from which kube-apiserver compresses an answer (defaultGzipThresholdBytes).
const gzipFrom = 128 << 10

// chunk is how much of an answer is gathered before it is written: few and large writes are what TLS and HTTP/2 like.
const chunk = 64 << 10

// largeChunk is the same for an answer that is larger still: the HTTP/2 server of Go hands each write from goroutine to
// goroutine and back.
const largeChunk = 256 << 10

var (
	chunks = sync.Pool{New: func() any { b := make([]byte, 0, chunk); return &b }}
	larges = sync.Pool{New: func() any { b := make([]byte, 0, largeChunk); return &b }}
	gzips  = sync.Pool{New: func() any { w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed); return w }}
)

// body writes an answer in large pieces, compressed if that was asked for and is worth it.
type body struct {
	w      io.Writer
	gz     *gzip.Writer
	buf    *[]byte
	from   *sync.Pool    // that it goes back to
	stream *relay.Stream // nil: nobody waits for its end
	err    error
}

// newBody sends the header. size is the length of the body, or minus a lower bound of it.
func newBody(w http.ResponseWriter, s *relay.Stream, o output, size int64) *body {
	b := &body{stream: s, w: w, from: &chunks}
	if max(size, -size) > largeChunk && !o.gzip {
		b.from = &larges
	}
	b.buf = b.from.Get().(*[]byte)
	h := w.Header()
	h.Set("Content-Type", o.media)
	h.Set("Cache-Control", "no-cache, private")
	switch {
	case o.gzip && max(size, -size) >= gzipFrom:
		h.Set("Content-Encoding", "gzip")
		h.Add("Vary", "Accept-Encoding")
		b.gz = gzips.Get().(*gzip.Writer)
		b.gz.Reset(w)
		b.w = b.gz
	case size > 0 && o.media == mediaProtobuf:
		h.Set("Content-Length", strconv.FormatInt(size, 10))
	}
	w.WriteHeader(http.StatusOK)
	return b
}

// write appends to the body; false: the client is gone.
func (b *body) write(p []byte) bool {
	for len(p) > 0 && b.err == nil {
		n := copy((*b.buf)[len(*b.buf):cap(*b.buf)], p)
		*b.buf = (*b.buf)[:len(*b.buf)+n]
		p = p[n:]
		if len(*b.buf) == cap(*b.buf) {
			b.flush()
		}
	}
	return b.err == nil
}

func (b *body) flush() {
	if b.err != nil || len(*b.buf) == 0 {
		return
	}
	if b.stream == nil {
		_, b.err = b.w.Write(*b.buf)
	} else {
		b.err = b.stream.Write(b.w.Write, *b.buf)
	}
	*b.buf = (*b.buf)[:0]
}

func (b *body) close() {
	b.flush()
	if b.gz != nil {
		if b.err == nil {
			b.err = b.gz.Close()
		}
		b.gz.Reset(nil)
		gzips.Put(b.gz)
	}
	*b.buf = (*b.buf)[:0]
	b.from.Put(b.buf)
}
