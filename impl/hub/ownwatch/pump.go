package ownwatch

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// errBackwards ends a stream: behind an event of one version comes none of an earlier one.
var errBackwards = errors.New("the cloud went back to an earlier version")

// open opens a stream for a question, by a query. If the cloud gives none, the stream is nil, and the answer is the
// cloud's. The end of ctx ends the waiting for an answer. begun: the hub wants it, and no client.
func (w *Watches) open(ctx context.Context, q *question, query url.Values, begun bool) (*stream, *http.Response,
	error) {
	place := w.Place()
	if !w.enter() {
		return nil, nil, context.Canceled
	}
	streaming, cancel := context.WithCancel(w.streaming)
	over := func() {
		cancel()
		w.running.Done()
	}
	out := q.req.Clone(streaming)
	query = maps.Clone(query)
	query.Set("timeoutSeconds", strconv.Itoa(int(lasts/time.Second)))
	out.URL.RawQuery = query.Encode()
	out.Header.Set("Accept-Encoding", "gzip")
	waits := context.AfterFunc(ctx, cancel)
	resp, err := w.pass(out)
	if err != nil {
		waits()
		over()
		return nil, nil, err
	}
	enc, ok := encodingOf(resp)
	if !ok {
		resp.Body = &closing{ReadCloser: resp.Body, over: over}
		return nil, resp, nil
	}
	if !waits() {
		_ = resp.Body.Close()
		over()
		return nil, nil, ctx.Err()
	}
	s := &stream{
		clock: w.Clock, place: place, packed: resp.Header.Get("Content-Encoding") != "", begun: begun,
		header: resp.Header.Clone(), cancel: cancel, taken: map[*reader]int{}, changed: make(chan struct{}),
	}
	s.header.Del("Content-Encoding")
	go func() {
		defer over()
		defer resp.Body.Close()
		err := w.pump(streaming, q, s, resp.Body, enc)
		w.ended(q, s)
		s.finish(err)
		w.Logger.Debug("a watch of the node's own ended", "path", q.asked.Path, "err", err)
	}()
	return s, resp, nil
}

// closing is the body of an answer that is no stream.
type closing struct {
	io.ReadCloser
	over func()
}

// Close implements io.Closer.
func (c *closing) Close() error {
	defer c.over()
	return c.ReadCloser.Close()
}

// counted counts what comes of a body.
type counted struct {
	io.ReadCloser
	n int64
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n += int64(n)
	return n, err
}

// pump reads a stream until it ends, or ctx does.
func (w *Watches) pump(ctx context.Context, q *question, s *stream, body io.ReadCloser, enc wire.Encoding) error {
	came := &counted{ReadCloser: body}
	body = came
	if s.packed {
		body = answer.Unpack(body)
	}
	complete := false
	for events := wire.NewEventReader(body, enc, wire.Kind{}); ; {
		ev, err := events.Next()
		if err != nil {
			return err
		}
		if err := s.take(ctx, ev); err != nil {
			return err
		}
		if ev.InitialEnd && !complete {
			complete = true
			s.complete(ev.Version)
			w.listed(q, s, came.n)
		}
	}
}

// take hands an event to the clients. It waits while one of them is far behind.
func (s *stream) take(ctx context.Context, ev *wire.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case ev.Type == wire.Error:
		s.base = 0
	case s.base > 0 && ev.Version < s.last:
		return errBackwards
	}
	s.frames = append(s.frames, frame{ev.Frame, ev.Version})
	s.size += len(ev.Frame)
	s.last, s.heard = ev.Version, s.clock.Now()
	s.settle()
	for s.behind() > ahead {
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		s.mu.Lock()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// behind is how many bytes its slowest client has not taken; mu is held.
func (s *stream) behind() (n int) {
	for _, f := range s.frames[s.slowest()-s.dropped:] {
		n += len(f.raw)
	}
	return n
}

// complete takes that the list, which a stream begins with, is complete at a version.
func (s *stream) complete(version uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.base = version
	s.alone()
}

// finish takes how a stream ended.
func (s *stream) finish(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end, s.base = err, 0
	if s.idle != nil {
		s.idle.Stop()
	}
	s.settle()
}
