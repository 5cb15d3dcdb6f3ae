package virtual

import (
	"time"

	"github.com/weir-edge/weir/impl/relay"
)

const savePeriod = 5 * time.Second // between two snapshots of a relay

// saved is a relay on disk, as it was a while ago.
type saved struct {
	x    *relay.Export // nil: there is nothing
	at   time.Time     // when it was last fresh
	era  int
	lost uint64
}

func (d *saved) keep(s *server) {
	if x, ok := s.Export(); ok {
		*d = saved{x, s.Status().ProgressAt, s.era, s.lost}
	}
}

// restore gives a new relay what the disk has.
func (d *saved) restore(s *server) {
	if d.x == nil {
		return
	}
	r := s.Restoration(d.x.From)
	r.In(d.x.History)
	s.era, s.lost = d.era, d.lost
	_, objects := d.x.Objects()
	for o := range objects {
		must(r.Add(o))
	}
	for _, c := range d.x.Changes() {
		must(r.Apply(c))
	}
	must(r.Finish(d.at))
	d.keep(s) // an Export can be walked over once
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
