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

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/mvcc"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source/hop"
)

// silentLook is how often is looked whether a silent connection lives again.
const silentLook = 500 * time.Millisecond

var (
	errQuiet  = errors.New("nothing came")         // on a stream that is not worth keeping
	errMoved  = errors.New("something moved")      // while it was watched whether anything does
	errBehind = errors.New("the stream is behind") // of what a watch beside it showed
)

// settle is called when a list is complete.
type settle func(version uint64, items []*wire.Object) *mvcc.Trail

// alone is the settle of a streamList beside which nothing feeds the relay.
func alone(uint64, []*wire.Object) *mvcc.Trail { return nil }

// streamList fills a relay by a streaming list (KEP-3157) and goes on with the events behind it. settle is called with
// the list and its version before that is handed to the relay; it ends what feeds the relay beside, and tells what is
// known of the way there. A relay that is beyond the list by then has all of it.
//
// kube-apiserver 1.37 compresses such a stream to its end, and no other watch: a third of the bytes. So a compressed
// one is kept for as long as it lasts. A quiet stream proves nothing about freshness, and kube-apiserver sends
// bookmarks once a minute, so while it is quiet, short watches of metadata run beside it: see prove. A stream that is
// not compressed is left for short watches once it is quiet.
//
// It takes up the history of other, if that is given.
func (f *Feeder) streamList(ctx context.Context, up *hop.Upstream, other *member.AnotherHistoryError, settle settle,
	why member.Cause) error {
	f.listing(why)
	if f.plainAt.Load() == up {
		return f.plainList(ctx, up, other, settle)
	}
	ctx, stop := context.WithCancelCause(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop(nil)
	s := f.cfg.Relay.Status()
	intake := f.intake(up)
	mine, since := &s.History, s.Version
	if other != nil || !s.Synced {
		mine, since = nil, 0
	}
	w, err := f.openIn(ctx, up, hop.Question{History: mine, Past: !s.Synced, Since: since, Query: url.Values{
		"sendInitialEvents": {"true"}, "resourceVersionMatch": {"NotOlderThan"},
		"timeoutSeconds": {strconv.Itoa(int(streamTimeout / time.Second))},
	}})
	if f.streamless(up, err) {
		return f.plainList(ctx, up, other, settle)
	}
	if err != nil {
		return err
	}
	defer w.body.Close()
	in := member.HistoryOf(f.upstream(up), w.history, other, s)
	if up.Progress {
		if err := member.Plausible(s, in, other); err != nil {
			return err
		}
	}
	heard := make(chan struct{}, 1)
	var items []*wire.Object
	room, done := f.room(up), false
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
			intake.Along(settle(ev.Version, items))
			err := f.takeList(ctx, up, s, other, in, intake, ev, items)
			items, done = nil, true // a list may take long over a thin link: it is not timed
			if err == nil {
				f.plan.TookUp()
				f.trusts(w.conn)
				beside.Go(func() { stop(f.attend(ctx, up, w, heard)) })
			}
			return err
		case ev.Type == wire.Added:
			items = append(items, ev.Object)
			return room(ev.Object)
		}
		return fmt.Errorf("a %s event among the initial ones", ev.Type)
	})
	switch {
	case errors.Is(err, errQuiet), done && errors.Is(err, wire.ErrBase):
		return nil
	case err == nil && !done:
		return io.ErrUnexpectedEOF
	}
	return err
}

// takeList gives the relay a complete list, unless it is beyond that.
func (f *Feeder) takeList(
	ctx context.Context, up *hop.Upstream, before relay.Status, other *member.AnotherHistoryError, in relay.History,
	intake *relay.Intake, end *wire.Event, items []*wire.Object,
) error {
	in, next := f.historyOf(up, before, in, end.Version, items)
	t := member.Take(member.Listed{
		Up: f.upstream(up), Now: f.cfg.Relay.Status(), In: in, Version: end.Version, Another: other, Next: next,
	})
	if t.Testify {
		return intake.Apply(end)
	}
	if t.Believe {
		if err := f.believe(ctx, up, t.In, end.Version); err != nil {
			return err
		}
	}
	if t.Yield {
		return intake.Yield(t.In, end, items)
	}
	return intake.End(t.In, end, items)
}

