package role

import (
	"time"
)

// Resource is what was observed of one resource since the last step of Detours.
type Resource struct {
	Name string
	// it came later than the others and holds nothing yet: its clients are answered elsewhere, and the pool may be about
	// to have it.
	Joins  bool
	Synced bool // its relay holds a state
	Fresh  bool // and that is fresh
	Denied bool // the coordinator does not have the resource, or has heard from the leader that the cloud does not give it
	There  bool // the coordinator says that it is fresh there, and has said so since it was left or denied the resource
}

// Detours decide for each resource by itself whether it is fed from where Snapshot.Source says. What the pool does not
// have, because its lists differ, or its leader is not given it, is fed from the cloud, and takes nothing from the
// others. Like a Machine they are pure, and one goroutine steps them.
type Detours struct {
	self
	ways map[string]*detour // by name
}

// detour is the way of one resource while the others are fed from the coordinator.
type detour struct {
	away bool          // fed from the cloud
	why  reason        // to change that
	due  time.Duration // when it is changed, if there is a reason
}

// reason is why a resource goes to the cloud, or comes back.
type reason uint8

const (
	none   reason = iota
	denied        // it is not to be had at the coordinator: soon
	empty         // nothing came from there, and clients are told to wait: after Config.Wait
	// nothing comes from there any more: after Config.Grace, as when the pool's cache as a whole is not ready.
	stale
	there // it is fresh at the coordinator
)

// NewDetours returns the detours of whatever resources there will be.
func NewDetours(c Config) *Detours { return &Detours{self: newSelf(c, 1), ways: map[string]*detour{}} }

// Step returns the source of each resource, and when the next step is due if nothing is observed before. A resource
// that is not among them is forgotten.
func (d *Detours) Step(in Input, s Snapshot, resources []Resource) (sources []Source, wake time.Duration) {
	sources, wake = make([]Source, len(resources)), in.Now+time.Minute
	before := d.ways
	d.ways = make(map[string]*detour, len(resources))
	for i, r := range resources {
		way := before[r.Name]
		if way == nil {
			way = &detour{}
		}
		d.ways[r.Name] = way
		if s.Source != Coordinator {
			*way, sources[i] = detour{}, s.Source
			continue
		}
		if why := way.reason(in, s, r); why != way.why {
			way.why, way.due = why, in.Now+d.wait(why)
		}
		if way.why != none && in.Now >= way.due {
			*way = detour{away: !way.away}
		}
		if sources[i] = Coordinator; way.away {
			sources[i] = Cloud
		}
		if way.why != none {
			wake = min(wake, way.due)
		}
	}
	return sources, wake
}

func (w *detour) reason(in Input, s Snapshot, r Resource) reason {
	switch {
	case w.away && (r.There || !in.Cloud):
		return there
	case w.away, !in.Cloud:
		return none
	case r.Joins:
		return stale
	case r.Denied:
		return denied
	case r.Fresh:
		return none
	case !r.Synced:
		return empty
	case s.Ready:
		return stale
	}
	return none
}

// wait is how long a reason has to last. All hubs of a pool have it at the same time, so it is spread.
func (d *Detours) wait(why reason) time.Duration {
	least, spread := time.Duration(0), d.cfg.Spread/10
	switch why {
	case empty:
		least = d.cfg.Wait
	case stale:
		least, spread = d.cfg.Grace, d.cfg.Spread
	case none, denied, there:
	}
	return least + d.spread(spread)
}
