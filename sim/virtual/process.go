package virtual

import "time"

// process is something that can be killed and frozen. A frozen one does nothing, but what reaches it meanwhile is done
// when it thaws, as a socket's buffer and expired timers are.
type process struct {
	loop   *Loop
	name   string
	life   int // grows with each start
	up     bool
	frozen bool
	held   []func()
}

// in returns do bound to the present life.
func (p *process) in(do func()) func() {
	life := p.life
	return func() {
		switch {
		case !p.up || p.life != life:
		case p.frozen:
			p.held = append(p.held, do)
		default:
			do()
		}
	}
}

// after does something later, if the process lives to see it.
func (p *process) after(d time.Duration, do func()) { p.loop.After(d, p.in(do)) }

func (p *process) start() { p.life, p.up, p.frozen, p.held = p.life+1, true, false, nil }

func (p *process) kill() { p.up, p.frozen, p.held = false, false, nil }

func (p *process) thaw() {
	held := p.held
	p.frozen, p.held = false, nil
	life := p.life
	for i, do := range held {
		if p.frozen { // again
			p.held = append(p.held, held[i:]...)
			return
		}
		if p.up && p.life == life {
			do()
		}
	}
}
