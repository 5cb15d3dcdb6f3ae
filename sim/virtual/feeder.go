package virtual

import (
	"errors"
	"time"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/role"
)

// What package source waits.
const (
	firstBackoff = 200 * time.Millisecond
	maxBackoff   = 15 * time.Second
	slack        = 5 * time.Second

	behindPatience = 20 * time.Second
)

// feeder keeps a hub's relay fed, by the steps of source.Feeder: a streaming list into an empty relay, then short watches from
// the version reached, and a list after 410.
type feeder struct {
	h       *Hub
	up      role.Source
	stream  *stream
	run     int // grows with each step; what belongs to an earlier one is late
	backoff time.Duration
	items   []*wire.Object
	listing bool
	in      relay.History // of the cloud, that the list is of
	era     int
	over    *relay.History // to be taken up from the cloud
	behind  time.Duration  // since when the upstream is; 0: it is not
	intake  *relay.Intake
}

// errHistory is what a feeder finds out of its upstream, and errBehind that it is the one who knows more.
var (
	errHistory = errors.New("the history of the cloud is another one")
	errBehind  = errors.New("the upstream is in an earlier history of the cloud")
)

// overrule tells that others are in a later history.
func (f *feeder) overrule(h relay.History) {
	if f.over == nil || h.Number > f.over.Number {
		f.over = &h
		f.next()
	}
}

// use feeds from another source from now on.
func (f *feeder) use(up role.Source) {
	if up == f.up {
		return
	}
	f.up, f.backoff, f.behind = up, firstBackoff, 0
	f.next()
}

// now returns do bound to the present step.
func (f *feeder) step(do func()) func() {
	run := f.run
	return func() {
		if f.run == run {
			do()
		}
	}
}

// next ends what is under way and takes the next step.
func (f *feeder) next() {
	f.run++
	if f.stream != nil {
		f.stream.close(up)
		f.stream = nil
	}
	if f.up == role.Nowhere {
		return
	}
	s := f.h.server.Status()
	if f.over != nil && f.over.Number <= s.History.Number {
		f.over = nil
	}
	if f.over != nil && f.up == role.Cloud && s.Synced {
		f.list()
		return
	}
	f.items, f.listing, f.intake = nil, !s.Synced, relay.NewIntake(f.h.server.Relay)
	f.open(s.Version)
	// A watch that its server does not end is dead; a list may take long, but not to begin.
	f.h.after(watchTimeout+slack, f.step(func() { f.failed(errQuiet) }))
}

// failed waits and tries again.
func (f *feeder) failed(err error) {
	f.run++
	if f.stream != nil {
		f.stream.close(up)
		f.stream = nil
	}
	if isGone(err) || errors.Is(err, errHistory) {
		f.list()
		return
	}
	if errors.Is(err, errBehind) && f.patient() {
		f.list()
		return
	}
	f.h.trace("feed from %v: %v", f.up, err)
	f.h.after(f.h.loop.jitter(f.backoff), f.step(f.next))
	f.backoff = min(2*f.backoff, maxBackoff)
}

// fails tells whether nothing came since an attempt failed.
func (f *feeder) fails() bool { return f.backoff > firstBackoff }

// open opens a watch from a version, or a streaming list.
func (f *feeder) open(from uint64) {
	broken := func(err error) { f.step(func() { f.failed(err) })() }
	run, source, listing := f.run, f.up, f.listing
	serve := func(s *stream) {
		take := func(ev *wire.Event) {
			s.send(down, func() {
				if f.run == run {
					f.take(ev)
				}
			})
		}
		end := func(err error) {
			s.send(down, func() {
				switch {
				case f.run != run:
				case err != nil:
					f.failed(err)
				default:
					f.next()
				}
			})
		}
		var stop func()
		mine, theirs := f.h.server.Status(), f.h.pool.coord.server.Status()
		f.in, f.era = theirs.History, f.h.pool.coord.server.era
		if source == role.Cloud {
			f.in, f.era = f.cloudHistory(), f.h.pool.cloud.era
		}
		switch {
		case source == role.Coordinator && !listing && theirs.Synced && theirs.History.Number > mine.History.Number:
			end(errHistory)
			return
		case source == role.Coordinator && !listing && theirs.History.Number < mine.History.Number:
			end(errBehind)
			return
		case source == role.Coordinator:
			o := relay.WatchOptions{Initial: listing, Progress: true, Timeout: watchTimeout}
			if !listing {
				o.At = relay.At{Version: from, History: &mine.History}
			}
			stop = f.h.pool.coord.server.watch(&f.h.pool.coord.process, o, take, end).close
		case listing:
			stop = f.h.pool.cloud.stream(watchTimeout, take, end).close
		case f.h.server.era != f.h.pool.cloud.era: // source.Feeder asks when it has a new connection, or something broke
			end(errHistory)
			return
		default:
			stop = f.h.pool.cloud.watch(from, watchTimeout, take, end).close
		}
		s.broken[up] = s.l.server.in(stop)
	}
	l := f.h.toCloud
	if f.up == role.Coordinator {
		l = f.h.toCoordinator
	}
	f.stream = l.openStream(serve, func(err error) {
		if f.run == run {
			broken(err)
		}
	})
}

