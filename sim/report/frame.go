package report

import (
	"math"

	"github.com/weir-edge/weir/sim/report/svg"
)

// plotWidth is the width of every plot; a page scales them to its own.
const plotWidth = 960

// plotLeft is where the time axes start; what is left of it belongs to the values.
const plotLeft = 62.0

// frame is one panel of a plot: two axes over a rectangle. Y grows upward.
type frame struct {
	left, right, top, bottom float64
	x, y                     svg.Scale
}

func newFrame(left, right, top, bottom, xMax, yMax float64) frame {
	return frame{
		left: left, right: right, top: top, bottom: bottom,
		x: svg.Scale{Max: xMax, From: left, To: right},
		y: svg.Scale{Max: yMax, From: bottom, To: top},
	}
}

func (f frame) at(x, y float64) svg.Point { return svg.Point{X: f.x.At(x), Y: f.y.At(y)} }

// timeAxis draws ticks of seconds under the frame, or of minutes or hours if it is long.
func (f frame) timeAxis(c *svg.Canvas, ticks int) {
	per, unit := 1.0, " s"
	switch {
	case f.x.Max >= 2*3600:
		per, unit = 3600, " h"
	case f.x.Max >= 300:
		per, unit = 60, " min"
	}
	c.Line("axis", svg.Point{X: f.left, Y: f.bottom}, svg.Point{X: f.right, Y: f.bottom})
	for i, v := range f.x.TimeTicks(ticks) {
		x := f.x.At(v)
		c.Line("axis", svg.Point{X: x, Y: f.bottom}, svg.Point{X: x, Y: f.bottom + 4})
		label := UnitCount.Format(v / per)
		if i == 0 {
			label += unit
		}
		c.Text("tick", svg.Middle, svg.Point{X: x, Y: f.bottom + 17}, label)
	}
}

// valueAxis draws horizontal lines with their values at the left; all values have the prefix of the largest.
func (f frame) valueAxis(c *svg.Canvas, ticks int, unit string) {
	values := f.y.Ticks(ticks)
	per, prefix := prefixOf(values[len(values)-1])
	for _, v := range values {
		y := f.y.At(v)
		if v > 0 {
			c.Line("grid", svg.Point{X: f.left, Y: y}, svg.Point{X: f.right, Y: y})
		}
		label := significant(v / per)
		if v == values[len(values)-1] {
			label += " " + prefix + unit
		}
		c.Text("tick", svg.End, svg.Point{X: f.left - 6, Y: y + 4}, label)
	}
}

// prefixOf returns the power of a thousand to count v in.
func prefixOf(v float64) (float64, string) {
	per := 1.0
	for _, prefix := range []string{"", "k", "M", "G"} {
		if v < 1000*per {
			return per, prefix
		}
		per *= 1000
	}
	return per, "T"
}

// thin merges neighbours until at most limit buckets are left; it returns their sums and how many seconds
// one of them now spans. The last one may span fewer.
func thin(buckets []float64, limit int) ([]float64, int) {
	span := max(1, int(math.Ceil(float64(len(buckets))/float64(limit))))
	if span == 1 {
		return buckets, 1
	}
	merged := make([]float64, 0, limit)
	for i := 0; i < len(buckets); i += span {
		sum := 0.0
		for _, b := range buckets[i:min(i+span, len(buckets))] {
			sum += b
		}
		merged = append(merged, sum)
	}
	return merged, span
}

// labelHeight is the room for a label and the note under it.
const labelHeight = 37.0

// spread moves the places of labels apart and keeps them above limit. Places are in ascending order.
func spread(places []float64, limit float64) {
	for i := range places {
		if i > 0 {
			places[i] = max(places[i], places[i-1]+labelHeight)
		}
	}
	for i := len(places) - 1; i >= 0; i-- {
		places[i] = min(places[i], limit)
		limit = places[i] - labelHeight
	}
}
