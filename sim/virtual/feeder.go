package virtual

import (
	"errors"
	"net/url"
	"strconv"
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
	intake  *relay.Intake
}

// use feeds from another source from now on.
func (f *feeder) use(up role.Source) {
	if up == f.up {
		return
	}
	f.up, f.backoff = up, firstBackoff
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
	if errors.Is(err, errGone) {
		f.list()
		return
	}
	f.h.trace("feed from %v: %v", f.up, err)
	f.h.after(f.h.loop.jitter(f.backoff), f.step(f.next))
	f.backoff = min(2*f.backoff, maxBackoff)
}

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
		switch {
		case source == role.Coordinator:
			query := url.Values{"timeoutSeconds": {strconv.Itoa(int(watchTimeout / time.Second))}}
			if listing {
				query.Set("sendInitialEvents", "true")
				query.Set("resourceVersionMatch", "NotOlderThan")
			} else {
				query.Set("resourceVersion", wire.FormatVersion(from))
			}
			stop = f.h.pool.coord.server.watch(&f.h.pool.coord.process, query, true, take, end).close
		case listing:
			stop = f.h.pool.cloud.stream(watchTimeout, take, end).close
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
		if !f.h.fed(f.h.server.Replace(ev.Version, items), "list at %d", ev.Version) {
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
	serve := func() { version, items = f.h.pool.cloud.version, f.h.pool.cloud.list(f.h.pool.cloud.version) }
	if f.up == role.Coordinator {
		l = f.h.toCoordinator
		serve = func() { version, items = f.h.pool.coord.server.list() }
	}
	l.ask(watchTimeout, serve, func(err error) {
		switch {
		case f.run != run:
		case err != nil:
			f.failed(err)
		case version == 0:
			f.failed(statusError(503))
		case !f.h.fed(f.h.server.Replace(version, items), "list at %d", version):
			f.failed(errors.New("the list is refused"))
		default:
			f.next()
		}
	})
}
