package relayed

import (
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/role"
	"github.com/weir-edge/weir/impl/source"
	"github.com/weir-edge/weir/impl/source/hop"
)

// Feeder is the feeder of one relay.
type Feeder struct {
	*source.Feeder
	Relay    *relay.Relay
	Resource string
	began    time.Time
	clock    clock.PassiveClock
	looks    func()
	gate     atomic.Pointer[Gate]      // told of what fails; nil: there is none
	refused  atomic.Pointer[time.Time] // when the coordinator said that it does not have the resource; nil: it did not
}

// NewFeeder makes a feeder. looks is called when a source has said that it does not give the resource.
func NewFeeder(c source.Config, looks func()) (*Feeder, error) {
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	f := &Feeder{
		Relay: c.Relay, Resource: c.Relay.Resource().String(), began: c.Clock.Now(), clock: c.Clock, looks: looks,
	}
	c.Denied = f.denied
	c.Failed = func(up *hop.Upstream, err error) {
		if gate := f.gate.Load(); gate != nil {
			(*gate).Failed(up, f.Resource, err)
		}
	}
	var err error
	f.Feeder, err = source.NewFeeder(c)
	return f, err
}

// Age is how long the feeder has been there.
func (f *Feeder) Age() time.Duration { return f.clock.Since(f.began) }

// denied takes the answer of an upstream that does not have the resource, or does not give it. The coordinator's word
// is not the last one: there is the cloud to ask, and until that has answered, the relay goes on with what it holds.
func (f *Feeder) denied(up *hop.Upstream, why error) {
	switch {
	case up.Name == source.Gate: // it is read at kube-apiserver then
		return
	case up.Consistent:
		f.Relay.Deny(why)
	default:
		now := f.clock.Now()
		f.refused.Store(&now)
	}
	f.looks()
}

// Lacked reports whether the coordinator does not have the resource, as far as it has said.
func (f *Feeder) Lacked() bool {
	at := f.refused.Load()
	return at != nil && !f.Relay.Status().ProgressAt.After(*at) && !f.Given(*at)
}

// Given reports whether the coordinator gives the resource, and has begun to after a time. What it gives may be from
// before that.
func (f *Feeder) Given(after time.Time) bool {
	s := f.Status()
	return s.Upstream == role.Coordinator.String() && s.LastError == "" && s.Since.After(after)
}

// Unavailable reports whether the relay has nothing to answer with, and will not have soon: nobody whom it was fed by
// gives it the resource, or it has only just come. Then the cloud answers each request by itself.
func (f *Feeder) Unavailable() bool {
	s := f.Relay.Status()
	return s.Denied != "" || s.Joins || !s.Synced && (f.Lacked() || f.broken())
}

// broken reports whether the cloud answers lists of the resource by an error, as it does for a custom resource that it
// cannot convert. One that is only busy is not asked more.
func (f *Feeder) broken() bool {
	s := f.Status()
	return s.Upstream == role.Cloud.String() && s.LastError != "" && s.Answer != 0 &&
		s.Answer != http.StatusTooManyRequests
}

// Found takes that the cloud answered a client about the resource: if it had said that there is none, it has changed
// its mind.
func (f *Feeder) Found() {
	if why := f.Relay.Denied(); why != nil && why.ErrStatus.Code == http.StatusNotFound {
		f.Kick()
	}
}

// AskAnew forgets that the coordinator said that it does not have the resource.
func (f *Feeder) AskAnew() { f.refused.Store(nil) }

// Gate is the relay beside the kube-apiserver, if the cloud has one. It is safe for concurrent use.
type Gate interface {
	// Upstream is the gate, if a resource is read there; nil: it is read at kube-apiserver.
	Upstream(resource string) *hop.Upstream
	// Failed takes the error by which a resource could not be read somewhere. Feeders may be pointed elsewhere before it
	// returns.
	Failed(up *hop.Upstream, resource string, err error)
}

// Made is what all relays of a hub and their feeders are made of.
type Made struct {
	Member       Member
	There        func() bool   // the cloud can be asked
	RingAge      time.Duration // 0: the relay's default
	WatchTimeout time.Duration // of a watch at the cloud
	Clock        clock.WithTickerAndDelayedExecution
	Logger       *slog.Logger
}

// Member is the hub's member of its pool. Its methods do not block.
type Member interface {
	Takes() bool                             // it leads or follows
	Denied(resource string)                  // a source does not give it
	Contradict(resource string, proof error) // the cloud says otherwise than the pool
}

