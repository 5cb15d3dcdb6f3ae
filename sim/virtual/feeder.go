package virtual

import (
	"errors"
	"time"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/role"
)

const (
	slack    = 5 * time.Second        // after its timeout a watch that its server does not end is dead
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

// feeder does over a link what a member.Plan says: it keeps a relay fed. How package source finds out that the cloud is
// in another history is tested there; here the feeder sees the cloud's era.
type feeder struct {
	*process // that it runs in
	pool     *Pool
	server   *server // is fed
	trace    func(format string, args ...any)
	took     func() // told that the relay took something
	hub      *Hub   // whose relay it is; nil: the coordinator's

	plan      member.Plan
	up        *origin
	stream    *stream
	probe     *stream // of metadata, beside a long watch that is quiet
	heard     int     // events and bookmarks of the step
	run       int     // grows with each step; what belongs to an earlier one is late
	overruled uint64
	doubtful  bool
	reached   uint64
	code      int32         // of the answer that denied the resource
	refused   time.Time     // when the coordinator said that it does not have it; zero: it did not
	failing   bool          // nothing came since an attempt failed
	since     time.Duration // since when the upstream feeds, or fails
	progress  time.Time     // that the relay had seen when the step began
	began     time.Time     // when it did

	// Of the step: what it lists, until that is taken.
	listing bool
	items   []*wire.Object
	another *member.AnotherHistoryError
	in      relay.History // of the upstream
	era     int
	lost    uint64
	intake  *relay.Intake
}

var errRefusedIt = errors.New("the relay refuses it")

// overrule tells that others are in a later history.
func (f *feeder) overrule(number uint64) {
	if number > f.overruled {
		f.overruled = number
		f.switched()
	}
}

// use feeds from another source from now on.
func (f *feeder) use(up *origin) {
	if up == f.up || up != nil && f.up != nil && up.l == f.up.l && up.admit == nil {
		return
	}
	f.up, f.doubtful, f.failing, f.since = up, true, false, f.loop.Now()
	f.switched()
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

// switched ends what is under way, for another upstream or another history.
func (f *feeder) switched() {
	f.plan.Switched()
	f.next()
}

// kick ends a pause, or begins again.
func (f *feeder) kick() {
	f.plan.Kicked()
	f.next()
}

// end ends what is under way.
func (f *feeder) end() {
	f.run++
	for _, s := range []*stream{f.stream, f.probe} {
		if s != nil {
			s.close()
		}
	}
	f.stream, f.probe = nil, nil
}

// step returns do bound to the present step.
func (f *feeder) step(do func()) func() {
	run := f.run
	return func() {
		if f.run == run {
			do()
		}
	}
}

func (f *feeder) upstream() member.Upstream {
	return member.Upstream{ID: f.up.l, Name: f.up.name, Cloud: f.up.relay == nil, Relay: f.up.relay != nil}
}

// next takes the next step.
func (f *feeder) next() {
	f.end()
	if f.up == nil {
		return
	}
	f.plan.Lasts = watchTimeout
	s := f.server.Status()
	f.progress, f.items, f.listing, f.another = s.ProgressAt, nil, false, nil
	f.began = f.server.clock.Now()
	sees := member.Feed{
		Now: f.server.clock.Now(), Relay: s, Up: f.upstream(), Overruled: f.overruled, Doubtful: f.doubtful,
		Reached: f.reached,
	}
	f.pool.given(sees)
	step := f.plan.Next(sees)
	switch step.Do {
	case member.Ask:
		f.ask()
		return
	case member.Compare:
		f.compare()
		return
	case member.List:
		f.listing, f.another = true, step.Another
		if s.Synced {
			f.lists(step.Why)
		}
	case member.Resume, member.ListBeside, member.ListTraced: // no stream is compressed here
	}
	f.intake = relay.NewIntake(f.server.Relay)
	lasts := max(step.Lasts, watchTimeout/2)
	f.open(s.Version, lasts)
	// A watch that its server does not end is dead; a list may take long, but not to begin.
	f.after(max(lasts, watchTimeout)+slack, f.step(func() { f.ended(errQuiet) }))
	if lasts > watchTimeout {
		f.attend()
	}
}

func (f *feeder) lists(why member.Cause) {
	f.trace("lists from %v: %s", f.up.name, why)
}

// ended takes how a step ended, and goes on.
func (f *feeder) ended(err error) {
	s := f.server.Status()
	end := member.End{
		Now: f.server.clock.Now(), Up: f.upstream(), Err: err, Code: code(err), Synced: s.Synced,
		RetryAfter: retryAfter(err), Progressed: s.ProgressAt.After(f.progress), Took: f.server.clock.Since(f.began),
	}
	f.pool.given(end)
	after := f.plan.Ended(end)
	if after.Denied && (f.up.admit == nil || f.up.admit() == nil) {
		f.denied(err)
	}
	f.doubtful = f.doubtful || after.Doubt
	if after.Learned != nil {
		f.reached = 0
	}
	if err == nil || after.Wait == 0 {
		f.next()
		return
	}
	f.end()
	f.trace("feed from %v: %v", f.up.name, err)
	if !f.failing {
		f.failing, f.since = true, f.loop.Now()
	}
	f.after(f.loop.jitter(after.Wait), f.step(f.next))
}

// ask asks the cloud how far it is.
func (f *feeder) ask() {
	var version uint64
	var era int
	f.up.l.ask(watchTimeout, func() { version, era = f.pool.cloud.version, f.pool.cloud.era }, f.answered(func() {
		if err := f.sameEra(era); err != nil {
			f.ended(err)
			return
		}
		f.reached, f.doubtful = version, false
		f.next()
	}))
}

// answered is what to do with the answer to a request of this step.
func (f *feeder) answered(do func()) func(error) {
	run := f.run
	return func(err error) {
		switch {
		case f.run != run:
		case err != nil:
			f.ended(err)
		default:
			do()
		}
	}
}

// sameEra tells by an error that the cloud is in another history than the relay.
func (f *feeder) sameEra(era int) error {
	if s := f.server.Status(); s.Synced && era != f.server.era {
		return &member.AnotherHistoryError{History: s.History.Next(s.Version), Proof: "the cloud was restored"}
	}
	return nil
}

// read notes the state of the upstream that serves, and tells by an error that it is not one that the relay can follow.
func (f *feeder) read() error {
	s := f.server.Status()
	if f.up.relay == nil {
		f.in, f.era = member.HistoryOf(f.upstream(), relay.History{}, f.another, s), f.pool.cloud.era
		if f.listing {
			return nil
		}
		return f.sameEra(f.era)
	}
	r := f.up.relay()
	theirs := r.Status()
	f.in, f.era, f.lost = theirs.History, r.era, r.lost
	age, ok := theirs.Age(r.clock.Now())
	if !ok || theirs.Restored {
		age = -1
	}
	switch {
	case !theirs.Synced && (f.listing || f.up.p == &f.pool.coord.process): // it says by itself that it has nothing
		return nil
	case f.listing:
		return member.Plausible(s, f.in, f.another)
	}
	return member.Follows(s.History, f.in, age)
}

// turnedDown is the answer of a cloud that gives the hub nothing.
func (f *feeder) turnedDown() error {
	if f.up.relay == nil {
		return f.hub.answer
	}
	return nil
}

// denied takes that an upstream does not give the resource, as package relayed of a hub does.
func (f *feeder) denied(err error) {
	if f.hub != nil && f.up.relay != nil {
		f.refused = f.server.clock.Now()
	} else {
		f.code = int32(code(err))
		f.server.Deny(err)
		f.server.changed()
	}
	if f.hub != nil {
		f.hub.step(member.Observation{Denied: []string{f.server.Resource().String()}})
	}
}

// open opens a watch from a version, or a streaming list.
func (f *feeder) open(from uint64, lasts time.Duration) {
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
				if f.run == run {
					f.ended(err)
				}
			})
		}
		if at.relay != nil && f.waits(at) {
			at.p.after(waitsFor, func() {
				if !s.ended[up] {
					serve(s)
				}
			})
			return
		}
		if f.run != run {
			return
		}
		if err := f.turnedDown(); err != nil {
			end(err)
			return
		}
		if err := f.read(); err != nil {
			end(err)
			return
		}
		var stop func()
		switch mine := f.server.Status(); {
		case at.relay != nil:
			o := relay.WatchOptions{Initial: listing, Progress: true, Timeout: lasts}
			if !listing {
				o.At = relay.At{Version: from, History: &mine.History}
			}
			stop = at.relay().watch(at.p, o, take, end).close
		case listing:
			stop = f.pool.cloud.stream(lasts, take, end).close
		default:
			f.doubtful = false
			stop = f.pool.cloud.watch(from, lasts, take, end).close
		}
		s.broken[up] = s.l.server.in(stop)
	}
	f.stream = at.l.openStream(serve, func(err error) {
		if f.run == run {
			f.ended(err)
		}
	})
}