// plainList is a streamList where there are no streaming lists. Short watches go on behind it.
func (f *Feeder) plainList(ctx context.Context, up *hop.Upstream, other *member.AnotherHistoryError,
	settle settle) error {
	s := f.cfg.Relay.Status()
	var items []*wire.Object
	end, err := f.list(ctx, up, hop.Whole, url.Values{}, func(o *wire.Object) { items = append(items, o) })
	if err != nil {
		return err
	}
	intake := relay.NewIntake(f.cfg.Relay)
	intake.Along(settle(end.Version, items))
	in := member.HistoryOf(f.upstream(up), relay.History{}, other, s)
	if err := f.takeList(ctx, up, s, other, in, intake, end, items); err != nil {
		return err
	}
	f.plan.TookUp()
	return nil
}

// attend returns when a stream is not to be read any more, and why.
func (f *Feeder) attend(ctx context.Context, up *hop.Upstream, w *openWatch, heard <-chan struct{}) error {
	if w.compressed {
		return f.prove(ctx, up, w, heard)
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
// Beside the stream it opens short watches from the version reached that bring metadata only. A bookmark on one, at X,
// with no event before it shows that nothing changed up to X, so the relay is complete at X (rule 4). An event shows
// that the stream has to bring something; the watch is then of no more use. Of all quiet streams over one connection
// one has such a watch, and the others go by its signs: see Pulse.
func (f *Feeder) prove(ctx context.Context, up *hop.Upstream, w *openWatch, heard <-chan struct{}) error {
	since := f.cfg.Clock.Now()
	pulse := f.cfg.Pulse
	if w.conn == nil {
		pulse = &Pulse{}
	}
	pulse.join(w.conn)
	defer pulse.leave(w.conn)
	for wait := f.patience(); f.quiet(ctx, heard, wait); {
		wait = f.patience()
		if up.IsSilent() {
			wait = silentLook
			continue
		}
		if err := f.proveOnce(ctx, up, w, pulse, since, heard); err != nil {
			return fmt.Errorf("watch of metadata beside the stream: %w", err)
		}
	}
	return nil
}

// patience is how long a stream is quiet before it has to be proved that it lives.
func (f *Feeder) patience() time.Duration { return f.cfg.WatchTimeout / 2 }

// proveOnce returns when the stream, which is open since then, was heard, or proved to live.
func (f *Feeder) proveOnce(ctx context.Context, up *hop.Upstream, w *openWatch, pulse *Pulse, since time.Time,
	heard <-chan struct{}) error {
	late := f.cfg.Clock.NewTimer(f.cfg.WatchTimeout + 2*slack) // longer than that watch may last
	defer late.Stop()
	for {
		// a sign that overtook what came of an event says nothing about that
		if at := pulse.last(w.conn); w.whole() && f.cfg.Clock.Since(at) < f.patience() {
			// the caches of one kube-apiserver differ by less than that
			if asOf := at.Add(-f.patience() / 2); asOf.After(since) {
				f.cfg.Relay.Lives(asOf)
			}
			return nil
		}
		turn := pulse.claim(w.conn)
		if turn == nil {
			err := f.probe(ctx, up, heard)
			pulse.done(w.conn, ofAll(ctx, err))
			return err
		}
		if !w.whole() {
			return f.probe(ctx, up, heard)
		}
		select {
		case <-turn.over:
			if turn.err != nil {
				return turn.err
			}
		case <-late.C(): // its watch goes another way
			return f.probe(ctx, up, heard)
		case <-heard:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// ofAll is the error of a probe if it is about all streams over the connection.
func ofAll(ctx context.Context, err error) error {
	var answer *hop.StatusError
	if of := ctx.Err() == nil && !errors.As(err, &answer) && !errors.Is(err, errBehind); of {
		return err
	}
	return nil
}

// probe is one watch of prove.
func (f *Feeder) probe(ctx context.Context, up *hop.Upstream, heard <-chan struct{}) error {
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
	err := f.short(probing, up, hop.Question{Of: hop.Metadata}, f.cfg.Relay.Status().Version, f.cfg.WatchTimeout,
		alongside, func(ev *wire.Event) error {
			if ev.Type == wire.Bookmark {
				return f.cfg.Relay.Apply(ev)
			}
			moved = ev.Version
			return errMoved
		})
	if !errors.Is(err, errMoved) {
		return err
	}
	waiting, cancel := f.limit(ctx, up, f.cfg.WatchTimeout,
		fmt.Errorf("%w: it has not brought version %d after %v", errBehind, moved, f.cfg.WatchTimeout))
	defer cancel(nil)
	if err := f.cfg.Relay.WaitVersion(waiting, moved); err != nil {
		return cause(waiting, err)
	}
	return nil
}
