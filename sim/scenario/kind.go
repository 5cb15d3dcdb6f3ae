package scenario

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weir-edge/weir/sim/link"
)

// Kind is what a fault does. Each is one type in one file: it says what it may be done to and which fields it takes,
// reads and writes them, aims, begins, heals, and says what judges and reports make of it. Parser, judges and
// laboratories know faults by this interface alone. storm.go says which of them a storm is made of. What a fault is
// done to are interfaces, too, so it needs no laboratory. A type embeds common, and has the methods in which it
// differs.
type Kind interface {
	// rule is its name, what it may be done to, and all its fields.
	rule() actionRule
	// own are the fields that are its own.
	own() []own
	// check says what is wrong with the fields of its fault together, p being the pool and pools all of the file.
	check(o object, f Fault, p Pool, pools []Pool)
	// contradicts tells why such a fault does not belong into a scenario as it is so far; "": it does.
	contradicts(s *Scenario) string
	// words are what a report says of it behind action and target.
	words() string
	// effect is what judges have to know of a fault of this kind.
	effect(f Fault) effect
	// unmeasured tells why the scenario never has a metric that a fault of this kind is needed for; "": it may.
	unmeasured(metric string, s *Scenario) string

	// Aim finds out what it is done to now, and who notices.
	Aim(ctx context.Context, lab Lab, at *Aim) error
	// Begin starts it.
	Begin(ctx context.Context, lab Lab, at *Aim) (Going, error)
}

// Prepared is a Kind that needs something a while before it begins.
type Prepared interface {
	// Before is how long before.
	Before() time.Duration
	// Prepare does it.
	Prepare(ctx context.Context, lab Lab) error
}

// own is a field of one kind: what it is, and how it is read, for a fault of a pool.
type own struct {
	name string
	is   any
	read func(v value, p Pool)
}

// effect is what judges have to know of a fault.
type effect struct {
	leader    bool // something happens to the leader
	apiserver bool // the apiserver of the cloud ends: its watch cache is then empty
	batches   bool // relays may send differences: see Scenario.batches
	lan       bool // it needs a link between nodes and coordinator
}

// Lab is where faults happen, as a Kind sees it. A Kind that needs more asks for an interface of its own.
type Lab interface {
	// Find finds out what the target of a fault is now: a node, or a part.
	Find(ctx context.Context, at *Aim) error
	// Part is the process that is the target.
	Part(at *Aim) (Part, error)
	// Machine is all that runs on the node that is the target, as one.
	Machine(at *Aim) (Part, error)
	// Lines are the links of a pool that there are; "" names both.
	Lines(p Pool, name LinkName) []Line
	// Lost notes that clients of nodes have just lost their connections.
	Lost(nodes []string)
	// Sleep waits until a time, or until the context ends.
	Sleep(ctx context.Context, until time.Time) error
}

// Aim is what a fault is done to, found out when it begins.
type Aim struct {
	Fault  Fault
	Pool   Pool
	Seed   int64    // decides what is random
	Node   string   // whose hub, links or Node is the target; "": of no node
	Leader string   // the node that leads, if that is the target
	Part   string   // the process that is the target, by the laboratory's name; "": links, or an object
	Nodes  []string // whose links are the target; "" is all of the pool
	Silent []string // nodes whose clients cannot be served while it lasts
	CutOff bool     // nothing reaches the pool from the cloud while it lasts
	Ends   bool     // the process ends, and begins with what it kept
	Stops  bool     // nothing crosses the links
	Weir   bool     // only Weir is put through it, and not stock Kubernetes beside it

	Began time.Time
	Back  func() // lets the testbed's requests to the cloud go on, which waited for its apiserver; nil: none waits
	Due   int64  // bytes of class pool that it costs by its nature, counted while it lasts
}

