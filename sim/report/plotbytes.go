package report

import (
	"cmp"
	"slices"

	"github.com/weir-edge/weir/sim/report/svg"
)

func bytesTitle(r Result) string {
	if slices.Contains(r.ways(), WayStock) {
		return r.Scenario + ": bytes over the uplink, stock beside Weir"
	}
	return r.Scenario + ": bytes over the uplink"
}

func (r Result) hasSeries() bool {
	return slices.ContainsFunc(r.Series, func(s Series) bool { return len(s.Bytes) > 0 })
}

// timedWays are the ways that have a series.
func (r Result) timedWays() []string {
	return slices.DeleteFunc(r.ways(), func(w string) bool { return len(r.series(w, "")) == 0 })
}

// bytesPlot draws bytes over time: all ways in one panel as they add up, and the rate of each beside the
// others on the same scale. It returns nil if nothing was counted.
func bytesPlot(r Result, id string, titled bool) *svg.Canvas {
	ways := r.timedWays()
	if len(ways) == 0 {
		return nil
	}
	const panel, gap, rate = 250.0, 84.0, 150.0
	top := 30.0
	if titled {
		top += 30
	}
	c := svg.New(id, plotWidth, top+panel+gap+rate+34, bytesTitle(r), describeBytes(r, ways))
	if titled {
		c.TextTip("title", svg.Start, svg.Point{X: 0, Y: 18}, bytesTitle(r), 110)
	}
	duration := 0.0
	for _, w := range ways {
		duration = max(duration, float64(len(r.series(w, ""))))
	}
	drawCumulative(c, r, ways, newFrame(plotLeft, plotWidth-180, top, top+panel, duration, 0))
	drawRates(c, r, ways, top+panel+gap, top+panel+gap+rate, duration)
	return c
}

// describeBytes is the plot in words.
func describeBytes(r Result, ways []string) string {
	s := "Bytes over the link between cloud and pool, by seconds since each way began."
	for _, w := range ways {
		v := r.series(w, "")
		s += " " + wayName(w) + ": " + UnitBytes.Format(sum(v)) + " in " + seconds(float64(len(v))) + "."
	}
	return s
}

// drawCumulative draws one line per way; its label stands at its end, at the right of the frame.
func drawCumulative(c *svg.Canvas, r Result, ways []string, f frame) {
	type line struct {
		way   string
		total float64
	}
	var lines []line
	for _, w := range ways {
		l := line{w, sum(r.series(w, ""))}
		f.y.Max = max(f.y.Max, l.total)
		lines = append(lines, l)
	}
	c.Text("panel", svg.Start, svg.Point{X: 0, Y: f.top - 14}, "All bytes so far, both directions")
	f.valueAxis(c, 6, "B")
	f.timeAxis(c, 8)

	// From the top of the canvas down, so that labels can be moved apart in one pass.
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(b.total, a.total) })
	places := make([]float64, 0, len(lines))
	for _, l := range lines {
		places = append(places, f.y.At(l.total))
	}
	spread(places, f.bottom-14)
	reference := sum(r.series(WayReference, ""))
	for i := len(lines) - 1; i >= 0; i-- {
		l := lines[i]
		buckets, span := thin(r.series(l.way, ""), 600)
		points := []svg.Point{f.at(0, 0)}
		so := 0.0
		for n, b := range buckets {
			so += b
			points = append(points, f.at(float64((n+1)*span), so))
		}
		end := points[len(points)-1]
		label := svg.Point{X: f.right + 18, Y: places[i]}
		c.Polyline("leader", []svg.Point{end, {X: f.right + 4, Y: end.Y}, {X: label.X - 4, Y: label.Y}})
		c.Polyline("line "+wayClass(l.way), points)
		c.Circle("dot "+wayClass(l.way), wayName(l.way)+": "+UnitBytes.Format(l.total), end, 3.5)
		c.TextTip("label "+wayClass(l.way), svg.Start, svg.Point{X: label.X, Y: label.Y + 1},
			wayName(l.way)+" "+UnitBytes.Format(l.total), 26)
		if reference > 0 && l.way != WayReference {
			c.Text("note", svg.Start, svg.Point{X: label.X, Y: label.Y + 16}, ratio(l.total/reference)+" × the reference")
		}
	}
}

const (
	rateTicks = 3   // lines across a panel of rates
	rateSteps = 240 // steps of its curves, at most
)

