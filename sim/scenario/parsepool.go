package scenario

import (
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weir-edge/weir/sim/report"
)

const (
	maxPools      = 20
	maxNodesAll   = 400 // of all pools; each has as many stock clients beside it
	maxPoolName   = 58  // node names are labels of at most 63 characters, "-200" among them
	maxLeaderHubs = 10
	maxOfPools    = maxPoolName - len(report.WayReference+"-")
)

// pools reads the pool, or the list of pools.
func (o object) pools(s *Scenario) {
	if !o.has("pools") {
		s.Topology.Pool = o.fields["pool"].pool(maxPoolName)
		return
	}
	v := o.fields["pools"]
	if o.has("pool") {
		v.contradiction("pool is given too, which is short for a list of one: want one of them")
		return
	}
	allowed := fmt.Sprintf("a list of 1 to %d pools, each {name, nodes, uplink, …}", maxPools)
	items := v.list(allowed)
	if n := len(items); n == 0 || n > maxPools {
		if v.node.Kind == yaml.SequenceNode {
			v.wrong(allowed)
		}
		return
	}
	var all []Pool
	sum, lines := 0, map[string]int{} // of pools and nodes
	for _, item := range items {
		p := item.pool(maxOfPools)
		for _, name := range append([]string{p.Name}, p.NodeNames()...) {
			if line := lines[name]; line > 0 && p.Name != "" {
				item.contradiction(
					fmt.Sprintf("the pool of line %d takes the name %s, for itself or a node: want another name of this pool", line,
						name))
				break
			}
			lines[name] = item.line
		}
		sum += p.Nodes
		all = append(all, p)
	}
	if sum > maxNodesAll {
		v.contradiction(fmt.Sprintf("they have %d nodes: want at most %d in all pools together", sum, maxNodesAll))
	}
	s.Topology.Pool, s.Topology.More = all[0], all[1:]
	if s.Topology.Has(func(p Pool) bool { return p.Lives != nil }) &&
		s.Topology.Has(func(p Pool) bool { return p.Enrols }) {
		v.contradiction(
			"one pool has lives and another enrols: weir-manager either approves for all, or signs for all; want one of them")
	}
}

func (v value) pool(longest int) Pool {
	p := Pool{Coordinators: 1}
	o, ok := v.object("name", "nodes", "uplink", "coordinators", "leaderHubs", "reverse", "lives", "enrols", "noClock",
		"placed")
	if !ok {
		return p
	}
	p.Name = o.name("name", longest)
	for _, way := range []string{report.WayReference, report.WayStock} {
		if p.Name == way || strings.HasPrefix(p.Name, way+"-") {
			o.fields["name"].contradiction("what Weir is compared with is named so: want a name that does not begin with " + way)
		}
	}
	p.Nodes = o.count("nodes", maxNodes)
	p.Uplink = o.fields["uplink"].uplink()
	if o.has("coordinators") {
		n, ok := o.fields["coordinators"].integer(0, 3)
		switch {
		case ok && n == 2:
			o.fields["coordinators"].wrong("0, 1 or 3: of two, both are needed for a majority")
		case ok:
			p.Coordinators = int(n)
		}
	}
	if o.has("reverse") {
		p.Reverse = o.fields["reverse"].boolean()
	}
	if o.has("lives") {
		p.Lives = o.fields["lives"].lives()
		if p.Coordinators == 0 {
			o.fields["lives"].contradiction("coordinators is 0: want a coordinator, which hubs show these certificates to")
		}
		if p.Lives != nil && p.Lives.Coordinator > 0 && p.Nodes < p.Coordinators {
			o.fields["lives"].contradiction(
				"there are fewer nodes than coordinators: want a hub beside each, which asks for its certificates")
		}
	}
	if o.has("enrols") {
		p.Enrols = o.fields["enrols"].boolean()
		switch {
		case p.Enrols && p.Lives != nil:
			o.fields["enrols"].contradiction(
				"lives is given too: weir-manager signs for no life that is so short; want one of them")
		case p.Enrols && p.Coordinators == 0:
			o.fields["enrols"].contradiction("coordinators is 0: want a coordinator, which hubs show these certificates to")
		}
	}
	if o.has("noClock") {
		machines := p.NodeNames()
		if p.Coordinators > 0 {
			machines = append(machines, "coordinator")
		}
		p.NoClock = o.fields["noClock"].choices(machines)
	}
	if o.has("placed") {
		p.Placed = o.fields["placed"].boolean()
		switch {
		case p.Placed && !p.Enrols:
			o.fields["placed"].contradiction("weir-manager does not run, nor sign for a coordinator: want enrols: true")
		case p.Placed && p.Nodes > 0 && p.Nodes < p.Coordinators:
			o.fields["placed"].contradiction(fmt.Sprintf("nodes is %d: want at most as many coordinators", p.Nodes))
		}
	}
	if o.has("leaderHubs") {
		n, _ := o.fields["leaderHubs"].integer(1, maxLeaderHubs)
		p.LeaderHubs = int(n)
		switch {
		case !p.Enrols && p.Coordinators > 0:
			o.fields["leaderHubs"].contradiction(
				"nobody describes the pool to weir-manager, which names them: want enrols: true")
		case p.Nodes > 0 && p.LeaderHubs > p.Nodes:
			o.fields["leaderHubs"].contradiction(fmt.Sprintf("nodes is %d: want at most as many leader hubs", p.Nodes))
		}
	}
	return p
}

// Lives of certificates: a part of one is needed to renew it, and a scenario is to see that.
const (
	minLife = 5 * time.Second
	maxLife = time.Hour
)

func (v value) lives() *Lives {
	o, ok := v.object("hub", "forwarder", "coordinator")
	if !ok {
		return nil
	}
	l := &Lives{}
	l.Hub, l.Forwarder = o.fields["hub"].between(minLife, maxLife), o.fields["forwarder"].between(minLife, maxLife)
	if o.has("coordinator") {
		l.Coordinator = o.fields["coordinator"].between(minLife, maxLife)
	}
	return l
}

func (v value) uplink() (u Uplink) {
	o, ok := v.object("rate", "up", "down", "rtt")
	if !ok {
		return u
	}
	switch {
	case o.has("rate"):
		u.Up = o.fields["rate"].rate()
		u.Down = u.Up
		for _, one := range []string{"up", "down"} {
			if o.has(one) {
				o.fields[one].contradiction("rate is given too, for both directions: want either rate, or up and down")
			}
		}
	case o.has("up") || o.has("down"):
		u.Up, u.Down = o.fields["up"].rate(), o.fields["down"].rate()
	default:
		o.fields["rate"].wrong(rateHelp)
	}
	u.RTT = o.fields["rtt"].duration(maxRTT)
	return u
}