// Sources are the feeders that there are, and points them to the upstreams that were chosen for them. It may be read
// and changed by many: who has taken All goes on with what there was then.
type Sources struct {
	Made
	Feeding     func(fromCloud bool) // told whether any is fed from the cloud
	Cloud       *hop.Upstream
	Gate        Gate                 // that stands for the cloud; nil: none does
	Coordinator func() *hop.Upstream // the replica that is used now; nil: there is no pool
	Pulse       source.Pulse         // of what they have from the cloud

	follow []func(number uint64, byCloud bool)

	mu   sync.Mutex
	from map[*Feeder]role.Source // of Use
	now  atomic.Pointer[now]
}

// now is what is relayed now.
type now struct {
	feeders []*Feeder
	relays  []*relay.Relay // of them
	left    []string       // resources that were relayed before, and are not
}

// All are the feeders, in the order in which they came. Nobody may change what is returned.
func (s *Sources) All() []*Feeder {
	if n := s.now.Load(); n != nil {
		return n.feeders
	}
	return nil
}

// Relays are those of All.
func (s *Sources) Relays() []*relay.Relay {
	if n := s.now.Load(); n != nil {
		return n.relays
	}
	return nil
}

// Names are the resources of All.
func (s *Sources) Names() (all []string) {
	for _, f := range s.All() {
		all = append(all, f.Resource)
	}
	return all
}

// Left reports whether a resource was relayed before, and is not now.
func (s *Sources) Left(resource string) bool {
	n := s.now.Load()
	return n != nil && slices.Contains(n.left, resource)
}

// Of is the feeder of a relay, nil if that is not fed any more.
func (s *Sources) Of(r *relay.Relay) *Feeder {
	return s.find(func(f *Feeder) bool { return f.Relay == r })
}

// Named is the feeder of a resource, nil if there is none.
func (s *Sources) Named(resource string) *Feeder {
	return s.find(func(f *Feeder) bool { return f.Resource == resource })
}

// Relay is the relay of a resource, nil if there is none.
func (s *Sources) Relay(resource string) *relay.Relay {
	if f := s.Named(resource); f != nil {
		return f.Relay
	}
	return nil
}

func (s *Sources) find(is func(*Feeder) bool) *Feeder {
	all := s.All()
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i]
	}
	return nil
}

// Add puts a feeder behind the others. A leader hub has to choose where to read.
func (s *Sources) Add(f *Feeder) {
	if s.Gate != nil {
		f.gate.Store(&s.Gate)
	}
	s.change(func(all []*Feeder) []*Feeder { return append(all, f) })
}

// Remove takes a feeder out. It goes on until its context ends.
func (s *Sources) Remove(f *Feeder) {
	s.change(func(all []*Feeder) []*Feeder { return slices.DeleteFunc(all, func(o *Feeder) bool { return o == f }) })
}

func (s *Sources) change(by func([]*Feeder) []*Feeder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &now{feeders: by(slices.Clone(s.All()))}
	for _, f := range n.feeders {
		n.relays = append(n.relays, f.Relay)
	}
	if was := s.now.Load(); was != nil {
		n.left = slices.Clone(was.left)
		for _, f := range was.feeders {
			n.left = append(n.left, f.Resource)
		}
		slices.Sort(n.left)
		n.left = slices.DeleteFunc(slices.Compact(n.left), func(name string) bool {
			return slices.ContainsFunc(n.feeders, func(f *Feeder) bool { return f.Resource == name })
		})
	}
	s.now.Store(n)
}

// Use is called again when another replica of the coordinator is used. from is of each feeder.
func (s *Sources) Use(from map[*Feeder]role.Source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from = from
	s.point()
}

// Turn follows that the gate is taken, or is not any more.
func (s *Sources) Turn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.point()
}

// point points feeders to where they read; s.mu is held.
func (s *Sources) point() {
	s.Feeding(slices.Contains(slices.Collect(maps.Values(s.from)), role.Cloud))
	for f, where := range s.from {
		switch where {
		case role.Cloud:
			f.Use(s.cloud(f.Resource))
		case role.Coordinator:
			f.Use(s.Coordinator())
		case role.Nowhere:
			f.Use(nil)
		}
	}
}

// cloud is where a resource is read in the cloud.
func (s *Sources) cloud(resource string) *hop.Upstream {
	if s.Gate != nil {
		if up := s.Gate.Upstream(resource); up != nil {
			return up
		}
	}
	return s.Cloud
}

// Alone feeds all from the cloud: there is no pool.
func (s *Sources) Alone() {
	from := map[*Feeder]role.Source{}
	for _, f := range s.All() {
		from[f] = role.Cloud
	}
	s.Use(from)
}

// Retry ends the pauses of feeders that failed: a server answers again.
func (s *Sources) Retry() {
	for _, f := range s.All() {
		f.Kick()
	}
}
