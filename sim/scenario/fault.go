package scenario

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-edge/weir/sim/link"
)

// Fault is something that happens to the pool with Weir or to the cloud, and is healed again. What an action has no use
// for is zero.
type Fault struct {
	At     time.Duration // since the changes began
	Action Action
	Target Target
	Pool   string        // "": there is one, or the cloud is meant
	For    time.Duration // until it is healed

	Link      LinkName       // of what is done to a link
	Direction link.Direction // of Cut, Flap and toxics but ResetPeer; never zero for them
	Cuts      int            // of Flap
	Rate      *Rate          // of Slow; nil: unchanged
	RTT       *time.Duration // likewise
	Kind      Kind           // of actions that are types; nil for all others
	Disk      Disk           // of actions that end a process
	Lost      time.Duration  // of Restore: what was written in this time before it is lost
	// of Blackout: until the machines have power again; of DeleteNode: until the pool has the cloud again.
	Off    time.Duration
	Empty  []string       // of Blackout: who finds an empty disk then: hub/<number>, or coordinator for all of them
	Policy *Policy        // of SetPolicy
	Object ObjectKind     // of Change and Remove
	Patch  map[string]any // of Change: a JSON merge patch
	To     string         // of Move: the name of another pool

	Repeat int           // how often, one after the other; at least 1
	Every  time.Duration // pause between two of them
}

// Action is what is done to a target.
type Action string

// The actions.
const (
	Kill    Action = "kill"    // SIGKILL; healed by a start
	Stop    Action = "stop"    // SIGTERM; healed by a start
	Restart Action = "restart" // SIGTERM, and a start when it has ended
	Freeze  Action = "freeze"  // SIGSTOP: connections stay and say nothing
	// somebody with the key of the leader's node leads in its place, and shows an EndpointSlice that the cloud never had.
	Lie     Action = "lie"
	Vanish  Action = "vanish"  // the machine loses power: nobody is told that its connections are gone
	Cut     Action = "cut"     // nothing crosses a link, and nobody is told
	Flap    Action = "flap"    // several cuts of a link, at random times
	Slow    Action = "slow"    // another rate or round trip of a link
	Restore Action = "restore" // the cloud's etcd is restored from a backup: versions are used a second time
	// the uplink is cut, and all machines of the pool lose power; they come back while it is still cut.
	Blackout Action = "blackout"

	// somebody with the credentials of the node asks for certificates that are not its own.
	Forge Action = "forge"
	// the Node is deleted, and its hub runs on; healed by a Node of the same name, and a start.
	DeleteNode Action = "delete-node"

	Change Action = "change" // an object that says what the pool is gets other content; healed by the content of before
	// a node goes to another pool: its label says so, and its hub is restarted with the flags of that pool; healed by
	// going back.
	Move   Action = "move"
	Remove Action = "remove" // such an object is deleted; healed by one of the same content

	// the pool's authority is replaced, in all steps; healed when the one before is no longer valid.
	RotateAuthority Action = "rotate-authority"

	// weir-manager is told to run the coordinator on other nodes; over when it is there, and the one before is gone.
	Place Action = "place"
	// a machine on which the coordinator runs stands still, and nobody is told; healed by a start with its disk.
	PowerOff Action = "power-off"

	Storm Action = "storm" // faults of many kinds, on top of each other, as the seed decides

	// with eviction: the apiserver says that it is not ready, since its key service is down, and serves everything.
	Unready Action = "unready"

	SetPolicy Action = "policy" // with eviction: another policy for a silent pool

	// The rest is for scenarios with autonomy.
	FillDisk Action = "fill-disk" // the hub of a node can write no file any more
	Exit     Action = "exit"      // containers end with an error, and are to be started again
	Finish   Action = "finish"    // containers of pods that run until they finish do so
	Delete   Action = "delete"    // the cloud deletes one pod of each node
	Attempt  Action = "attempt"   // all kinds of callers try to read at a hub
	Expire   Action = "expire"    // certificates of nodes and tokens of pods end soon; healed by new certificates
)

// Target is what an action is done to.
type Target string

