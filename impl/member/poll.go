package member

import (
	"time"

	"github.com/weir-edge/weir/impl/relay"
)

const (
	arrivedLook  = 250 * time.Millisecond // a leader looks what its relays have, and asks the coordinator so much later
	arrivedAgain = 2 * time.Second        // it looks again then, once all has arrived; until then at once
	sharedLook   = 30 * time.Second       // how often others ask
	// and while it is not known what the coordinator has, or a resource is not fed from there.
	sharedSoon = 2 * time.Second
)

// poll decides when the coordinator is asked for its status.
type poll struct {
	busy  bool      // it is being asked
	void  bool      // and the answer is not about this term
	asked time.Time // when that was looked at, of which the answer is
	due   time.Time // of the next question, at the earliest
	again time.Time // of the next regular one, while this hub does not lead

	leads bool
	look  time.Time               // when a leader looks what its relays have
	want  map[string]relay.Status // what it had when it looked; nil: it has not
}

// lead begins a term, or ends it.
func (p *poll) lead(now time.Time, leads bool) {
	p.leads, p.look, p.want, p.void = leads, now, nil, p.busy
}

// ask reports whether the status is to be asked for now, and when this is to be asked again.
// needed: it is not known what the coordinator has, or a resource is not fed from there.
func (p *poll) ask(o *Observation, needed bool) (ask bool, wake time.Time) {
	now := o.Now
	if p.busy {
		return false, now.Add(time.Minute)
	}
	due := p.due
	if p.leads {
		if p.want == nil && now.Before(p.look) {
			return false, p.look
		}
		if p.want == nil {
			p.want, p.asked, p.due = make(map[string]relay.Status, len(o.Relays)), now, now.Add(arrivedLook)
			for i := range o.Relays {
				p.want[o.Relays[i].Name] = o.Relays[i].Status
			}
		}
		due = p.due
	} else {
		if !o.Pool {
			return false, now.Add(time.Minute)
		}
		if !needed && due.Before(p.again) {
			due = p.again
		}
	}
	if now.Before(due) {
		return false, due
	}
	p.busy = true
	if !p.leads {
		p.asked = now
	}
	return true, now.Add(time.Minute)
}

// answered notes that an answer came. all: what a leader wanted the coordinator to have has arrived there.
func (p *poll) answered(now time.Time, good, all bool) {
	p.busy, p.void, p.want = false, false, nil
	p.look, p.due = now, now.Add(sharedSoon)
	if all {
		p.look = now.Add(arrivedAgain)
	}
	if good {
		p.again = now.Add(sharedLook)
	}
}
