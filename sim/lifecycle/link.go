package lifecycle

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/weir-edge/weir/impl/heartbeat"
)

// errLost is of a request or an answer that did not arrive.
var errLost = errors.New("no answer")

// link is the way of a hub to a server. It has to be open until an answer is back, and for as long as a watch lasts.
type link struct {
	w    *World
	open func() bool              // the lock is held
	to   func() http.RoundTripper // the lock is held
}

// RoundTrip implements http.RoundTripper.
func (l *link) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer req.Body.Close()
	}
	if err := l.cross(req.Context()); err != nil {
		return nil, err
	}
	var server http.RoundTripper
	l.w.locked(func() { server = l.to() })
	ctx, cancel := context.WithCancel(req.Context())
	resp, err := server.RoundTrip(req.WithContext(ctx))
	if err == nil {
		err = l.cross(ctx)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &stream{resp.Body, l, ctx, cancel}
	if req.URL.Query().Has("watch") {
		go l.guard(ctx, cancel)
	}
	return resp, nil
}

// cross is one way over the link.
func (l *link) cross(ctx context.Context) error {
	way, open := heartbeat.Attempt, false
	l.w.locked(func() {
		if open = l.open(); open {
			way = l.w.span(time.Millisecond, 400*time.Millisecond)
		}
	})
	if !sleep(ctx, way) {
		return ctx.Err()
	}
	if open {
		l.w.locked(func() { open = l.open() })
		if open {
			return nil
		}
		sleep(ctx, heartbeat.Attempt)
	}
	return errLost
}

// guard ends a watch when the link is not open.
func (l *link) guard(ctx context.Context, end func()) {
	for open := true; open && sleep(ctx, time.Second); {
		l.w.locked(func() { open = l.open() })
	}
	end()
}

// stream is an answer, which takes its time.
type stream struct {
	io.ReadCloser

	l   *link
	ctx context.Context
	end func()
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if n > 0 && !sleep(s.ctx, s.l.w.draw(time.Millisecond, 500*time.Millisecond)) {
		return 0, s.ctx.Err()
	}
	return n, err
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.end()
	return s.ReadCloser.Close()
}
