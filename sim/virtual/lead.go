package virtual

import (
	"time"

	"github.com/weir-edge/weir/impl/contract"
)

// leading is what a leader shows: the term that it feeds under, and who reads it.
type leading struct {
	h       *Hub
	leads   bool
	term    contract.Term // of an election
	readers int           // pulses of the coordinator
	since   time.Duration // since when there are some, or none
}

func (p *leading) begin(t contract.Term, elected bool) {
	p.leads, p.term = true, t
	if elected {
		p.h.trace("leads under %v", t)
		return
	}
	p.h.trace("leads as it is named")
}

func (p *leading) end() { p.leads, p.term = false, contract.Term{} }

// pulse is the hub's end of a pulse: it knows by it that it is read.
func (p *leading) pulse(s *stream) {
	p.lean(1)
	s.broken[up] = s.l.server.in(func() { p.lean(-1) })
}

func (p *leading) lean(n int) {
	if p.readers += n; p.readers == 0 || p.readers == n {
		p.since = p.h.loop.Now()
	}
}
