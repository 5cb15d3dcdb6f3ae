package scenario

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weir-edge/weir/sim/link"
)

// Fault is something that happens to the pool with Weir or to the cloud, and is healed again. What its kind has no use
// for is zero.
type Fault struct {
	At     time.Duration // since the changes began
	Kind   Kind          // what happens
	Target Target
	Pool   string        // "": there is one, or the cloud is meant
	For    time.Duration // until it is healed

	Link      LinkName       // of what is done to a link
	Direction link.Direction // of what is done to one direction of it; never zero for that

	Repeat int           // how often, one after the other; at least 1
	Every  time.Duration // pause between two of them
}

// Action is the name of a kind.
type Action string

// Action is the name of what happens.
func (f Fault) Action() Action { return f.Kind.rule().action }

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

// faultFields are the fields of a fault, in the order in which they are told: what any has, and what kinds have of
// their own. One that is not named here comes before repeat:.
func faultFields() []string {
	all := []string{
		"at", "action", "target", "pool", "for", "link", "direction", "cuts", "rate", "rtt", "timeout", "average_size",
		"size_variation", "delay", "bytes", "disk", "lost", "off", "empty", "policy", "object", "patch", "to", "repeat",
		"every",
	}
	for _, about := range append(studies(), Watching{}) {
		for _, k := range about.rules() {
			for _, one := range k.own() {
				if !slices.Contains(all, one.name) {
					all = slices.Insert(all, slices.Index(all, "repeat"), one.name)
				}
			}
		}
	}
	return all
}

// actionRule says which fields and targets an action takes.
type actionRule struct {
	action   Action
	targets  []Target // hubPrefix and kubeletPrefix stand for all of their kind
	required []string
	optional []string
}

// allowed is a kind that a scenario may have, and its rule there.
type allowed struct {
	Kind

	actionRule
}

// may are some kinds, by their own rules.
func may(all ...Kind) (list []allowed) {
	for _, k := range all {
		list = append(list, allowed{k, k.rule()})
	}
	return list
}

// mayTo is a kind that may be done to other targets than usual, without some of its fields.
func mayTo(k Kind, without []string, targets ...Target) allowed {
	r := k.rule()
	r.targets = targets
	r.optional = slices.DeleteFunc(r.optional, func(name string) bool { return slices.Contains(without, name) })
	return allowed{k, r}
}

// takes is a rule: fields are separated by spaces, and optional ones end with a question mark.
func takes(action Action, targets []Target, fields string) actionRule {
	r := actionRule{action: action, targets: targets}
	for name := range strings.FieldsSeq(fields) {
		if optional, ok := strings.CutSuffix(name, "?"); ok {
			r.optional = append(r.optional, optional)
		} else {
			r.required = append(r.required, name)
		}
	}
	return r
}

func (r actionRule) takes(field string) bool {
	return slices.Contains([]string{"at", "action", "target", "pool"}, field) || slices.Contains(r.required, field) ||
		slices.Contains(r.optional, field)
}

// happens reports whether a fault of a kind happens to a pool.
func (s *Scenario) happens(p Pool, kind func(Fault) bool) bool {
	return slices.ContainsFunc(s.Faults, func(f Fault) bool { return s.PoolOf(f).Name == p.Name && kind(f) })
}

// any reports whether a fault has an effect.
func (s *Scenario) any(has func(effect) bool) bool {
	return slices.ContainsFunc(s.Faults, func(f Fault) bool { return has(f.Kind.effect(f)) })
}

// NeedsLAN reports whether a fault needs a link between the nodes and the coordinator of a pool.
func (s *Scenario) NeedsLAN(p Pool) bool {
	return s.happens(p, func(f Fault) bool { return f.Kind.effect(f).lan })
}

// RestartsAPIServer reports whether a fault ends the cloud's apiserver: its watch cache is then empty, and it answers
// 410.
func (s *Scenario) RestartsAPIServer() bool { return s.any(func(e effect) bool { return e.apiserver }) }

// batches reports whether relays may send differences: the apiserver of a cloud that goes on starts with an empty watch
// cache, or all relays of a pool are without a source for long.
func (s *Scenario) batches() bool { return s.any(func(e effect) bool { return e.batches }) }

// MarshalYAML implements yaml.Marshaler.
func (f Fault) MarshalYAML() (any, error) {
	direction, repeat := "", f.Repeat
	if f.Direction != 0 {
		direction = f.Direction.String()
	}
	if repeat == 1 {
		repeat = 0
	}
	out := &yaml.Node{Kind: yaml.MappingNode}
	for _, one := range slices.Concat([]own{
		{name: "at", is: f.At}, {name: "action", is: f.Action()}, {name: "target", is: f.Target}, {name: "pool", is: f.Pool},
		{name: "for", is: f.For}, {name: "link", is: f.Link}, {name: "direction", is: direction},
	}, f.Kind.own(), []own{{name: "repeat", is: repeat}, {name: "every", is: f.Every}}) {
		must := one.name == "at" || one.name == "for" && f.Kind.rule().takes("for")
		if v := reflect.ValueOf(one.is); !must && (v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0) {
			continue
		}
		var name, is yaml.Node
		if err := errors.Join(name.Encode(one.name), is.Encode(one.is)); err != nil {
			return nil, err
		}
		if is.Kind == yaml.SequenceNode {
			is.Style = yaml.FlowStyle
		}
		out.Content = append(out.Content, &name, &is)
	}
	return out, nil
}

// String is the fault in a few words: "kill leader".
func (f Fault) String() string {
	s := string(f.Action()) + " " + string(f.Target)
	if f.Pool != "" {
		s += " of " + f.Pool
	}
	if f.Link != "" {
		s += ", link " + string(f.Link)
		if f.Direction != link.Both && f.Direction != 0 {
			s += " " + f.Direction.String()
		}
	}
	return s + f.Kind.words()
}
