package membership

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/relayed"
	"github.com/weir-edge/weir/impl/process"
	"github.com/weir-edge/weir/impl/role"
	"github.com/weir-edge/weir/impl/source"
	"github.com/weir-edge/weir/impl/source/hop"
)

const (
	sampleEvery  = 35 * time.Second // between two samples of what the pool's cache brought; up to sampleSpread more
	sampleSpread = 10 * time.Second
	// While fewer changes than sampleMany wait to be compared, they wait sampleQuiet times as long: each comparison costs
	// as much as the change of a Node, and a quiet pool has little else.
	sampleMany, sampleQuiet = 8, 4
	// maxSharing bounds how many hubs share the work, whatever a coordinator says: each compares every ten minutes or so.
	maxSharing = 16
	// after which a contradiction is asked about again: who feeds the pool may be about to learn it.
	sampleConfirm = 10 * time.Second
	sampleTick    = 5 * time.Second  // between two looks whether there is something to do
	sampleAnswer  = 10 * time.Second // for an answer
)

// doubt compares what the pool's cache brings with the cloud, while this hub reaches both: the metadata of one object
// that changed and how many objects there are, and what the coordinator asks because another hub was contradicted. The
// hubs that read one coordinator, which tells each the same, compare about every 40 s together, or every 3 min
// while little changes, and each of them within 45 s after another node leads; a hub that reads a leader hub compares
// by itself. The leader may lie to the pool; so
// it is noticed. What is contradicted twice is told, to people and to the coordinator, with the leader's node, and the
// pool's cache is left as if it were not fresh, within the spread. What the relays hold is then listed again from the
// cloud. The pool's cache is used again when another node leads, or when the cloud no longer contradicts, as after a
// restore of the cloud that the leader has learned.
type doubt struct {
	*Config
	leader func() string                                                   // node
	asked  func() *contract.Doubt                                          // by the coordinator; nil: nothing
	hubs   func() int                                                      // that read it, with this one; 0: not known
	tell   func(context.Context, contract.Doubt) (refused bool, err error) // the coordinator
	// leaves a leader hub alone; false: it is a leader that the pool elected.
	shun    func(leader string) bool
	changed func()

	samplers map[string]*source.Sampler // by resource
	answered contract.Doubt             // the last one that was asked

	mu      sync.Mutex
	against string          // node; "": nobody is doubted
	untold  *contract.Doubt // what the coordinator has yet to hear; nil: nothing
}

// holds reports whether the leader is doubted.
func (d *doubt) holds() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.against != "" && d.against == d.leader()
}

// run compares until ctx ends.
func (d *doubt) run(ctx context.Context) error {
	d.samplers = map[string]*source.Sampler{}
	leader, due := d.leader(), d.next(1)
	last := due // to compare, however little changed
	for ctx.Err() == nil {
		process.Pause(ctx, d.Clock, sampleTick)
		d.answer(ctx)
		if now := d.leader(); now != leader {
			leader = now
			if soon := d.next(1); soon.Before(due) { // never later: who leads may change all the time
				due = soon
			}
			last = due
		}
		if now := d.Clock.Now(); !now.Before(last) || !now.Before(due) && d.many() {
			for _, f := range d.Sources.All() {
				d.look(ctx, f)
			}
			now = d.Clock.Now()
			due = d.next(min(max(d.hubs()-1, 1), maxSharing)) // the leader compares nothing
			last = now.Add(sampleQuiet * due.Sub(now))
		}
		d.deliver(ctx)
		d.part()
	}
	return nil
}

// part leaves a leader hub alone that lied, for another one, once nothing is held any more of what it showed.
func (d *doubt) part() {
	if d.holds() && !slices.ContainsFunc(d.Sources.All(), func(f *relayed.Feeder) bool { return f.Overruled() }) {
		d.shun(d.leader())
	}
}

// next is when to compare next, if so many share the work: for each of them as much later, at any time of that, so that
// they do not compare all at once.
func (d *doubt) next(sharing int) time.Time {
	more := time.Duration(sharing-1) * (2*sampleEvery + sampleSpread)
	return d.Clock.Now().Add(sampleEvery + rand.N(sampleSpread+more))
}

// many reports whether much waits to be compared.
func (d *doubt) many() bool {
	waits := 0
	for _, f := range d.Sources.All() {
		of := d.samplers[f.Resource]
		if of == nil {
			return true
		}
		waits += f.Unchecked(of)
	}
	return waits >= sampleMany
}

