package runner

import (
	"fmt"

	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runtime"
)

// facts are what the report says of topology and workload. Of several pools each has its own lines.
func (r *run) facts() []report.Fact {
	w, pools := r.s.Workload, r.s.Topology.Pools()
	var nodes, links []report.Fact
	for _, p := range pools {
		of := ""
		if len(pools) > 1 {
			of = " of " + p.Name
		}
		nodes = append(nodes, report.Fact{Name: "nodes" + of, Value: float64(p.Nodes)})
		if len(pools) > 1 {
			nodes = append(nodes, report.Fact{Name: "coordinators" + of, Value: float64(p.Coordinators)})
		}
		links = append(links, report.Fact{Name: "round trip" + of, Value: p.Uplink.RTT.Seconds(), Unit: report.UnitSeconds})
	}
	if len(pools) > 1 {
		nodes = append([]report.Fact{{Name: "pools", Value: float64(len(pools))}}, nodes...)
	}
	nodes = append(nodes, report.Fact{Name: "clients per node", Value: float64(len(r.s.Clients))},
		report.Fact{
			Name: "Services", Value: float64(w.Services),
		}, report.Fact{Name: "endpoints per Service", Value: float64(w.Endpoints)},
		report.Fact{
			Name: "changes", Value: float64(w.Changes),
		}, report.Fact{Name: "changes per second", Value: w.ChangesPerSecond},
	)
	return append(nodes, links...)
}

// uplink is the rate that plots show as a limit: what all uplinks carry together; 0 if one has no limit.
func (r *run) uplink() float64 {
	var sum float64
	for _, p := range r.s.Topology.Pools() {
		if p.Uplink.Down == 0 {
			return 0
		}
		sum += float64(p.Uplink.Down)
	}
	return sum
}

// bytesTable is what crossed the uplinks of a way so far. Of several pools each row tells its own.
func (r *run) bytesTable(w *way) (all report.ByteTable) {
	names := r.s.Topology.Pools()
	for i, p := range w.pools {
		rows := Bytes(w.name, r.site.Link(p))
		for n := range rows {
			if len(names) > 1 {
				rows[n].Pool = names[i].Name
			}
		}
		all = append(all, rows...)
	}
	return all
}

// tells names the pool of a part where there are several.
func (r *run) tells(id runtime.PartID) string {
	if len(r.s.Topology.More) == 0 {
		return ""
	}
	if id.Kind() == "coordinator" {
		return id.Of()
	}
	for _, p := range r.s.Topology.Pools() {
		for _, n := range nodesOf(p) {
			if n == id.Of() {
				return p.Name
			}
		}
	}
	return fmt.Sprintf("of no pool: %s", id)
}
