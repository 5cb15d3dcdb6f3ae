package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-edge/weir/sim/link"
)

const (
	maxFaults  = 100
	maxFaultAt = time.Hour
	maxRepeat  = 1000
	maxEvery   = 10 * time.Minute
)

// faults reads what happens to the pool.
func (v value) faults(s *Scenario) {
	items := v.list("a list of {at, action, target, …}")
	if len(items) > maxFaults {
		v.mistake(fmt.Sprintf("want at most %d faults; repeat: does one several times", maxFaults))
		return
	}
	for _, item := range items {
		f, ok := item.fault(s.Topology.Pools(), s.Study.rules())
		switch {
		case !ok:
		case f.Target == ControllerManager && !s.Topology.Controllers:
			item.contradiction("nothing runs there: want topology.controllers: true")
		case f.Target == Gate && !s.Topology.Gate:
			item.contradiction("nothing runs there: want topology.gate: true")
		case s.Study.compared() && f.Link.LAN():
			item.contradiction("stock Kubernetes has no such link, so nothing could be compared: want link: " +
				string(CloudLink))
		case f.Kind.contradicts(s) != "":
			item.contradiction(f.Kind.contradicts(s))
		default:
			s.Faults = append(s.Faults, f)
		}
	}
}

// fault reads one; ok is false if it is not worth keeping.
func (v value) fault(pools []Pool, rules []allowed) (f Fault, ok bool) {
	fields := faultFields()
	o, ok := v.object(fields...)
	if !ok {
		return f, false
	}
	names := make([]string, 0, len(rules))
	for _, r := range rules {
		names = append(names, string(r.action))
	}
	f.At = o.fields["at"].duration(maxFaultAt)
	action, ok := o.fields["action"].choice(names)
	if !ok {
		return f, false
	}
	rule := rules[slices.Index(names, action)]
	f.Repeat, f.Kind = 1, rule.Kind
	p := o.poolOf(&f, pools)
	f.Target, ok = o.fields["target"].target(rule.actionRule, p)
	for _, name := range fields {
		switch {
		case o.has(name) && !rule.takes(name):
			o.fields[name].contradiction(fmt.Sprintf("%s has no use for it; it takes %s", action,
				strings.Join(rule.fields(), ", ")))
		case name == "pool":
		case o.has(name), slices.Contains(rule.required, name):
			f.read(name, o.fields[name], p)
		}
	}
	if slices.Contains(rule.optional, "direction") && f.Direction == 0 {
		f.Direction = link.Both
	}
	f.Kind.check(o, f, p, pools)
	if f.Repeat == 1 && o.has("every") {
		o.fields["every"].contradiction("it is the pause between two, and there is one: want repeat as well")
	}
	if f.Link.LAN() && p.Coordinators == 0 {
		o.fields["link"].contradiction("topology.pool.coordinators is 0: want " + string(CloudLink))
	}
	return f, ok
}

// poolOf reads which of several pools a fault happens to. The apiserver is of none.
func (o object) poolOf(f *Fault, pools []Pool) Pool {
	names := make([]string, 0, len(pools))
	for _, p := range pools {
		if p.Name != "" && !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	v := o.fields["pool"]
	if target := Target(o.fields["target"].text()); target == APIServer || target == ControllerManager ||
		target == Gate {
		if o.has("pool") {
			v.contradiction(fmt.Sprintf("the %s is of no pool: want it without", target))
		}
		return pools[0]
	}
	if len(pools) > 1 || o.has("pool") {
		f.Pool, _ = v.choice(names)
	}
	return pools[max(slices.IndexFunc(pools, func(p Pool) bool { return p.Name == f.Pool }), 0)]
}

// read reads one of the fields that not every action takes.
func (f *Fault) read(name string, v value, p Pool) {
	switch name {
	case "for":
		f.For = v.duration(maxFaultAt)
	case "link":
		s, _ := v.choice([]string{string(CloudLink), string(CoordinatorLink), string(BothLinks)})
		f.Link = LinkName(s)
	case "direction":
		s, _ := v.choice([]string{link.Both.String(), link.Up.String(), link.Down.String()})
		if s != "" {
			f.Direction, _ = link.ParseDirection(s)
		}
	case "repeat":
		if n, ok := v.integer(1, maxRepeat); ok {
			f.Repeat = int(n)
		}
	case "every":
		f.Every = v.duration(maxEvery)
	default:
		for _, one := range f.Kind.own() {
			if one.name == name {
				one.read(v, p)
			}
		}
	}
}

// fields are all that an action takes.
func (r actionRule) fields() []string {
	return slices.DeleteFunc(faultFields(), func(name string) bool { return !r.takes(name) })
}

// target reads what an action of a pool is done to.
func (v value) target(rule actionRule, p Pool) (Target, bool) {
	names := make([]string, 0, len(rule.targets))
	for _, t := range rule.targets {
		if t == hubPrefix || t == kubeletPrefix {
			t = Target(fmt.Sprintf("%s1 to %s%d", t, t, p.Nodes))
		}
		names = append(names, string(t))
		if t == Coordinator && p.Coordinators > 1 {
			names = append(names, fmt.Sprintf("%s1 to %s%d", replicaPrefix, replicaPrefix, p.Coordinators))
		}
	}
	allowed := fmt.Sprintf("one of %s, to %s", strings.Join(names, ", "), rule.action)
	s, ok := v.str(allowed)
	if !ok {
		return "", false
	}
	t := Target(s)
	if n, hub := t.Hub(); hub && slices.Contains(rule.targets, hubPrefix) && n <= p.Nodes {
		return t, true
	}
	if n, kubelet := t.Kubelet(); kubelet && slices.Contains(rule.targets, kubeletPrefix) && n <= p.Nodes {
		return t, true
	}
	if n, replica := t.Replica(); replica && slices.Contains(rule.targets, Coordinator) && p.Coordinators > 1 &&
		n <= p.Coordinators {
		return t, true
	}
	if t == hubPrefix || t == kubeletPrefix || !slices.Contains(rule.targets, t) {
		v.wrong(allowed + didYouMean(s, names))
		return "", false
	}
	if !p.Leads() && (t == Leader || t == Follower) || p.Coordinators == 0 && t == Coordinator {
		v.contradiction("topology.pool.coordinators is 0, so nobody leads: want hub/<number>, or a coordinator")
		return "", false
	}
	return t, true
}

// choice reads one of some words.
func (v value) choice(words []string) (string, bool) {
	allowed := "one of " + strings.Join(words, ", ")
	s, ok := v.str(allowed)
	if ok && !slices.Contains(words, s) {
		v.wrong(allowed + didYouMean(s, words))
		return "", false
	}
	return s, ok
}

// choices reads a list of different words.
func (v value) choices(words []string) []string {
	list := []string{}
	for _, item := range v.list("a list of " + strings.Join(words, ", ") + ", or []") {
		s, ok := item.choice(words)
		switch {
		case !ok:
		case slices.Contains(list, s):
			item.mistake("it is there twice")
		default:
			list = append(list, s)
		}
	}
	return list
}