// waits reports whether the one that is fed by an origin has to wait: a hub lets wait until it holds something, and a
// coordinator for what it did not relay until now.
func (f *feeder) waits(at *origin) bool {
	s := at.relay().Status()
	return !s.Synced && (at.p != &f.pool.coord.process || s.Joins)
}

// attend proves that a long watch lives while it is quiet, by short ones of metadata beside it.
func (f *feeder) attend() {
	before := f.heard
	f.after(watchTimeout/2, f.step(func() {
		switch {
		case f.heard != before:
			f.attend()
		default:
			f.proves()
		}
	}))
}

// proves opens one short watch of metadata, and goes on when it ends. An event on it shows that the long one has to
// bring something; it is of no more use then.
func (f *feeder) proves() {
	from, over := f.server.Status().Version, false
	ended := f.step(func() {
		if !over {
			over = true
			f.attend()
		}
	})
	var probe *stream
	probe = f.up.l.openStream(func(s *stream) {
		watch := f.pool.cloud.watch(from, watchTimeout, func(ev *wire.Event) {
			s.send(down, f.step(func() {
				switch {
				case over:
				case ev.Type == wire.Bookmark:
					f.take(ev)
				default:
					probe.close()
					ended()
				}
			}))
		}, func(error) { s.send(down, ended) })
		s.broken[up] = s.l.server.in(watch.close)
	}, func(err error) {
		f.step(func() {
			if !over {
				f.ended(err)
			}
		})()
	})
	f.probe = probe
	f.after(watchTimeout+slack, f.step(func() {
		if !over {
			f.ended(errQuiet)
		}
	}))
}

