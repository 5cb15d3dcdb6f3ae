package timeline

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// openEvent is the name of the first event of a timeline.
const openEvent = "timeline"

// Writer appends events to a timeline. It is safe for concurrent use.
type Writer struct {
	clock clock.PassiveClock
	start time.Time

	mu     sync.Mutex
	out    io.Writer
	last   time.Duration
	buf    bytes.Buffer
	rest   []byte // what the operating system did not take of the last line, e.g. on a full disk
	lost   int
	err    error // the first one
	closed bool
}

// Create starts a timeline in a new file, in place of an older one at the same path.
func Create(path string, c clock.PassiveClock) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("create timeline: %w", err)
	}
	w := New(f, c)
	if err := w.Err(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return w, nil
}

// New starts a timeline on out. Close syncs and closes out if it can be synced and closed.
func New(out io.Writer, c clock.PassiveClock) *Writer {
	w := &Writer{clock: c, start: c.Now(), out: out}
	w.Emit(Event{Lane: Phase, Name: openEvent, Strings: map[string]string{
		"schema": Schema,
		"start":  w.start.UTC().Format(time.RFC3339Nano),
	}})
	return w
}

// Start is the moment that the times of events count from.
func (w *Writer) Start() time.Time { return w.start }

// Emit stamps e with the time since the start and appends it. An event that cannot be written is counted,
// see Err. The maps of e are not changed and not kept.
func (w *Writer) Emit(e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		w.lose(errors.New("timeline is closed"))
		return
	}
	// Within the lock, so that lines are in the order of their times; a clock that is set back does not break it.
	e.At = max(w.clock.Since(w.start), w.last)
	w.buf.Reset()
	if err := e.encode(&w.buf); err != nil {
		w.lose(err)
		return
	}
	if err := w.finishLine(); err != nil {
		w.lose(err)
		return
	}
	w.last = e.At
	n, err := w.out.Write(w.buf.Bytes())
	if err == nil {
		return
	}
	if n == 0 {
		w.lose(err)
		return
	}
	w.rest = bytes.Clone(w.buf.Bytes()[n:])
	w.fail(err)
}

// finishLine writes what an earlier write left over, so that the next line starts on its own.
func (w *Writer) finishLine() error {
	if len(w.rest) == 0 {
		return nil
	}
	n, err := w.out.Write(w.rest)
	w.rest = w.rest[n:]
	return err
}

func (w *Writer) lose(err error) {
	w.lost++
	w.fail(err)
}

func (w *Writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// Err reports whether events were lost, how many, and why the first was; nil if all were written.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.errLocked()
}

func (w *Writer) errLocked() error {
	lost := w.lost
	if len(w.rest) > 0 {
		lost++
	}
	if lost == 0 {
		return nil
	}
	return fmt.Errorf("timeline: lost %d events: %w", lost, w.err)
}

// Close makes the timeline durable and tells, as Err does, what is missing in it. Later events are lost.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	if err := w.finishLine(); err != nil {
		w.fail(err)
	}
	errs := []error{w.errLocked()}
	if f, ok := w.out.(interface{ Sync() error }); ok {
		errs = append(errs, f.Sync())
	}
	if f, ok := w.out.(io.Closer); ok {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
