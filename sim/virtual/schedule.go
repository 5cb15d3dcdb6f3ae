package virtual

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// heals is how long a pool may take to recover: the longest bar of a hub is a minute, then a Lease may have to expire,
// and hubs come back to the pool's cache over a while.
const heals = 2 * time.Minute

// Schedule is a pool and the faults that happen to it. It says all that a run needs: the same one is the same run.
type Schedule struct {
	Config
	Steps []Step
	End   time.Duration // then all is healed, and the pool has to recover
}

// Step is a command at a time.
type Step struct {
	At      time.Duration
	Command string
}

// String is a schedule as a script of testdata has it.
func (s Schedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "run hubs=%d grace=%v spread=%v seed=%d leaders=%d churn=%v\n", s.Hubs, s.Grace, s.Spread, s.Seed,
		s.Leaders, s.Churn)
	for _, x := range s.Steps {
		fmt.Fprintf(&b, "%v %s\n", x.At, x.Command)
	}
	fmt.Fprintf(&b, "%v healed\n", s.End)
	return b.String()
}

// Random is the schedule of a number, and the promise that it breaks, nil if none. Its commands are drawn while it
// runs.
func Random(number uint64, set func(*Config)) (Schedule, error) {
	rng := rand.New(rand.NewPCG(number, 1))
	s := Schedule{Config: Config{
		Seed: number, Hubs: 2 + rng.IntN(2), Clients: 1,
		Grace: time.Duration(rng.Int64N(int64(20 * time.Second))), Spread: time.Duration(rng.Int64N(int64(10 * time.Second))),
	}}
	if rng.IntN(2) == 0 {
		s.Churn = 2 * time.Second
	}
	if rng.IntN(4) == 0 {
		s.Leaders = 1 + rng.IntN(2)
	}
	s.End = time.Duration(rng.Int64N(int64(10 * time.Second)))
	err := s.run(set, func(p *Pool) error {
		for range 30 {
			p.Run(s.End - p.Now())
			x := Step{s.End, p.Chance(rng)}
			s.Steps = append(s.Steps, x)
			if err := p.Do(x.Command); err != nil {
				return err
			}
			d := time.Duration(rng.Int64N(int64(500 * time.Millisecond)))
			if rng.IntN(3) == 0 {
				d = time.Duration(rng.Int64N(int64(20 * time.Second)))
			}
			s.End += d
		}
		p.Run(s.End - p.Now())
		return nil
	})
	return s, err
}

// errCommand says that a schedule has a step that cannot be taken in its pool: it breaks no promise.
var errCommand = errors.New("the schedule does not fit its pool")

// Run runs a schedule, and returns the promise that it breaks, nil if none.
func (s Schedule) Run(set func(*Config)) error {
	return s.run(set, func(p *Pool) error {
		for _, x := range s.Steps {
			p.Run(x.At - p.Now())
			command := x.Command
			if strings.HasPrefix(command, "cloud restore") && (!p.cloud.up || !p.agreed()) {
				command = "cloud forget" // Weir promises nothing for it: see agreed
			}
			if err := p.Do(command); err != nil {
				return fmt.Errorf("%w: %w", errCommand, err)
			}
		}
		p.Run(s.End - p.Now())
		return nil
	})
}

// run makes a pool, lets something happen to it, heals all, and holds it to its promises.
func (s Schedule) run(set func(*Config), happen func(*Pool) error) error {
	c := s.Config
	if set != nil {
		set(&c)
	}
	p := New(c)
	defer p.Close()
	if err := happen(p); err != nil {
		return err
	}
	return p.healed()
}

// healed ends all faults, and holds the pool to its promises then.
func (p *Pool) healed() error {
	p.Calm()
	for _, d := range []time.Duration{lastWords, heals} { // a hub that was told to stop is started again, too
		if err := p.Do("heal"); err != nil {
			return err
		}
		p.Run(d)
	}
	if err := p.Do("write " + key(0)); err != nil {
		return err
	}
	p.Run(10 * time.Second)
	if p.Err() == nil {
		p.judge.healed()
	}
	return p.Err()
}

// Shrink leaves out steps of a schedule that breaks a promise, as long as what is left breaks one. breaks reports
// whether a schedule does.
func Shrink(s Schedule, breaks func(Schedule) bool) Schedule {
	for n := len(s.Steps) / 2; n > 0; {
		smaller := false
		for i := 0; i+n <= len(s.Steps); {
			less := s
			less.Steps = append(append([]Step(nil), s.Steps[:i]...), s.Steps[i+n:]...)
			if breaks(less) {
				s, smaller = less, true
				continue
			}
			i += n
		}
		if !smaller || n > 1 {
			n /= 2
		}
	}
	for _, simpler := range []func(*Schedule){
		func(s *Schedule) { s.Churn = 0 },
		func(s *Schedule) { s.Hubs = 2 },
	} {
		less := s
		if simpler(&less); breaks(less) {
			s = less
		}
	}
	return s
}
