package member

import (
	"log/slog"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/role"
)

// Effect is something for the hub to do: one of the types below.
type Effect interface{ effect() }

type (
	// Wake is when the next step is due if nothing is observed before. Each step has one, as its last effect.
	Wake struct{ At time.Time }
	// Request is a request to the coordinator. Its end is an Observation.Result. Kind is never Feed or StopFeed.
	Request struct{ role.Action }
	// Lead begins to lead: under a term of the election if Elected, else as a leader hub.
	Lead struct {
		Term    contract.Term
		Elected bool
	}
	// Retire ends what Lead began.
	Retire struct{}
	// Point feeds each relay from a source, by the name of its resource. It comes when one of them, or
	// Observation.Server, changed.
	Point struct{ From map[string]role.Source }
	// AskAnew forgets that the coordinator refused a resource.
	AskAnew struct{ Resource string }
	// Kick ends the pause after a failed attempt to feed a resource.
	Kick struct{ Resource string }
	// AskStatus asks the coordinator, or the leader hub, for its PoolStatus. Its end is an Observation.Answer.
	AskStatus struct{}
	// AskCloud makes the cloud give a sign of life.
	AskCloud struct{}
	// Hurry is within what time the hub has to know whether the cloud is there. 0: there is no hurry.
	Hurry struct{ Within time.Duration }
	// Late is whether even the answer to a ping of the cloud is late.
	Late struct{ Is bool }
	// Shun leaves the leader hub of a node alone for a while.
	Shun struct{ Node string }
	// Stand is how this hub stands in a pool with leader hubs. Open: it is one of them.
	Stand struct {
		contract.Standing
		Open bool
	}
	// LeaveIdentity writes down the identity of this process, for the next one.
	LeaveIdentity struct{}
	// Overrule takes up a later history of the cloud from the cloud itself.
	Overrule struct{ History uint64 }
	// Renumber goes on in another history with what the relay of a resource holds.
	Renumber struct {
		Resource string
		History  relay.History
	}
	// Verify asks the cloud whether it can have reached a version of a resource. If not, the relay is renumbered.
	Verify struct {
		Resource string
		Version  uint64
	}
	// Log is a line for people.
	Log struct {
		Level   slog.Level
		Message string
		Args    []any
	}
)

func (Wake) effect()          {}
func (Request) effect()       {}
func (Lead) effect()          {}
func (Retire) effect()        {}
func (Point) effect()         {}
func (AskAnew) effect()       {}
func (Kick) effect()          {}
func (AskStatus) effect()     {}
func (AskCloud) effect()      {}
func (Hurry) effect()         {}
func (Late) effect()          {}
func (Shun) effect()          {}
func (Stand) effect()         {}
func (LeaveIdentity) effect() {}
func (Overrule) effect()      {}
func (Renumber) effect()      {}
func (Verify) effect()        {}
func (Log) effect()           {}
