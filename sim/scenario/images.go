package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-edge/weir/sim/image"
	"github.com/weir-edge/weir/sim/report"
)

const (
	maxPulls   = 20
	maxPullAt  = time.Hour
	maxWithin  = 2 * time.Hour
	layersHelp = "a list of sizes from 4kB to 4GB, as [25MB, 2MB]"
)

// Images makes a scenario one about nodes that pull an image from a registry of the cloud, each by a real containerd.
// It runs as two columns: nodes that pull straight, then Weir.
type Images struct {
	ordinary `yaml:"-"`

	Layers []Size        `yaml:"layers,flow"` // of the image; the seed decides what is in them
	Pulls  []Pull        `yaml:"pulls"`       // all nodes at once, by default
	Within time.Duration `yaml:"within"`      // from the last pull's beginning until a node that has nothing gets nothing
}

// Pull says when some nodes begin to pull the image.
type Pull struct {
	At    time.Duration `yaml:"at"`
	Nodes []int         `yaml:"nodes,flow"` // by number, from 1
}

// Size is a number of bytes.
type Size int64

// String writes the size in the largest unit that needs no fraction.
func (z Size) String() string {
	units := unitsOf(report.UnitBytes)
	for _, u := range slices.Backward(units) {
		if whole := int64(u.size); int64(z)%whole == 0 {
			return strconv.FormatInt(int64(z)/whole, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(z), 10) // not reached: the first unit divides all
}

// MarshalYAML implements yaml.Marshaler.
func (z Size) MarshalYAML() (any, error) { return z.String(), nil }

// Name implements Study.
func (*Images) Name() string { return "images" }

func (m *Images) read(o object, s *Scenario) {
	m.fields(o.fields["images"], s.Topology.Pool)
	const nobody = "in a scenario with images nobody lists or watches: leave it out"
	if o.has("workload") {
		o.fields["workload"].contradiction(nobody)
	}
	if o.has("clients") && len(o.fields["clients"].list("[]")) > 0 {
		o.fields["clients"].contradiction(nobody)
	}
	s.Compare = []string{report.WayStock}
	if o.has("compare") {
		s.Compare = o.fields["compare"].choices([]string{report.WayStock})
	}
}

func (m *Images) fields(v value, p Pool) {
	m.Within = 10 * time.Minute
	o, ok := v.object("layers", "pulls", "within")
	if !ok {
		return
	}
	items := o.fields["layers"].list(layersHelp)
	if n := len(items); n == 0 || n > image.MaxLayers {
		o.fields["layers"].wrong(fmt.Sprintf("1 to %d layers: %s", image.MaxLayers, layersHelp))
	}
	for _, item := range items {
		m.Layers = append(m.Layers, item.size())
	}
	if o.has("within") {
		m.Within = o.fields["within"].between(time.Second, maxWithin)
	}
	if !o.has("pulls") {
		m.Pulls = []Pull{{Nodes: numbers(p.Nodes)}}
		return
	}
	const allowed = "a list of {at, nodes}, as [{at: 0s, nodes: [1]}, {at: 1m, nodes: [2, 3]}]"
	items = o.fields["pulls"].list(allowed)
	if n := len(items); n == 0 || n > maxPulls {
		o.fields["pulls"].wrong(fmt.Sprintf("1 to %d pulls: %s", maxPulls, allowed))
	}
	lines := map[int]int{} // by node
	for _, item := range items {
		if one, ok := item.pull(p, lines); ok {
			m.Pulls = append(m.Pulls, one)
		}
	}
}

// pull reads when some nodes pull. lines are those in which nodes are named already.
func (v value) pull(p Pool, lines map[int]int) (one Pull, ok bool) {
	o, ok := v.object("at", "nodes")
	if !ok {
		return one, false
	}
	one.At = o.fields["at"].duration(maxPullAt)
	const allowed = "a list of numbers of nodes, as [1, 2]"
	items := o.fields["nodes"].list(allowed)
	if len(items) == 0 {
		o.fields["nodes"].wrong(allowed)
	}
	for _, item := range items {
		n, ok := item.integer(1, int64(max(p.Nodes, 1)))
		switch first, twice := lines[int(n)]; {
		case !ok:
		case twice:
			item.contradiction(fmt.Sprintf("line %d names node %d already: want each once", first, n))
		default:
			lines[int(n)] = item.line
			one.Nodes = append(one.Nodes, int(n))
		}
	}
	return one, true
}

// numbers are those from 1 to n.
func numbers(n int) []int {
	all := make([]int, 0, n)
	for i := range n {
		all = append(all, i+1)
	}
	return all
}

func (v value) size() Size {
	return Size(v.bytes(image.MinLayer, image.MaxLayer, "25MB"))
}

// rules are what may happen while nodes pull.
func (*Images) rules() []allowed {
	return append([]allowed{
		mayTo(&Kill{}, []string{"disk"}, Puller, hubPrefix, Coordinator),
		mayTo(&Vanish{}, []string{"disk", "repeat", "every"}, Puller, hubPrefix),
		mayTo(&Cut{}, nil, Puller, hubPrefix, WholePool),
	}, may(&Slow{})...)
}

// imageMetrics are measured in scenarios with images alone.
func imageMetrics() []string {
	return []string{
		"image_bytes_ratio", "stock_image_bytes_ratio", "image_seconds", "stock_image_seconds", "image_seconds_ratio",
		"image_nodes", "stock_image_nodes", "image_nodes_offline", "stock_image_nodes_offline",
		"cache_wait_seconds", "stock_cache_wait_seconds",
	}
}

func (*Images) metrics() []string { return append(imageMetrics(), lateHeartbeats) }

// lateHeartbeats is measured in scenarios with eviction, too.
const lateHeartbeats = "late_heartbeats"

func (*Images) wanted(metric string, _ *Scenario) string {
	return metric + " is measured when nodes pull an image: want images:"
}

func (*Images) unmeasured(metric string, s *Scenario) string {
	switch {
	case !slices.Contains(s.Compare, report.WayStock) &&
		(strings.HasPrefix(metric, "stock_") || metric == "image_seconds_ratio"):
		return metric + " needs the stock way, and compare leaves it out"
	case strings.HasSuffix(metric, "_offline") &&
		!slices.ContainsFunc(s.Faults, func(f Fault) bool { return is[*Cut](f) && f.Target == WholePool }):
		return metric + " is measured while the uplink is cut: want a fault cut of target pool"
	}
	return ""
}

func (*Images) compared() bool { return true }

// Hollow implements Study.
func (*Images) Hollow() (bool, string) { return true, "" }
