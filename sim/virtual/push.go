package virtual

import (
	"errors"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/fence"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/role"
)

const (
	firstPushRetry = 100 * time.Millisecond
	maxPushRetry   = 5 * time.Second
	pushedLook     = 250 * time.Millisecond
	pushedAgain    = 2 * time.Second
)

// push is what a leader does, by the steps of hub.feed and source.Push: it pushes its relay to the coordinator, looks whether what
// the cloud showed has arrived, and keeps a pulse.
type push struct {
	h       *Hub
	term    contract.Term // zero: not
	run     int           // grows with each term and end
	backoff time.Duration
	opened  time.Duration
	waiting bool // for the first list
	feed    *stream
	tap     *tap
	pulse   *stream
	pushed  time.Duration // when the coordinator was last seen to have what the relay had shortly before; 0: not under this term
	failed  bool          // the feed broke, and the coordinator was not seen to have all since
}

func (p *push) begin(t contract.Term) {
	p.end()
	p.term, p.backoff = t, firstPushRetry
	p.h.trace("feeds under %v", t)
	p.open()
	p.watch()
	p.beat()
}

func (p *push) end() {
	p.run++
	p.term, p.pushed, p.waiting, p.failed = contract.Term{}, 0, false, false
	p.cut()
	if p.pulse != nil {
		p.pulse.close(up)
		p.pulse = nil
	}
}

// cut ends the stream of the feed.
func (p *push) cut() {
	if p.tap != nil {
		p.tap.close()
		p.tap = nil
	}
	if p.feed != nil {
		p.feed.close(up)
		p.feed = nil
	}
}

// poke tells that the relay took something.
func (p *push) poke() {
	if p.waiting {
		p.open()
	}
}

// open begins a feed once there is something to push.
func (p *push) open() {
	st := p.h.server.Status()
	if p.waiting = !st.Synced || st.Restored; p.waiting { // what a disk held is not news
		return
	}
	run, term, coord := p.run, p.term, p.h.pool.coord
	p.opened = p.h.loop.Now()
	var s *stream
	again := func(error) {
		if p.run == run && p.feed == s {
			p.broke()
		}
	}
	var x *feeding
	in, era := st.History, p.h.server.era
	s = p.h.toCoordinator.openStream(func(s *stream) {
		coord.accept(s, p.h.name, term, in, era, func(reached uint64, theirs relay.History, err error) {
			var refused *fence.RefusedError
			switch {
			case p.run != run || p.feed != s:
			case errors.As(err, &refused):
				p.h.trace("feed refused: %v", refused.Reason)
				p.cut()
				p.h.step(role.Input{Refused: &role.Refusal{Term: term}})
			case theirs.Number > in.Number: // this hub was away when the cloud was restored: the cloud itself has the word
				p.h.feeder.overrule(theirs)
				p.broke()
			default:
				if theirs.Number < in.Number {
					reached = 0
				}
				p.copy(in, reached, func(do func(*feeding)) { s.send(up, func() { do(x) }) })
			}
		})
		x = coord.feed
	}, again)
	p.feed = s
}

// copy serves a watch of the relay into the feed.
func (p *push) copy(in relay.History, reached uint64, send func(func(*feeding))) {
	o := relay.WatchOptions{At: relay.At{Version: reached, History: &in}, Progress: true}
	if reached == 0 || !p.h.server.Resumable(reached) {
		o.Version, o.Initial = 0, true
		send(func(x *feeding) { x.mode(true) })
	}
	coord := p.h.pool.coord
	p.tap = p.h.server.watch(&p.h.process, o,
		func(ev *wire.Event) { send(func(x *feeding) { coord.take(x, ev) }) },
		func(error) { p.broke() })
}

// broke tries again later.
func (p *push) broke() {
	p.cut()
	p.failed = true
	if p.h.loop.Now()-p.opened > maxPushRetry {
		p.backoff = firstPushRetry
	}
	run := p.run
	p.h.after(p.h.loop.jitter(p.backoff), func() {
		if p.run == run && p.feed == nil {
			p.open()
		}
	})
	p.backoff = min(2*p.backoff, maxPushRetry)
}

// watch asks the coordinator what it has: only its own word counts.
func (p *push) watch() {
	run, asked, want := p.run, p.h.loop.Now(), p.h.server.Status()
	p.later(pushedLook, run, func() {
		var has relay.Status
		p.h.toCoordinator.ask(pushedAgain, func() { has = p.h.pool.coord.server.Status() }, func(err error) {
			switch {
			case p.run != run:
			case err != nil || !want.Synced || has.History.Number != want.History.Number || has.Version < want.Version:
				p.watch()
			default:
				p.pushed, p.failed = asked, false
				p.h.step(role.Input{})
				p.later(pushedAgain, run, p.watch)
			}
		})
	})
}

func (p *push) later(d time.Duration, run int, do func()) {
	p.h.after(d, func() {
		if p.run == run {
			do()
		}
	})
}

// look tells whether the streams from the cloud are fresh, and what they brought arrived. unable: it is not so because something fails.
func (p *push) look() (fresh, unable bool) {
	now := p.h.loop.Now()
	s := p.h.server.Status()
	fresh = p.pushed != 0 && now-p.pushed <= leaderFresh && s.Fresh(p.h.server.clock.Now(), leaderFresh)
	return fresh, !fresh && p.term != contract.Term{} && (p.failed || p.h.feeder.fails())
}

// beat keeps the pulse.
func (p *push) beat() {
	run, term, coord := p.run, p.term, p.h.pool.coord
	var s *stream
	var heard *heartbeat
	s = p.h.toCoordinator.openStream(func(s *stream) {
		coord.hear(s, p.h.name, term)
		heard = coord.pulse
	}, func(error) {
		if p.run == run && p.pulse == s {
			p.later(p.h.loop.jitter(2*firstPushRetry), run, p.beat)
		}
	})
	p.pulse = s
	var tick func()
	tick = func() {
		if p.run == run && p.pulse == s {
			s.send(up, func() { coord.beat(s, heard) })
			p.later(contract.PulsePeriod, run, tick)
		}
	}
	tick()
}
