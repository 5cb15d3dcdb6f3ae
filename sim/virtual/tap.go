package virtual

import (
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// server is a relay that serves watches.
type server struct {
	*relay.Relay
	clock *relayClock
	taps  []*tap
	// the latest version of earlier eras that it held, or was told of by the one that fed it: who comes with one of these
	// has to be told.
	lost uint64
	era  int // of the cloud's, that what it holds is of: what the parts believe is in its history
}

// newServer is a relay that holds nothing. late: it came when somebody read it.
func newServer(l *Loop, late bool) *server {
	res, err := relay.ParseResource("endpointslices.v1.discovery.k8s.io")
	if err != nil {
		panic(err)
	}
	c := &relayClock{loop: l}
	r, err := relay.New(relay.Config{
		Resource: res, Clock: c, Gather: -1, Late: late, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	s := &server{Relay: r, clock: c}
	l.servers = append(l.servers, s)
	return s
}

// tap is a watch of a relay, as a coroutine: it runs when the relay may have changed, until it has shown all there is,
// and then waits. Where the relay itself waits for a version it is in the one timer that it has. So there is one
// thread.
type tap struct {
	s      *server
	p      *process // serves
	take   func(*wire.Event)
	end    func(error) // told when the relay ends the watch; nil: in order
	cancel context.CancelFunc
	resume func() (struct{}, bool)
	yield  func(struct{}) bool
	shown  []relay.Event // since it last ran
	err    error         // that ended it
	over   bool
	wake   int // grows with each wait
}

// watch shows a watch to take until end is told or close is called.
func (s *server) watch(p *process, o relay.WatchOptions, take func(*wire.Event), end func(error)) *tap {
	ctx, cancel := context.WithCancel(context.Background())
	o.Bookmarks = true
	t := &tap{s: s, p: p, take: take, end: end, cancel: cancel}
	t.resume, _ = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		t.err = t.serve(ctx, o)
	})
	s.taps = append(s.taps, t)
	t.run()
	return t
}

func (t *tap) serve(ctx context.Context, o relay.WatchOptions) error {
	cur, err := t.s.Watch(ctx, o)
	for err == nil {
		had := len(t.shown)
		var wait relay.Wait
		t.shown, wait, err = cur.Read(t.shown)
		if err == nil && len(t.shown) == had && !t.wait(wait.Until.Sub(t.s.clock.Now())) {
			return nil
		}
	}
	return err
}

// changed lets all watches look at the relay.
func (s *server) changed() {
	for _, t := range slices.Clone(s.taps) {
		t.run()
	}
}

// run lets the watch show what it has, and hands that on.
func (t *tap) run() {
	if t.over {
		return
	}
	t.wake++
	t.s.clock.serving = t
	_, waits := t.resume()
	t.s.clock.serving = nil
	if !waits {
		t.forget()
	}
	shown := t.shown
	t.shown = nil
	for i := range shown {
		if t.end == nil { // closed meanwhile
			return
		}
		t.take(&shown[i].Event)
	}
	switch {
	case waits:
	case errors.Is(t.err, io.EOF):
		t.finish(nil)
	default:
		t.finish(t.err)
	}
}

// wait is called by the watch. It reports whether there may be something to do, or else that the client is gone.
func (t *tap) wait(d time.Duration) bool {
	if t.over {
		return false
	}
	wake := t.wake
	t.p.after(d, func() {
		if t.wake == wake {
			t.run()
		}
	})
	t.yield(struct{}{})
	return !t.over
}

func (t *tap) finish(err error) {
	if end := t.end; end != nil {
		t.close()
		end(err)
	}
}

// close is the client's end: nothing is told any more.
func (t *tap) close() {
	t.end = nil
	if t.over {
		return
	}
	t.forget()
	t.cancel()
	t.resume() // serve returns
}

func (t *tap) forget() {
	t.over = true
	if i := slices.Index(t.s.taps, t); i >= 0 {
		t.s.taps = slices.Delete(t.s.taps, i, i+1)
	}
}

var (
	errGone      = apierrors.NewResourceExpired("too old resource version")
	errForbidden = apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no rights"))
	errBusy      = apierrors.NewTooManyRequests("busy", 3)
)

// retryAfter is how long an answer asks to wait.
func retryAfter(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return time.Duration(seconds) * time.Second
}

// code is that of the answer that an error is about, 0 if there was none.
func code(err error) int {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return 0
	}
	return int(answer.Status().Code)
}

// isGone reports whether a watch ended, or did not begin, because its version is too old.
func isGone(err error) bool { return apierrors.IsResourceExpired(err) }

// list is what a relay gives as a list: version 0 if it has none.
func (s *server) list() (version uint64, items []*wire.Object) {
	p, err := s.Read(context.Background(), relay.PageOptions{})
	if err != nil {
		return 0, nil
	}
	return p.Version, p.Items
}
