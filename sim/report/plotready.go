package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-edge/weir/sim/report/svg"
)

// rowLimit bounds the rows of a plot; what is left out is said under it and stands in a table.
const rowLimit = 40

// readinessPlot draws when each node's caches were synced: one column per resource, one row per node, one
// dot per way. It returns nil if there is nothing to draw.
func readinessPlot(r Result) (plot *svg.Canvas, note string) {
	resources := distinct(r.Readiness, func(x Readiness) string { return x.Resource })
	nodes := slowestFirst(r.Readiness)
	if len(resources) == 0 {
		return nil, ""
	}
	if hidden := len(nodes) - rowLimit; hidden > 0 {
		nodes = nodes[:rowLimit]
		note = "The " + count(rowLimit) + " slowest nodes; " + count(int64(hidden)) + " more are in the table."
	}
	slices.SortFunc(nodes, compareNames)
	if len(resources) > 3 {
		note = strings.TrimSpace(note + " The first 3 of " + count(int64(len(resources))) +
			" resources; the others are in the table.")
		resources = resources[:3]
	}

	const rowHeight, top, left, between = 22.0, 64.0, 124.0, 44.0
	rows := float64(max(len(nodes), 1))
	bottom := top + rows*rowHeight
	c := svg.New("ready", plotWidth, bottom+30, r.Scenario+": seconds until each cache was synced", describeReadiness(r))
	latest, room := 0.0, 16.0
	for _, x := range r.Readiness {
		if x.Synced {
			latest = max(latest, x.Seconds)
		} else {
			room = 92 // for the words after the line
		}
	}
	for i, node := range nodes {
		c.TextTip("name", svg.End, svg.Point{X: left - 14, Y: top + (float64(i)+0.5)*rowHeight + 4}, node, 18)
	}
	width := (plotWidth - left - between*float64(len(resources)-1)) / float64(len(resources))
	for i, resource := range resources {
		x := left + float64(i)*(width+between)
		f := newFrame(x, x+width-room, top, bottom, latest*1.02, 1)
		drawReadiness(c, r, resource, nodes, f, rowHeight)
	}
	return c, note
}

func drawReadiness(c *svg.Canvas, r Result, resource string, nodes []string, f frame, rowHeight float64) {
	c.TextTip("panel", svg.Start, svg.Point{X: f.left, Y: f.top - 44}, shortResource(resource), 40)
	at := f.left
	for _, way := range r.readyWays() {
		c.Circle("dot "+wayClass(way), "", svg.Point{X: at + 5, Y: f.top - 26}, 4.5)
		c.Text("label small "+wayClass(way), svg.Start, svg.Point{X: at + 14, Y: f.top - 22}, svg.Shorten(wayName(way), 12))
		at += 40 + 8*float64(min(len([]rune(wayName(way))), 12))
	}
	f.timeAxis(c, 6)
	for i := range nodes {
		y := f.top + (float64(i)+0.5)*rowHeight
		c.Line("grid", svg.Point{X: f.left, Y: y}, svg.Point{X: f.right, Y: y})
	}
	missing := missingWays(r.Readiness, resource)
	for _, x := range r.Readiness {
		if x.Resource != resource {
			continue
		}
		class, tip := wayClass(x.Way), wayName(x.Way)+", "+cmp.Or(x.Node, strings.TrimSpace("pool "+x.Pool))+": "
		if x.Node == "" {
			if x.Synced {
				p := f.x.At(x.Seconds)
				c.Line("pool "+class, svg.Point{X: p, Y: f.top - 8}, svg.Point{X: p, Y: f.bottom})
				anchor, dx := svg.Start, 5.0
				if p > (f.left+f.right)/2 {
					anchor, dx = svg.End, -5
				}
				c.Text("note", anchor, svg.Point{X: p + dx, Y: f.top - 2}, "pool ready "+seconds(x.Seconds))
			} else {
				c.Text("alarm", svg.Start, svg.Point{X: f.right - 60, Y: f.top - 2}, "✘ pool never")
			}
			continue
		}
		i := slices.Index(nodes, x.Node)
		if i < 0 {
			continue
		}
		y := f.top + (float64(i)+0.5)*rowHeight
		if !x.Synced {
			c.Text("alarm", svg.Start, svg.Point{X: f.right + 6, Y: y + 4}, "✘ "+missing[x.Node])
			continue
		}
		c.Circle("dot "+class, tip+seconds(x.Seconds), svg.Point{X: f.x.At(x.Seconds), Y: y}, 4.5)
	}
}

// missingWays says for each node in which way its cache was never synced.
func missingWays(readiness []Readiness, resource string) map[string]string {
	missing := map[string]string{}
	for _, x := range readiness {
		if x.Resource != resource || x.Synced {
			continue
		}
		if missing[x.Node] == "" {
			missing[x.Node] = wayName(svg.Shorten(x.Way, 10)) + " never"
		} else {
			missing[x.Node] = "never"
		}
	}
	return missing
}

// shortResource is a resource without its version and group, which stand in the tables.
func shortResource(name string) string {
	short, _, _ := strings.Cut(name, ".")
	return short
}

func (r Result) readyWays() []string {
	return distinct(r.Readiness, func(x Readiness) string { return x.Way }, WayStock, WayWeir, WayReference)
}

// slowestFirst returns the nodes, those first that were never or last synced.
func slowestFirst(readiness []Readiness) []string {
	worst := map[string]float64{}
	for _, x := range readiness {
		s := x.Seconds
		if !x.Synced {
			s = 1e300
		}
		worst[x.Node] = max(worst[x.Node], s)
	}
	nodes := distinct(readiness, func(x Readiness) string { return x.Node })
	slices.SortStableFunc(nodes, func(a, b string) int { return cmp.Compare(worst[b], worst[a]) })
	return nodes
}

func describeReadiness(r Result) string {
	s := "When the caches of each node were synced, in seconds since the way began."
	for _, way := range r.readyWays() {
		s += " " + wayName(way) + ": last node after " + r.lastReady(way, false).Text + " s, pool after " +
			r.lastReady(way, true).Text + " s."
	}
	return s
}