// The targets; hub/<number> is the hub of a node, coordinator/<number> one of three coordinators.
const (
	Leader            Target = "leader"      // the hub that leads at that time
	Follower          Target = "follower"    // one that does not
	Coordinator       Target = "coordinator" // of the pool; of three, the one that the leader feeds
	APIServer         Target = "apiserver"   // of the cloud
	WholePool         Target = "pool"
	ControllerManager Target = "controller-manager" // of the cloud, if the topology has controllers
	Gate              Target = "gate"               // weir-gate, if the topology has one
	Each              Target = "each"               // every coordinator and every hub, one after the other

	Puller    Target = "puller"    // with images: the node that has pulled most of it, of those that have not all
	Followers Target = "followers" // with eviction: all nodes but one, the leader's if there is a leader

	hubPrefix     = "hub/"
	kubeletPrefix = "kubelet/"
	replicaPrefix = "coordinator/"
)

// Hub is the target of the hub of a node.
func Hub(number int) Target { return Target(hubPrefix + strconv.Itoa(number)) }

// Replica is the target of one of three coordinators.
func Replica(number int) Target { return Target(replicaPrefix + strconv.Itoa(number)) }

// Kubelet is the target of the kubelet of a node.
func Kubelet(number int) Target { return Target(kubeletPrefix + strconv.Itoa(number)) }

// Kubelet is the number of the node that the target kubelet/<number> means.
func (t Target) Kubelet() (number int, ok bool) { return t.numbered(kubeletPrefix) }

// Hub is the number of the node that the target hub/<number> means.
func (t Target) Hub() (number int, ok bool) { return t.numbered(hubPrefix) }

// Replica is the number of the coordinator, of three, that the target coordinator/<number> means.
func (t Target) Replica() (number int, ok bool) { return t.numbered(replicaPrefix) }

func (t Target) numbered(prefix string) (number int, ok bool) {
	text, ok := strings.CutPrefix(string(t), prefix)
	n, err := strconv.Atoi(text)
	return n, ok && err == nil && n > 0 && strconv.Itoa(n) == text
}

// LinkName says which link.
type LinkName string

// The links of a pool.
const (
	CloudLink       LinkName = "cloud"       // between the nodes and the cloud
	CoordinatorLink LinkName = "coordinator" // between the nodes and the coordinator
	BothLinks       LinkName = "both"
)

// Cloud reports whether the uplink is meant, and LAN whether the pool's own network is.
func (l LinkName) Cloud() bool { return l == CloudLink || l == BothLinks }

// LAN reports whether the network between the nodes and the coordinator is meant.
func (l LinkName) LAN() bool { return l == CoordinatorLink || l == BothLinks }

// Disk says what a process finds when it starts again.
type Disk string

// The fates of a disk.
const (
	KeepDisk Disk = "keep"
	LoseDisk Disk = "lose"
	TornDisk Disk = "torn" // bytes of the hub's files are others, or missing
)

// fields of a fault, in the order in which they are told.
var faultFields = []string{
	"at", "action", "target", "pool", "for", "link", "direction", "cuts", "rate", "rtt", "timeout", "average_size",
	"size_variation", "delay", "bytes", "disk", "lost", "off", "empty",
	"policy", "object", "patch", "to", "repeat", "every",
}

// actionRule says which fields and targets an action takes.
type actionRule struct {
	action   Action
	targets  []Target // hubPrefix and kubeletPrefix stand for all of their kind
	required []string
	optional []string
}

func (r actionRule) takes(field string) bool {
	return slices.Contains([]string{"at", "action", "target", "pool"}, field) || slices.Contains(r.required, field) ||
		slices.Contains(r.optional, field)
}