// judge is the cloud if a resource comes from the pool and the cloud can be asked; nil: there is nothing to compare.
func (d *doubt) judge(f *relayed.Feeder) *hop.Upstream {
	if f.Status().Upstream != role.Coordinator.String() {
		return nil
	}
	return d.Sources.Judge()
}

// look compares one resource.
func (d *doubt) look(ctx context.Context, f *relayed.Feeder) {
	cloud := d.judge(f)
	if cloud == nil {
		return
	}
	if d.samplers[f.Resource] == nil {
		d.samplers[f.Resource] = &source.Sampler{}
	}
	err := d.ask(ctx, func(ctx context.Context) error { return f.Sample(ctx, cloud, d.samplers[f.Resource]) })
	d.pursue(ctx, f, cloud, err)
}

// answer compares what the coordinator asks, once. If this hub does not hold it, or cannot compare it, it has nothing
// to say.
func (d *doubt) answer(ctx context.Context) {
	asked := d.asked()
	if asked == nil || *asked == d.answered || asked.Leader != d.leader() {
		return
	}
	f, known := d.Sources.Named(asked.Resource), false
	if f == nil {
		return
	}
	cloud := d.judge(f)
	if cloud == nil {
		return
	}
	err := d.ask(ctx, func(ctx context.Context) (err error) {
		known, err = f.Compare(ctx, cloud, asked.Namespace, asked.Name, asked.Held)
		return err
	})
	var no *source.ContradictionError
	switch {
	case errors.As(err, &no):
		d.answered = *asked
		d.pursue(ctx, f, cloud, err)
	case err == nil:
		d.answered = *asked
		if known {
			d.say(*asked)
		}
	}
}

// pursue asks about a contradiction again and again, while the same leader feeds the same.
func (d *doubt) pursue(ctx context.Context, f *relayed.Feeder, cloud *hop.Upstream, err error) {
	var no *source.ContradictionError
	for errors.As(err, &no) && ctx.Err() == nil {
		leader := d.leader()
		process.Pause(ctx, d.Clock, sampleConfirm)
		before := no
		if err = d.ask(ctx, func(ctx context.Context) error { return f.Confirm(ctx, cloud, before) }); err == nil {
			d.trust()
			return
		}
		if no = nil; !errors.As(err, &no) || leader != d.leader() || f.Status().Upstream != role.Coordinator.String() {
			return
		}
		said := contract.Doubt{Leader: leader, Resource: f.Resource}
		said.Namespace, said.Name, said.Held = no.Held()
		d.suspect(said, no)
		d.deliver(ctx)
	}
}

func (d *doubt) ask(ctx context.Context, what func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, sampleAnswer)
	defer cancel()
	return what(ctx)
}

// suspect notes that the cloud contradicts what a leader fed.
func (d *doubt) suspect(what contract.Doubt, proof error) {
	d.Contradicted(what.Resource)
	d.mu.Lock()
	first := d.against != what.Leader
	d.against = what.Leader
	d.mu.Unlock()
	if !first || what.Leader == "" {
		return
	}
	d.Logger.Error("the cloud contradicts what the leader of the pool feeds: the pool's cache is left unless that changes",
		"leader", what.Leader, "resource", what.Resource, "err", proof)
	what.Confirmed = true
	d.say(what)
	for _, f := range d.Sources.All() {
		f.Distrust()
	}
	d.changed()
}

func (d *doubt) say(what contract.Doubt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.untold = &what
}

// deliver tells the coordinator what it has yet to hear.
func (d *doubt) deliver(ctx context.Context) {
	d.mu.Lock()
	what := d.untold
	d.mu.Unlock()
	if what == nil {
		return
	}
	refused, err := false, error(nil)
	if what.Leader == d.leader() { // else it is over
		err = d.ask(ctx, func(ctx context.Context) (err error) {
			refused, err = d.tell(ctx, *what)
			return err
		})
	}
	switch {
	case refused:
		d.Logger.Warn("the coordinator does not hear that the cloud was compared with the leader", "leader", what.Leader,
			"contradicted", what.Confirmed, "err", err)
	case err != nil:
		return // the next time
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.untold == what {
		d.untold = nil
	}
}

// trust takes a doubt back.
func (d *doubt) trust() {
	d.mu.Lock()
	was := d.against
	d.against = ""
	d.mu.Unlock()
	if was != "" {
		d.Logger.Info("the cloud no longer contradicts the pool's cache", "leader", was)
		d.changed()
	}
}
