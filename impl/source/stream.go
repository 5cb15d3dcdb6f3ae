package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// streamTimeout is the timeoutSeconds of streaming lists. kube-apiserver has no upper bound; a stock informer asks for 5 to 10 min.
const streamTimeout = 24 * time.Hour

// silentLook is how often is looked whether a silent connection lives again.
const silentLook = 500 * time.Millisecond

var (
	errQuiet = errors.New("nothing came")    // on a stream that is not worth keeping
	errMoved = errors.New("something moved") // while it was watched whether anything does

	errCheaper = errors.New("a list costs less")    // than the rest of a watch
	errEnough  = errors.New("the list is complete") // and what follows is not wanted
)

// streamList fills a relay by a streaming list (KEP-3157) and goes on with the events behind it. settle is called with the list's version before that is
// handed to the relay; it ends what feeds the relay beside. A relay that is beyond the list by then has all of it.
//
// kube-apiserver 1.37 compresses such a stream to its end, and no other watch: a third of the bytes. So a compressed one is
// kept for as long as it lasts. A quiet stream proves nothing about freshness, and kube-apiserver sends bookmarks once a
// minute, so while it is quiet, short watches of metadata run beside it: see prove. A stream that is not compressed is left
// for short watches once it is quiet.
//
// It takes up the history of other, if that is given.
func (f *Feeder) streamList(ctx context.Context, up *Upstream, other *historyError, settle func(uint64), why Cause) error {
	f.listing(why)
	ctx, stop := context.WithCancelCause(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop(nil)
	s := f.cfg.Relay.Status()
	intake := relay.NewIntake(f.cfg.Relay)
	mine, replace := &s.History, intake.End
	if other != nil || !s.Synced {
		mine = nil
	}
	if other != nil && other.yield {
		replace = intake.Yield
	}
	w, err := f.openIn(ctx, up, question{history: mine, past: !s.Synced, query: url.Values{
		"sendInitialEvents": {"true"}, "resourceVersionMatch": {"NotOlderThan"}, "timeoutSeconds": {strconv.Itoa(int(streamTimeout / time.Second))},
	}})
	if err != nil {
		return err
	}
	defer w.body.Close()
	in := w.history
	switch {
	case up.Progress: // it says so itself
	case other != nil:
		in = other.history
	default:
		in = s.History
	}
	heard := make(chan struct{}, 1)
	var items []*wire.Object
	done := false
	err = f.read(ctx, up, w, func(ev *wire.Event) error {
		switch {
		case done:
			err := f.apply(intake, ev, !w.compressed && up.Gzip)
			select {
			case heard <- struct{}{}:
			default:
			}
			return err
		case ev.InitialEnd:
			settle(ev.Version)
			var err error
			if in, next := f.historyOf(up, s, in, ev.Version, items); next || other != nil || f.cfg.Relay.Status().Version < ev.Version {
				err = replace(in, ev, items)
			} else {
				err = intake.Apply(ev) // it may testify
			}
			items, done = nil, true // a list may take long over a thin link: it is not timed
			if err == nil {
				f.over = nil
				f.trusts(w)
				beside.Go(func() { stop(f.attend(ctx, up, w.compressed, heard)) })
			}
			return err
		case ev.Type == wire.Added:
			items = append(items, ev.Object)
			return nil
		}
		return fmt.Errorf("a %s event among the initial ones", ev.Type)
	})
	switch {
	case errors.Is(err, errQuiet):
		return nil
	case err == nil && !done:
		return io.ErrUnexpectedEOF
	}
	return err
}

// ended is the error of a stream that should have ended by errEnough.
func ended(err error) error {
	switch {
	case errors.Is(err, errEnough):
		return nil
	case err == nil:
		return io.ErrUnexpectedEOF
	}
	return err
}

// attend returns when a stream is not to be read any more, and why.
func (f *Feeder) attend(ctx context.Context, up *Upstream, compressed bool, heard <-chan struct{}) error {
	if compressed {
		return f.prove(ctx, up, heard)
	}
	if f.quiet(ctx, heard, f.cfg.WatchTimeout) {
		return errQuiet
	}
	return nil
}

// quiet waits until nothing was heard for a time. false: ctx ended.
func (f *Feeder) quiet(ctx context.Context, heard <-chan struct{}, d time.Duration) bool {
	t := f.cfg.Clock.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case <-heard:
			t.Reset(d)
		case <-t.C():
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// prove shows while a stream is quiet that it is not dead or behind. It returns the error that proves the contrary.
//
// Beside the stream it opens short watches from the version reached that bring metadata only. A bookmark on one, at X, with no event
// before it shows that nothing changed up to X, so the relay is complete at X (rule 4). An event shows that the stream has to bring
// something; the watch is then of no more use.
func (f *Feeder) prove(ctx context.Context, up *Upstream, heard <-chan struct{}) error {
	patience := f.cfg.WatchTimeout / 2
	for wait := patience; f.quiet(ctx, heard, wait); {
		wait = patience
		if up.silent() {
			wait = silentLook
			continue
		}
		for still := true; still; {
			var err error
			if still, err = f.probe(ctx, up, heard); err != nil {
				return fmt.Errorf("watch of metadata beside the stream: %w", err)
			}
		}
	}
	return nil
}

// probe is one watch of prove. still tells whether nothing moved.
func (f *Feeder) probe(ctx context.Context, up *Upstream, heard <-chan struct{}) (still bool, err error) {
	probing, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() {
		select {
		case <-heard:
			end(errMoved)
		case <-probing.Done():
		}
	}()
	var moved uint64
	err = f.short(probing, up, metadata, f.cfg.Relay.Status().Version, func(ev *wire.Event) error {
		if ev.Type == wire.Bookmark {
			return f.cfg.Relay.Apply(ev)
		}
		moved = ev.Version
		return errMoved
	})
	if !errors.Is(err, errMoved) {
		return true, err
	}
	waiting, cancel := f.limit(ctx, up, f.cfg.WatchTimeout, fmt.Errorf("the stream has not brought version %d after %v", moved, f.cfg.WatchTimeout))
	defer cancel(nil)
	if err := f.cfg.Relay.WaitVersion(waiting, moved); err != nil {
		return false, cause(waiting, err)
	}
	return false, nil
}
