package virtual

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/role"
)

// What package source waits.
const (
	firstBackoff = 200 * time.Millisecond
	maxBackoff   = 15 * time.Second
	slack        = 5 * time.Second

	waitsFor = 250 * time.Millisecond // between two looks of a hub that has nothing to show yet
)

// origin is where a feeder may be fed from: the cloud, or a relay.
type origin struct {
	name    string
	l       *link
	relay   func() *server // nil: the cloud
	p       *process       // that serves the relay
	admit   func() error   // nil: always
	changes func()         // told before each change of the relay that is fed; nil: nobody
}

// feeder keeps a relay fed, by the steps of source.Feeder: a streaming list into an empty relay, then short watches
// from the version reached, and a list after 410.
type feeder struct {
	*process // that it runs in
	pool     *Pool
	server   *server // is fed
	trace    func(format string, args ...any)
	took     func() // told that the relay took something

	up      *origin
	stream  *stream
	run     int // grows with each step; what belongs to an earlier one is late
	backoff time.Duration
	items   []*wire.Object
	listing bool
	in      relay.History // of the cloud, that the list is of
	era     int
	lost    uint64
	over    *relay.History // to be taken up from the cloud
	behind  member.Behind
	since   time.Duration // since when the upstream feeds, or fails
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
func (f *feeder) use(up *origin) {
	if up == f.up || up != nil && f.up != nil && up.l == f.up.l && up.admit == nil {
		return
	}
	f.up, f.backoff, f.since = up, firstBackoff, f.loop.Now()
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
		f.stream.close()
		f.stream = nil
	}
	if f.up == nil {
		return
	}
	s := f.server.Status()
	if f.over != nil && f.over.Number <= s.History.Number {
		f.over = nil
	}
	if f.over != nil && f.up.relay == nil && s.Synced {
		f.list()
		return
	}
	f.items, f.listing, f.intake = nil, !s.Synced, relay.NewIntake(f.server.Relay)
	f.open(s.Version)
	// A watch that its server does not end is dead; a list may take long, but not to begin.
	f.after(watchTimeout+slack, f.step(func() { f.failed(errQuiet) }))
}

// failed waits and tries again.
func (f *feeder) failed(err error) {
	f.run++
	if f.stream != nil {
		f.stream.close()
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
	f.trace("feed from %v: %v", f.up.name, err)
	if !f.fails() {
		f.since = f.loop.Now()
	}
	f.after(f.loop.jitter(f.backoff), f.step(f.next))
	f.backoff = min(2*f.backoff, maxBackoff)
}

// source is where the relay is fed from.
func (f *feeder) source() role.Source {
	switch {
	case f.up == nil:
		return role.Nowhere
	case f.up.relay == nil:
		return role.Cloud
	}
	return role.Coordinator
}

// fails reports whether nothing came since an attempt failed.
func (f *feeder) fails() bool { return f.backoff > firstBackoff }

// open opens a watch from a version, or a streaming list.
func (f *feeder) open(from uint64) {
	broken := func(err error) { f.step(func() { f.failed(err) })() }
	run, at, listing := f.run, f.up, f.listing
	var serve func(s *stream)
	serve = func(s *stream) {
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
					f.behind.Ended(f.up.name)
					f.next()
				}
			})
		}
		if at.relay != nil && !at.relay().Status().Synced && at.p != &f.pool.coord.process { // a hub lets wait
			at.p.after(waitsFor, func() {
				if !s.ended[up] {
					serve(s)
				}
			})
			return
		}
		var stop func()
		mine := f.server.Status()
		f.in, f.era = f.cloudHistory(), f.pool.cloud.era
		if at.relay != nil {
			f.in, f.era, f.lost = at.relay().Status().History, at.relay().era, at.relay().lost
		}
		switch theirs := f.in; {
		case at.relay != nil && !listing && at.relay().Status().Synced && theirs.Number > mine.History.Number:
			end(errHistory)
			return
		case at.relay != nil && !listing && theirs.Number < mine.History.Number:
			end(errBehind)
			return
		case at.relay != nil:
			o := relay.WatchOptions{Initial: listing, Progress: true, Timeout: watchTimeout}
			if !listing {
				o.At = relay.At{Version: from, History: &mine.History}
			}
			stop = at.relay().watch(at.p, o, take, end).close
		case listing:
			stop = f.pool.cloud.stream(watchTimeout, take, end).close
		case f.server.era != f.pool.cloud.era: // source.Feeder asks when it has a new connection, or something broke
			end(errHistory)
			return
		default:
			stop = f.pool.cloud.watch(from, watchTimeout, take, end).close
		}
		s.broken[up] = s.l.server.in(stop)
	}
	f.stream = at.l.openStream(serve, func(err error) {
		if f.run == run {
			broken(err)
		}
	})
}

