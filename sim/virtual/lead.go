package virtual

import (
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/role"
)

const (
	arrivedLook  = 250 * time.Millisecond
	arrivedAgain = 2 * time.Second
)

// lead is what a leader does, by the steps of hub.feed: it looks whether what the cloud showed has arrived at the coordinator, and whether that reads it.
type lead struct {
	h       *Hub
	term    contract.Term // zero: not
	began   time.Duration
	run     int           // grows with each term and end
	arrived time.Duration // when the coordinator was last seen to have what the relay had shortly before; 0: not under this term
	readers int           // pulses of the coordinator
	since   time.Duration // since when there are some, or none
}

func (p *lead) begin(t contract.Term) {
	p.end()
	p.term, p.began = t, p.h.loop.Now()
	p.h.trace("leads under %v", t)
	p.watch()
}

func (p *lead) end() {
	p.run++
	p.term, p.arrived = contract.Term{}, 0
}

// watch asks the coordinator what it has: only its own word counts. It may be in a later history: then this hub was away when the cloud was restored, and
// the cloud itself has the word.
func (p *lead) watch() {
	run, asked, want := p.run, p.h.loop.Now(), p.h.server.Status()
	p.later(arrivedLook, run, func() {
		var has relay.Status
		p.h.toCoordinator.ask(arrivedAgain, func() { has = p.h.pool.coord.server.Status() }, func(err error) {
			switch mine := p.h.server.Status(); {
			case p.run != run:
			case err == nil && has.Synced && mine.Synced && has.History.Number > mine.History.Number:
				p.h.feeder.overrule(has.History)
				p.watch()
			case err != nil || !want.Synced || has.History.Number != want.History.Number || has.Version < want.Version:
				p.watch()
			default:
				p.arrived = asked
				p.h.step(role.Input{})
				p.later(arrivedAgain, run, p.watch)
			}
		})
	})
}

func (p *lead) later(d time.Duration, run int, do func()) {
	p.h.after(d, func() {
		if p.run == run {
			do()
		}
	})
}

// look tells whether the streams from the cloud are fresh, and what they brought arrived. unable: it is not so because something fails.
func (p *lead) look() (fresh, unable bool) {
	now := p.h.loop.Now()
	s := p.h.server.Status()
	fresh = p.arrived != 0 && now-p.arrived <= leaderFresh && s.Fresh(p.h.server.clock.Now(), leaderFresh)
	unread := p.readers == 0 && now-max(p.since, p.began) > contract.PulseSilence
	return fresh, p.term != contract.Term{} && (unread || !fresh && p.h.feeder.fails())
}

// pulse is the hub's end of a pulse: it knows by it that it is read.
func (p *lead) pulse(s *stream) {
	p.lean(1)
	s.broken[up] = s.l.server.in(func() { p.lean(-1) })
}

func (p *lead) lean(n int) {
	if p.readers += n; p.readers == 0 || p.readers == n {
		p.since = p.h.loop.Now()
	}
}