// take takes what a watch shows.
func (f *feeder) take(ev *wire.Event) {
	if err := f.admitted(); err != nil {
		f.ended(err)
		return
	}
	if f.heard++; f.failing {
		f.failing, f.since = false, f.loop.Now()
	}
	if ev.Object != nil && !f.listing {
		f.plan.Came(f.server.clock.Now(), len(ev.Object.Raw), false)
	}
	var err error
	switch {
	case f.listing && ev.InitialEnd:
		f.listing = false
		err = f.list(ev, f.items)
		f.items = nil
	case f.listing:
		f.items = append(f.items, ev.Object)
		return
	default:
		if err = f.intake.Apply(ev); err == nil {
			f.took()
		}
	}
	if err != nil {
		f.trace("%s %d: %v", ev.Type, ev.Version, err)
		f.ended(errRefusedIt)
	}
}

// compare is what follows a 410: the state of the upstream, as a whole.
func (f *feeder) compare() {
	var version uint64
	var items []*wire.Object
	var other error
	f.intake = relay.NewIntake(f.server.Relay)
	run := f.run
	f.up.l.ask(watchTimeout, func() {
		if f.run != run {
			return
		}
		if other = f.turnedDown(); other != nil {
			return
		}
		if other = f.read(); f.up.relay == nil {
			version, items = f.pool.cloud.version, f.pool.cloud.list(f.pool.cloud.version)
		} else {
			version, items = f.up.relay().list()
		}
	}, f.answered(func() {
		if other != nil {
			f.ended(other)
			return
		}
		f.lists(member.CauseExpired)
		err := f.admitted()
		switch {
		case err != nil:
		case version == 0:
			err = errors.New("the coordinator has nothing yet")
		default:
			err = f.list(&wire.Event{Type: wire.Bookmark, Version: version, InitialEnd: true}, items)
		}
		f.ended(err)
	}))
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

// list takes a list. That nobody lies is taken for granted, so the cloud is not asked whether it contradicts.
func (f *feeder) list(end *wire.Event, items []*wire.Object) error {
	s := f.server.Status()
	l := member.Listed{Up: f.upstream(), Now: s, In: f.in, Version: end.Version, Another: f.another}
	if f.up.relay == nil && s.Synced && f.era != f.server.era && l.In.Number == s.History.Number {
		l.In, l.Next = s.History.Next(s.Version), true
	}
	t := member.Take(l)
	lost := f.server.lost
	if f.up.relay != nil {
		lost = max(lost, f.lost)
	}
	if s.Synced && f.era != f.server.era {
		lost = max(lost, s.Version)
	}
	var err error
	switch {
	case t.Testify:
		err = f.intake.Apply(end)
	case t.Yield:
		err = f.intake.Yield(t.In, end, items)
	default:
		err = f.intake.End(t.In, end, items)
	}
	if err != nil {
		return err
	}
	if !t.Testify {
		f.server.era, f.server.lost = f.era, lost
	}
	f.plan.TookUp()
	f.doubtful = f.doubtful && f.up.relay != nil
	f.took()
	return nil
}