// take takes what a watch shows.
func (f *feeder) take(ev *wire.Event) {
	f.backoff = firstBackoff
	switch {
	case f.listing && ev.InitialEnd:
		f.listing = false
		items := f.items
		f.items = nil
		if !f.replace(f.in, f.era, ev, items) {
			f.failed(errors.New("the list is refused"))
		}
	case f.listing:
		f.items = append(f.items, ev.Object)
	default:
		if !f.h.fed(f.intake.Apply(ev), "%s %d", ev.Type, ev.Version) {
			f.failed(errors.New("the event is refused"))
		}
	}
}

// list is what follows a 410.
func (f *feeder) list() {
	f.h.pool.lists[f.up]++
	f.h.trace("410 from %v: list", f.up)
	l, run := f.h.toCloud, f.run
	var version uint64
	var items []*wire.Object
	var in relay.History
	var era int
	serve := func() {
		version, items = f.h.pool.cloud.version, f.h.pool.cloud.list(f.h.pool.cloud.version)
		in, era = f.cloudHistory(), f.h.pool.cloud.era
	}
	if f.up == role.Coordinator {
		l = f.h.toCoordinator
		serve = func() {
			version, items = f.h.pool.coord.server.list()
			in, era = f.h.pool.coord.server.Status().History, f.h.pool.coord.server.era
		}
	}
	l.ask(watchTimeout, serve, func(err error) {
		switch {
		case f.run != run:
		case err != nil:
			f.failed(err)
		case version == 0:
			f.failed(errors.New("the coordinator has nothing yet"))
		case !f.replace(in, era, &wire.Event{Type: wire.Bookmark, Version: version, InitialEnd: true}, items):
			f.failed(errors.New("the list is refused"))
		default:
			f.next()
		}
	})
}

// replace takes a list of a history.
func (f *feeder) replace(in relay.History, era int, end *wire.Event, items []*wire.Object) bool {
	take := f.intake.End
	if in.Number < f.h.server.Status().History.Number && f.patient() {
		take, f.behind = f.intake.Yield, 0
	}
	err := take(in, end, items)
	if err == nil {
		f.h.server.era = era
	}
	return f.h.fed(err, "list at %d of history %d", end.Version, in.Number)
}

// patient notes that the coordinator is behind, and tells whether it has been for so long, and fresh, that it has to be right.
func (f *feeder) patient() bool {
	if f.behind == 0 {
		f.behind = f.h.loop.Now()
	}
	s, waited := f.h.pool.coord.server.Status(), f.h.loop.Now()-f.behind
	age, ok := s.Age(f.h.pool.coord.server.clock.Now())
	return waited > behindPatience && ok && age < waited && !s.Restored
}

// cloudHistory is what a list from the cloud is of, as source.Feeder finds it out: the relay's own history, or the next one, or
// the one that others are in. That it is found out is taken for granted here; how is tested there.
func (f *feeder) cloudHistory() relay.History {
	s := f.h.server.Status()
	switch {
	case f.over != nil && f.over.Number > s.History.Number:
		return *f.over
	case s.Synced && f.h.server.era != f.h.pool.cloud.era:
		return s.History.Next(s.Version)
	}
	return s.History
}