// drawRates draws one panel per way, side by side, on one scale.
func drawRates(c *svg.Canvas, r Result, ways []string, top, bottom, duration float64) {
	const between = 34.0
	width := (plotWidth - 12 - plotLeft - between*float64(len(ways)-1)) / float64(len(ways))
	highest, span := 0.0, 1
	for _, w := range ways {
		for _, d := range []string{Down, Up} {
			buckets, s := thin(r.series(w, d), rateSteps)
			span = max(span, s)
			for _, b := range buckets {
				highest = max(highest, b/float64(s))
			}
		}
	}
	capacity := r.UplinkBitsPerSecond / 8
	showCapacity := capacity > 0 && highest > capacity/3
	yMax := highest * 1.05
	if showCapacity {
		yMax = max(yMax, capacity*1.15)
	}
	heading := "Bytes per second"
	if span > 1 {
		heading += ", mean of " + seconds(float64(span))
	}
	c.Text("panel", svg.Start, svg.Point{X: 0, Y: top - 40}, heading)
	for i, w := range ways {
		x := plotLeft + float64(i)*(width+between)
		f := newFrame(x, x+width, top, bottom, duration, yMax)
		if i == 0 {
			f.valueAxis(c, rateTicks, "B/s")
		} else {
			f.gridOnly(c)
		}
		if showCapacity {
			y := f.y.At(capacity)
			c.Line("capacity", svg.Point{X: f.left, Y: y}, svg.Point{X: f.right, Y: y})
			if i == 0 {
				c.Text("note", svg.End, svg.Point{X: f.right, Y: y - 5}, "uplink "+UnitBits.Format(r.UplinkBitsPerSecond))
			}
		}
		drawRate(c, r, w, f)
		drawMarks(c, r, w, f)
		f.timeAxis(c, max(4, 8/len(ways)))
		c.TextTip("label "+wayClass(w), svg.Start, svg.Point{X: f.left, Y: f.top - 18}, wayName(w), 20)
	}
}

// drawRate fills what came down and draws what went up as a line.
func drawRate(c *svg.Canvas, r Result, way string, f frame) {
	steps := func(direction string) []svg.Point {
		buckets, span := thin(r.series(way, direction), rateSteps)
		var points []svg.Point
		for n, b := range buckets {
			points = append(points, f.at(float64(n*span), b/float64(span)), f.at(float64((n+1)*span), b/float64(span)))
		}
		return points
	}
	if down := steps(Down); len(down) > 0 {
		c.Area("area "+wayClass(way), down, f.bottom)
		c.Polyline("line thin "+wayClass(way), down)
	}
	c.Polyline("line up", steps(Up))
}

// gridOnly draws the lines of valueAxis without its values.
func (f frame) gridOnly(c *svg.Canvas) {
	for _, v := range f.y.Ticks(rateTicks)[1:] {
		y := f.y.At(v)
		c.Line("grid", svg.Point{X: f.left, Y: y}, svg.Point{X: f.right, Y: y})
	}
}

// markLimit bounds the marks of one panel, markRows the lines that their labels stand in.
const (
	markLimit = 40
	markRows  = 3
)

// drawMarks draws the phases and faults of a way as upright lines; a label that has no room is left out.
func drawMarks(c *svg.Canvas, r Result, way string, f frame) {
	marks := slices.DeleteFunc(slices.Clone(r.Marks), func(m Mark) bool { return m.Way != way })
	slices.SortStableFunc(marks, func(a, b Mark) int { return cmp.Compare(a.Seconds, b.Seconds) })
	free := [markRows]float64{}
	for _, m := range marks[:min(len(marks), markLimit)] {
		class := "phase"
		if m.Fault {
			class = "fault"
		}
		x := f.x.At(m.Seconds)
		c.Line(class, svg.Point{X: x, Y: f.top - 8}, svg.Point{X: x, Y: f.bottom})
		label := svg.Shorten(oneLine(m.Label), 20)
		width := 5.6*float64(len([]rune(label))) + 8
		at, anchor := svg.Point{X: x + 3, Y: f.top + 1}, svg.Start
		if x+width > f.right {
			at.X, anchor = x-3, svg.End
			x -= width
		}
		for i := range free {
			if x >= free[i] {
				at.Y += float64(i) * 11
				c.Text("mark "+class, anchor, at, label)
				free[i] = x + width
				break
			}
		}
	}
}

// wayClass is the CSS class that has the colour of a way.
func wayClass(way string) string {
	switch way {
	case WayStock, WayWeir, WayReference:
		return way
	}
	return "other"
}

func sum(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total
}
