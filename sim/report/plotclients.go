package report

import (
	"cmp"
	"slices"

	"github.com/weir-edge/weir/sim/report/svg"
)

// clientRow is what clients of one kind saw in each way. Clients that saw the same share a row, so that one
// that saw something else stands out.
type clientRow struct {
	name, resource string
	nodes          []string
	byWay          map[string]Client
}

// strange reports whether the row has what no client should see.
func (c clientRow) strange() bool {
	for _, x := range c.byWay {
		if x.Violations > 0 || x.Relists > 0 {
			return true
		}
	}
	return false
}

// clientsLeft is where the bars start; what is left of it belongs to the names.
const clientsLeft = 230.0

// clientsPlot draws the changes that each client saw, stock beside Weir. It returns nil without clients.
func clientsPlot(r Result) (plot *svg.Canvas, note string) {
	ways := distinct(r.Clients, func(c Client) string { return c.Way }, WayStock, WayWeir, WayReference)
	rows := r.clientRows()
	if len(rows) == 0 || len(ways) == 0 {
		return nil, ""
	}
	if hidden := len(rows) - rowLimit; hidden > 0 {
		slices.SortStableFunc(rows, func(a, b clientRow) int {
			if a.strange() == b.strange() {
				return 0
			}
			if a.strange() {
				return -1
			}
			return 1
		})
		rows = rows[:rowLimit]
		note = count(int64(hidden)) + " more rows are in the table."
	}

	const rowHeight, top, left, between = 30.0, 66.0, clientsLeft, 24.0
	c := svg.New("clients", plotWidth, top+float64(len(rows))*rowHeight+8, r.Scenario+": changes that each client saw",
		describeClients(r, ways))
	drawEventLegend(c)
	most, room := int64(0), 60.0
	for _, row := range rows {
		if row.strange() {
			room = 150 // for the words after the bar
		}
		for _, x := range row.byWay {
			most = max(most, x.Events())
		}
	}
	for i, row := range rows {
		y := top + (float64(i)+0.5)*rowHeight
		c.TextTip("name strong", svg.End, svg.Point{X: left - 14, Y: y - 1}, row.name+" "+shortResource(row.resource), 30)
		c.TextTip("note", svg.End, svg.Point{X: left - 14, Y: y + 12}, nodesText(row.nodes), 34)
	}
	width := (plotWidth - left - between*float64(len(ways)-1)) / float64(len(ways))
	for i, way := range ways {
		x := left + float64(i)*(width+between)
		scale := svg.Scale{Max: float64(most), From: x, To: x + width - room}
		c.TextTip("label "+wayClass(way), svg.Start, svg.Point{X: x, Y: top - 14}, wayName(way), 20)
		for n, row := range rows {
			if client, ok := row.byWay[way]; ok {
				drawClient(c, client, scale, top+(float64(n)+0.5)*rowHeight)
			} else {
				c.Text("note", svg.Start, svg.Point{X: x, Y: top + (float64(n)+0.5)*rowHeight + 4}, "not run")
			}
		}
	}
	return c, note
}

// drawClient draws one bar of adds, updates and deletes with its sum, and what is wrong, after it.
func drawClient(c *svg.Canvas, client Client, scale svg.Scale, y float64) {
	const height = 12.0
	so := 0.0
	for _, part := range []struct {
		class, name string
		n           int64
	}{{"add", "adds", client.Adds}, {"update", "updates", client.Updates}, {"delete", "deletes", client.Deletes}} {
		if part.n <= 0 {
			continue
		}
		from, to := scale.At(so), scale.At(so+float64(part.n))
		c.Rect("bar "+part.class, count(part.n)+" "+part.name, svg.Point{X: from, Y: y - height/2}, to-from, height)
		so += float64(part.n)
	}
	at := svg.Point{X: scale.At(so) + 6, Y: y + 4}
	c.Text("name", svg.Start, at, count(client.Events()))
	at.X += 8 + 7*float64(len(count(client.Events())))
	if client.Relists > 0 {
		c.Text("note", svg.Start, svg.Point{X: at.X, Y: y + 1}, plural(int(client.Relists), "re-list", "re-lists"))
		at.Y += 8
	}
	if client.Violations > 0 {
		c.Text("alarm", svg.Start, at, "✘ "+plural(int(client.Violations), "violation", "violations"))
	}
}

func drawEventLegend(c *svg.Canvas) {
	c.Text("panel", svg.Start, svg.Point{X: 0, Y: 22}, "Changes seen by each client")
	x := clientsLeft
	for _, part := range []string{"add", "update", "delete"} {
		c.Rect("bar "+part, "", svg.Point{X: x, Y: 12}, 12, 12)
		c.Text("name", svg.Start, svg.Point{X: x + 18, Y: 22}, part+"s")
		x += 84
	}
}

// clientRows groups the clients of r.
func (r Result) clientRows() []clientRow {
	type who struct{ name, resource, node string }
	merged := map[who]map[string]Client{}
	var order []who
	for _, c := range r.Clients {
		k := who{c.Name, c.Resource, c.Node}
		if merged[k] == nil {
			merged[k] = map[string]Client{}
			order = append(order, k)
		}
		merged[k][c.Way] = merged[k][c.Way].plus(c)
	}
	slices.SortStableFunc(order, func(a, b who) int {
		return cmp.Or(compareNames(a.name, b.name), compareNames(a.resource, b.resource), compareNames(a.node, b.node))
	})
	var rows []clientRow
	for _, k := range order {
		i := slices.IndexFunc(rows, func(row clientRow) bool {
			return row.name == k.name && row.resource == k.resource && sameCounts(row.byWay, merged[k])
		})
		if i < 0 {
			rows = append(rows, clientRow{name: k.name, resource: k.resource, byWay: merged[k]})
			i = len(rows) - 1
		}
		if k.node != "" {
			rows[i].nodes = append(rows[i].nodes, k.node)
		}
	}
	return rows
}

// plus adds up the counts of two streams of one client.
func (c Client) plus(d Client) Client {
	d.Adds += c.Adds
	d.Updates += c.Updates
	d.Deletes += c.Deletes
	d.Bookmarks += c.Bookmarks
	d.Relists += c.Relists
	d.Violations += c.Violations
	return d
}

// sameCounts compares what is drawn; bookmarks come by the clock and differ.
func sameCounts(a, b map[string]Client) bool {
	if len(a) != len(b) {
		return false
	}
	for way, x := range a {
		y, ok := b[way]
		if !ok || x.Adds != y.Adds || x.Updates != y.Updates || x.Deletes != y.Deletes ||
			x.Relists != y.Relists || x.Violations != y.Violations {
			return false
		}
	}
	return true
}

func nodesText(nodes []string) string {
	switch len(nodes) {
	case 0:
		return ""
	case 1:
		return nodes[0]
	}
	return count(int64(len(nodes))) + " nodes, all the same"
}

func describeClients(r Result, ways []string) string {
	s := "Adds, updates and deletes that each client saw."
	for _, way := range ways {
		var all Client
		clients := 0
		for _, c := range r.Clients {
			if c.Way == way {
				all, clients = all.plus(c), clients+1
			}
		}
		s += " " + wayName(way) + ": " + plural(clients, "client stream", "client streams") + ", " + count(all.Events()) +
			" changes, " +
			plural(int(all.Relists), "re-list", "re-lists") + ", " + plural(int(all.Violations), "violation", "violations") + "."
	}
	return s
}
