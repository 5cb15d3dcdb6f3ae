package offline

import (
	"bufio"
	"container/list"
	"io"
	"sync"
)

// MaxRecording bounds what all recordings under way hold of objects and documents that have not come as a whole yet. The largest document fits.
const MaxRecording = 2 * maxDocument

// room shares MaxRecording among recordings. When they hold more, the one that has stood still longest is given up: its client takes the
// answer slowly, and so that of others would not be kept.
type room struct {
	max int

	mu    sync.Mutex
	sum   int
	still list.List // of *tee that hold something, the one that stands still longest first
}

// hold says how much a recording holds now, and returns those that have to be given up for it. Its caller holds the lock of no tee.
func (r *room) hold(t *tee, n int) (tooMany []*tee) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(t)
	if n == 0 {
		return nil
	}
	t.size, t.at = n, r.still.PushBack(t)
	r.sum += n
	for r.sum > r.max && r.still.Len() > 1 { // one alone is bounded by what an object, or a document, may be
		oldest := r.still.Front().Value.(*tee)
		r.drop(oldest)
		tooMany = append(tooMany, oldest)
	}
	return tooMany
}

// leave says that a recording is over.
func (r *room) leave(t *tee) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(t)
}

func (r *room) drop(t *tee) {
	if t.at != nil {
		r.still.Remove(t.at)
		r.sum -= t.size
		t.at, t.size = nil, 0
	}
}

// intake is what a parser reads from. It counts what the parser may hold: all that it has read since it last let go.
type intake struct {
	from interface {
		io.Reader
		io.ByteReader
	}
	holds int
}

// open makes an intake read from a body.
func (in *intake) open(body io.Reader) {
	if s, ok := body.(*spout); ok {
		in.from = s
		return
	}
	in.from = bufio.NewReader(body)
}

// letGo says that an object is complete.
func (in *intake) letGo() { in.holds = 0 }

// Read implements io.Reader.
func (in *intake) Read(p []byte) (int, error) {
	n, err := in.from.Read(p)
	in.holds += n
	return n, err
}

// ReadByte implements io.ByteReader, which spares parsers a buffer of their own.
func (in *intake) ReadByte() (byte, error) {
	b, err := in.from.ReadByte()
	if err == nil {
		in.holds++
	}
	return b, err
}
