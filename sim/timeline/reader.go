package timeline

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
)

// LineError is a line that is not an event.
type LineError struct {
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("timeline line %d: %v", e.Line, e.Err) }

func (e *LineError) Unwrap() error { return e.Err }

// Reader reads a timeline, one event at a time.
type Reader struct {
	in        *bufio.Reader
	buf       []byte
	line      int
	last      time.Duration
	err       error
	truncated bool
}

// NewReader returns a reader of the timeline in r.
func NewReader(r io.Reader) *Reader { return &Reader{in: bufio.NewReader(r)} }

// Next returns the next event, io.EOF after the last one, or a *LineError. An error stays.
func (r *Reader) Next() (Event, error) {
	if r.err != nil {
		return Event{}, r.err
	}
	e, err := r.next()
	r.err = err
	return e, err
}

// All yields the events that are left. It ends after the first error, which it yields.
func (r *Reader) All() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			e, err := r.Next()
			if errors.Is(err, io.EOF) || !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Truncated tells, after io.EOF, that the last line was cut off: the writer was killed or its disk was full.
func (r *Reader) Truncated() bool { return r.truncated }

func (r *Reader) next() (Event, error) {
	line, whole, err := r.readLine()
	if err != nil {
		return Event{}, err
	}
	e, err := decode(line)
	switch {
	case err == nil && e.At < r.last:
		err = fmt.Errorf("time %d is before that of the line above, %d", e.At, r.last)
	case err != nil && !whole && beginsEvent(line) && errors.Is(err, io.ErrUnexpectedEOF):
		r.truncated = true
		return Event{}, io.EOF
	}
	if err != nil {
		return Event{}, &LineError{r.line, err}
	}
	r.last = e.At
	return e, nil
}

// readLine returns the next line without its newline; whole reports whether the newline was there. The line is valid
// until the next call.
func (r *Reader) readLine() (line []byte, whole bool, err error) {
	r.buf = r.buf[:0]
	r.line++
	for {
		part, err := r.in.ReadSlice('\n')
		r.buf = append(r.buf, part...)
		switch {
		case len(r.buf) > MaxLine:
			return nil, false, &LineError{r.line, fmt.Errorf("longer than %d bytes", MaxLine)}
		case err == nil:
			return r.buf[:len(r.buf)-1], true, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(r.buf) > 0:
			return r.buf, false, nil
		case errors.Is(err, io.EOF):
			return nil, false, io.EOF
		default:
			return nil, false, fmt.Errorf("read timeline: %w", err)
		}
	}
}

// beginsEvent tells a line that a writer began from other bytes without a newline at the end of a file.
func beginsEvent(line []byte) bool {
	const begin = `{"t":`
	return bytes.HasPrefix(line, []byte(begin)) || bytes.HasPrefix([]byte(begin), line)
}