// Going is a fault that has begun.
type Going struct {
	Hold func(context.Context) error // lasts as long as the fault; nil: for its time, and nothing happens
	Heal func(context.Context) error // ends it; nil: there is nothing to heal
}

// Part is a process as a Kind sees it. It is a runtime.Part in a run.
type Part interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	Kill() error
	Freeze() error
	Thaw() error
	LoseDisk() error
}

// Line is a link as a Kind sees it. It is a *link.Pool in a run.
type Line interface {
	Cut(dir link.Direction, node string)
	Heal(dir link.Direction, node string)
	SetRate(dir link.Direction, bits int64)
	SetRTT(rtt time.Duration)
	AddToxic(dir link.Direction, node, kind string, attributes map[string]int64) (remove func(), err error)
}

// kinds are all that happen where clients list and watch, in the order in which they are told.
func kinds() []Kind {
	return append([]Kind{
		&Kill{}, &Stop{}, &Restart{}, &Freeze{}, &Lie{}, &Forge{}, &DeleteNode{}, &Vanish{}, &Cut{}, &Flap{}, &Slow{},
		&Restore{}, &Blackout{}, &Change{}, &Move{}, &Remove{}, &RotateAuthority{}, &Place{}, &PowerOff{}, &Storm{},
	}, toxics()...)
}

// happen reports whether a scenario has a fault of a kind.
func happen[K Kind](s *Scenario) bool {
	return slices.ContainsFunc(s.Faults, is[K])
}

// is reports whether a fault is of a kind.
func is[K Kind](f Fault) bool {
	_, ok := f.Kind.(K)
	return ok
}

// common is what most kinds have in common: no fields of their own, and nothing that is wrong.
type common struct{}

func (common) own() []own                          { return nil }
func (common) check(object, Fault, Pool, []Pool)   {}
func (common) contradicts(*Scenario) string        { return "" }
func (common) words() string                       { return "" }
func (common) unmeasured(string, *Scenario) string { return "" }

// longBreak is how long a relay is without a source before it may ask for a difference instead of all changes.
const longBreak = 10 * time.Second

func (common) effect(f Fault) effect {
	_, replica := f.Target.Replica()
	all := replica || slices.Contains([]Target{WholePool, Coordinator, Each}, f.Target)
	return effect{
		leader: f.Target == Leader || f.Target == Each, apiserver: f.Target == APIServer,
		batches: f.Target == APIServer || all && f.For >= longBreak, lan: f.Link.LAN(),
	}
}

// Aim implements Kind: the target is what is found. Clients of its node are not served meanwhile.
func (common) Aim(ctx context.Context, lab Lab, at *Aim) error {
	err := lab.Find(ctx, at)
	if at.Node != "" {
		at.Silent = []string{at.Node}
	}
	return err
}

// served are kinds whose clients are served on.
type served struct{ common }

// Aim implements Kind.
func (served) Aim(ctx context.Context, lab Lab, at *Aim) error { return lab.Find(ctx, at) }

// ofWeir are kinds that only Weir is put through.
type ofWeir struct{ common }

// Aim implements Kind.
func (ofWeir) Aim(ctx context.Context, lab Lab, at *Aim) error {
	at.Weir = true
	return lab.Find(ctx, at)
}

// unnoticed are kinds that keep no relay from its source.
type unnoticed struct{ common }

func (u unnoticed) effect(f Fault) effect {
	e := u.common.effect(f)
	e.batches = false
	return e
}

// toObject are kinds that are done to the node that is found, or to the pool, and to no process.
type toObject struct{ unnoticed }

// Aim implements Kind.
func (toObject) Aim(ctx context.Context, lab Lab, at *Aim) error { return aimLine(ctx, lab, at, false) }

// with lets a laboratory that can do more do it.
func with[T any](lab Lab, do func(T) (Going, error)) (Going, error) {
	of, ok := lab.(T)
	if !ok {
		return Going{}, errors.New("this laboratory cannot do that")
	}
	return do(of)
}