// take takes what a watch shows.
func (f *feeder) take(ev *wire.Event) {
	if err := f.admitted(); err != nil {
		f.failed(err)
		return
	}
	if f.fails() {
		f.backoff, f.since = firstBackoff, f.loop.Now()
	}
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
		if !f.fed(f.intake.Apply(ev), "%s %d", ev.Type, ev.Version) {
			f.failed(errors.New("the event is refused"))
		}
	}
}

// list is what follows a 410.
func (f *feeder) list() {
	at, run := f.up, f.run
	f.pool.lists[at.name]++
	f.trace("410 from %v: list", at.name)
	var version uint64
	var items []*wire.Object
	var in relay.History
	var era int
	serve := func() {
		version, items = f.pool.cloud.version, f.pool.cloud.list(f.pool.cloud.version)
		in, era = f.cloudHistory(), f.pool.cloud.era
	}
	if at.relay != nil {
		serve = func() {
			version, items = at.relay().list()
			in, era, f.lost = at.relay().Status().History, at.relay().era, at.relay().lost
		}
	}
	at.l.ask(watchTimeout, serve, func(err error) {
		if err == nil && f.run == run {
			err = f.admitted()
		}
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

// admitted tells by an error that what comes is no longer valid, and that something is about to change if it does.
func (f *feeder) admitted() error {
	if f.up.admit != nil {
		if err := f.up.admit(); err != nil {
			return err
		}
	}
	if f.up.changes != nil {
		f.up.changes()
	}
	return nil
}

// fed notes that the relay took something, or refused it.
func (f *feeder) fed(err error, format string, args ...any) bool {
	if err != nil {
		f.trace("%s: %v", fmt.Sprintf(format, args...), err)
		return false
	}
	f.took()
	return true
}

// replace takes a list of a history.
func (f *feeder) replace(in relay.History, era int, end *wire.Event, items []*wire.Object) bool {
	take := f.intake.End
	if f.up.relay != nil && in.Number < f.server.Status().History.Number && f.patient() {
		take, f.behind = f.intake.Yield, member.Behind{}
	}
	lost := f.server.lost
	if f.up.relay != nil {
		lost = max(lost, f.lost)
	}
	if s := f.server.Status(); s.Synced && era != f.server.era {
		lost = max(lost, s.Version)
	}
	err := take(in, end, items)
	if err == nil {
		f.server.era, f.server.lost = era, lost
	}
	return f.fed(err, "list at %d of history %d", end.Version, in.Number)
}

// patient notes that the upstream is behind, and reports whether it has been for so long, and fresh, that it has to be
// right.
func (f *feeder) patient() bool {
	s := f.up.relay().Status()
	now := f.up.relay().clock.Now()
	age, ok := s.Age(now)
	if !ok || s.Restored {
		age = -1
	}
	_, yields := f.behind.Yields(f.up.name, f.server.Status().History.Number, age, now)
	return yields
}

// cloudHistory is what a list from the cloud is of, as source.Feeder finds it out: the relay's own history, or the next
// one, or the one that others are in. That it is found out is taken for granted here; how is tested there.
func (f *feeder) cloudHistory() relay.History {
	s := f.server.Status()
	switch {
	case f.over != nil && f.over.Number > s.History.Number:
		return *f.over
	case s.Synced && f.server.era != f.pool.cloud.era:
		return s.History.Next(s.Version)
	}
	return s.History
}
