package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// watchman gives up a pull that brings no byte while it asks for some, as the CRI plugin does
// (image_pull_progress_timeout).
type watchman struct {
	patience time.Duration

	mu     sync.Mutex
	asked  int // requests that are not answered to their end
	last   time.Time
	bytes  int64
	change chan struct{} // has something when a request began
}

func newWatchman(patience time.Duration) *watchman {
	return &watchman{patience: patience, change: make(chan struct{}, 1)}
}

// watch ends the pull when it stands still. The channel is closed when ctx has ended.
func (w *watchman) watch(ctx context.Context, giveUp context.CancelCauseFunc) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			wait := w.left(time.Now())
			if wait == 0 {
				giveUp(fmt.Errorf("no byte came for %v", w.patience))
				return
			}
			timer := time.NewTimer(wait)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-w.change:
			case <-timer.C:
			}
			timer.Stop()
		}
	}()
	return ended
}

// left is how long to wait until the pull is given up, 0 if that is now.
func (w *watchman) left(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asked == 0 {
		return w.patience
	}
	return max(w.last.Add(w.patience).Sub(now), 0)
}

// around counts what comes by a transport.
func (w *watchman) around(next http.RoundTripper) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	return tripper(func(r *http.Request) (*http.Response, error) {
		w.begin()
		resp, err := next.RoundTrip(r)
		if err != nil {
			w.end()
			return nil, err
		}
		resp.Body = &counted{ReadCloser: resp.Body, end: sync.OnceFunc(w.end), read: w.read}
		return resp, nil
	})
}

func (w *watchman) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asked++; w.asked == 1 {
		w.last = time.Now()
	}
	select {
	case w.change <- struct{}{}:
	default:
	}
}

func (w *watchman) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked--
}

func (w *watchman) read(n int) {
	if n <= 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bytes, w.last = w.bytes+int64(n), time.Now()
}

type tripper func(*http.Request) (*http.Response, error)

func (t tripper) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// counted is the body of an answer.
type counted struct {
	io.ReadCloser
	end  func()
	read func(int)
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	c.read(n)
	return n, err
}

func (c *counted) Close() error {
	defer c.end()
	return c.ReadCloser.Close()
}