func actionRules() []actionRule {
	parts := []Target{Leader, Follower, hubPrefix, Coordinator, APIServer, ControllerManager, Gate}
	hubs := []Target{Leader, Follower, hubPrefix}
	nodes := []Target{Leader, Follower, hubPrefix, WholePool}
	rules := []actionRule{
		{Kill, parts, []string{"for"}, []string{"disk", "repeat", "every"}},
		{Stop, parts, []string{"for"}, []string{"disk", "repeat", "every"}},
		{Restart, append(parts, Each), nil, []string{"disk", "repeat", "every"}},
		{Freeze, parts, []string{"for"}, []string{"repeat", "every"}},
		{Lie, []Target{Leader}, []string{"for"}, nil},
		{Forge, hubs, nil, nil},
		{DeleteNode, hubs, []string{"for"}, []string{"off"}},
		{Vanish, hubs, []string{"for"}, []string{"disk", "repeat", "every"}},
		{Cut, nodes, []string{"for", "link"}, []string{"direction", "repeat", "every"}},
		{Flap, nodes, []string{"for", "link", "cuts"}, []string{"direction"}},
		{Slow, []Target{WholePool}, []string{"for", "link"}, []string{"rate", "rtt"}},
		{Restore, []Target{APIServer}, []string{"for", "lost"}, nil},
		{Blackout, []Target{WholePool}, []string{"for", "off"}, []string{"empty"}},
		{Change, append(hubs, WholePool), []string{"for", "object", "patch"}, []string{"repeat", "every"}},
		{Move, []Target{hubPrefix}, []string{"for", "to"}, nil},
		{Remove, []Target{WholePool}, []string{"for", "object"}, []string{"repeat", "every"}},
		{RotateAuthority, []Target{WholePool}, []string{"for"}, nil},
		{Place, []Target{Coordinator}, []string{"for"}, []string{"repeat", "every"}},
		{PowerOff, []Target{Coordinator}, []string{"for"}, []string{"repeat", "every"}},
		{Storm, []Target{WholePool}, []string{"for"}, nil},
	}
	for _, k := range kinds() {
		rules = append(rules, k.rule())
	}
	return rules
}

// happens reports whether a fault of a kind happens to a pool.
func (s *Scenario) happens(p Pool, kind func(Fault) bool) bool {
	return slices.ContainsFunc(s.Faults, func(f Fault) bool { return s.PoolOf(f).Name == p.Name && kind(f) })
}

// cutsLAN reports whether a fault needs a link between the nodes and the coordinator.
func cutsLAN(f Fault) bool { return f.Link.LAN() || f.Action == Vanish }

// RestartsAPIServer reports whether a fault ends the cloud's apiserver: its watch cache is then empty, and it answers
// 410.
func (s *Scenario) RestartsAPIServer() bool {
	return slices.ContainsFunc(s.Faults, func(f Fault) bool {
		return f.Target == APIServer && f.Action != Freeze || f.Action == Storm
	})
}

// RestoresCloud reports whether a fault restores the cloud from a backup. All clients then list once.
func (s *Scenario) RestoresCloud() bool {
	return slices.ContainsFunc(s.Faults, func(f Fault) bool { return f.Action == Restore })
}

// longBreak is how long a relay is without a source before it may ask for a difference instead of all changes.
const longBreak = 10 * time.Second

// batches reports whether relays may send differences: the apiserver of a cloud that goes on starts with an empty watch
// cache, or all relays of a pool are without a source for long.
func (s *Scenario) batches() bool {
	return slices.ContainsFunc(s.Faults, func(f Fault) bool {
		switch _, replica := f.Target.Replica(); {
		case f.Action == Storm:
			return true
		case f.Action == DeleteNode:
			return f.Off >= longBreak
		case f.Kind != nil && !f.Kind.Stops():
			return false
		case f.Target == APIServer:
			return f.Action != Restore && (f.Action != Freeze || f.For >= longBreak)
		case f.Target == WholePool, f.Target == Coordinator, f.Target == Each, replica:
			return !slices.Contains([]Action{Slow, RotateAuthority, Change, Remove, Place}, f.Action) && f.For >= longBreak
		}
		return false
	})
}

// Loses reports whether a blackout takes the disk of a target.
func (f Fault) Loses(t Target) bool { return slices.Contains(f.Empty, string(t)) }

// Forges reports whether a fault asks for certificates.
func (s *Scenario) Forges() bool {
	return slices.ContainsFunc(s.Faults, func(f Fault) bool { return f.Action == Forge })
}

// Places reports whether a fault lets weir-manager place the coordinator again.
func (s *Scenario) Places() bool {
	return slices.ContainsFunc(s.Faults, func(f Fault) bool { return f.Action == Place || f.Action == PowerOff })
}

// Rotates reports whether a fault replaces the authority of a pool.
func (s *Scenario) Rotates() bool { return s.Topology.Has(s.RotatesIn) }

// RotatesIn reports whether a fault replaces the pool's authority.
func (s *Scenario) RotatesIn(p Pool) bool {
	return s.happens(p, func(f Fault) bool { return f.Action == RotateAuthority })
}

// Deletes reports whether a fault deletes a Node.
func (s *Scenario) Deletes() bool {
	return slices.ContainsFunc(s.Faults, func(f Fault) bool { return f.Action == DeleteNode })
}

// BlacksOut reports whether a fault takes the power of all machines of the pool.
func (s *Scenario) BlacksOut() bool {
	return slices.ContainsFunc(s.Faults, func(f Fault) bool { return f.Action == Blackout })
}

// MarshalYAML implements yaml.Marshaler.
func (f Fault) MarshalYAML() (any, error) {
	out := struct {
		At        time.Duration  `yaml:"at"`
		Action    Action         `yaml:"action"`
		Target    Target         `yaml:"target"`
		Pool      string         `yaml:"pool,omitempty"`
		For       string         `yaml:"for,omitempty"`
		Link      LinkName       `yaml:"link,omitempty"`
		Direction string         `yaml:"direction,omitempty"`
		Cuts      int            `yaml:"cuts,omitempty"`
		Rate      *Rate          `yaml:"rate,omitempty"`
		RTT       *time.Duration `yaml:"rtt,omitempty"`
		Disk      Disk           `yaml:"disk,omitempty"`
		Lost      time.Duration  `yaml:"lost,omitempty"`
		Off       time.Duration  `yaml:"off,omitempty"`
		Empty     []string       `yaml:"empty,omitempty,flow"`
		Policy    *Policy        `yaml:"policy,omitempty"`
		Object    ObjectKind     `yaml:"object,omitempty"`
		Patch     map[string]any `yaml:"patch,omitempty"`
		To        string         `yaml:"to,omitempty"`
		Repeat    int            `yaml:"repeat,omitempty"`
		Every     time.Duration  `yaml:"every,omitempty"`

		Own map[string]string `yaml:",inline"`
	}{
		At: f.At, Action: f.Action, Target: f.Target, Pool: f.Pool, Link: f.Link, Cuts: f.Cuts, Rate: f.Rate, RTT: f.RTT,
		Disk: f.Disk, Lost: f.Lost, Off: f.Off, Empty: f.Empty, Policy: f.Policy, Object: f.Object, Patch: f.Patch, To: f.To,
		Every: f.Every,
	}
	if !slices.Contains([]Action{Restart, SetPolicy, Exit, Finish, Delete, Attempt, Forge}, f.Action) {
		out.For = f.For.String()
	}
	if f.Kind != nil {
		out.Own = f.Kind.written()
	}
	if f.Direction != 0 {
		out.Direction = f.Direction.String()
	}
	if f.Repeat > 1 {
		out.Repeat = f.Repeat
	}
	return out, nil
}

// String is the fault in a few words: "kill leader".
func (f Fault) String() string {
	s := string(f.Action) + " " + string(f.Target)
	if f.Pool != "" {
		s += " of " + f.Pool
	}
	if f.Link != "" {
		s += ", link " + string(f.Link)
		if f.Direction != link.Both && f.Direction != 0 {
			s += " " + f.Direction.String()
		}
	}
	if f.Kind != nil {
		s += ": " + f.Kind.String()
	}
	if f.To != "" {
		s += " to " + f.To
	}
	if f.Object != "" {
		s += ", " + string(f.Object)
	}
	if f.Policy != nil {
		s += ": " + f.Policy.String()
	}
	switch f.Disk {
	case LoseDisk:
		s += ", disk lost"
	case TornDisk:
		s += ", disk torn"
	}
	if len(f.Empty) > 0 {
		s += ", disks lost: " + strings.Join(f.Empty, ", ")
	}
	return s
}
