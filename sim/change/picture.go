package change

import (
	"fmt"
	"strings"

	"github.com/weir-edge/weir/sim/report/svg"
)

// Measures of the picture.
const (
	pictureWidth = 1000.0
	laneLeft     = 240.0
	laneHeight   = 18.0
	laneGap      = 5.0
	trackHead    = 30.0
	trackFoot    = 26.0
)

// Picture draws one scenario, base above head, as SVG; nil if no run has a track. Its colours are told apart by all
// eyes, and each has a pattern of its own height.
func (r *Report) Picture() []byte {
	runs, ok := r.track()
	if !ok {
		return nil
	}
	height := 0.0
	for _, run := range runs {
		height += trackHead + float64(len(run.Track.Lanes))*(laneHeight+laneGap) + trackFoot
	}
	last, tallest := extent(runs)
	c := svg.New("change", pictureWidth, height, "what happened in "+runs[0].Scenario,
		"lanes of link, roles, caches and streams over time, one block for each side")
	scale := svg.Scale{Max: last, From: laneLeft, To: pictureWidth - 10}
	y := 0.0
	for _, run := range runs {
		c.Text("title", svg.Start, svg.Point{X: 0, Y: y + 18}, svg.Shorten(run.caption(), 100))
		y += trackHead
		top := y
		for _, l := range run.Track.Lanes {
			drawLane(c, l, scale, tallest[l.Name], y)
			y += laneHeight + laneGap
		}
		for _, m := range run.Track.Marks {
			x := scale.At(m.At)
			c.Line("fault", svg.Point{X: x, Y: top - 4}, svg.Point{X: x, Y: y})
			c.Circle("fault", fmt.Sprintf("%.2f s: %s", m.At, m.Label), svg.Point{X: x, Y: top - 4}, 2.5)
		}
		for _, v := range scale.TimeTicks(8) {
			c.Text("tick", svg.Middle, svg.Point{X: scale.At(v), Y: y + 12}, fmt.Sprintf("%g s", v))
		}
		y += trackFoot
	}
	return []byte(c.Standalone(pictureStyle))
}

func drawLane(c *svg.Canvas, l Lane, scale svg.Scale, most, y float64) {
	name := l.Name
	if len(l.Amounts) > 0 {
		name += ", " + l.most()
	}
	c.TextTip("lane", svg.End, svg.Point{X: laneLeft - 8, Y: y + laneHeight - 5}, name, 36)
	c.Rect("track", "", svg.Point{X: laneLeft, Y: y}, scale.To-laneLeft, laneHeight)
	if len(l.Amounts) > 0 {
		wide := max(scale.At(1)-scale.At(0), 0.5)
		for i, v := range l.Amounts {
			if tall := laneHeight * v / most; tall > 0 && float64(i) < scale.Max {
				c.Rect("amount", fmt.Sprintf("%d s: %s in a second", i, Format(v, l.Unit)),
					svg.Point{X: scale.At(float64(i)), Y: y + laneHeight - tall}, wide, tall)
			}
		}
	}
	for _, s := range l.Spans {
		tall := laneHeight * stateOf(s.State).height
		c.Rect("span "+stateOf(s.State).class, fmt.Sprintf("%.2f to %.2f s: %s %s", s.From, s.To, s.State, s.Tip),
			svg.Point{X: scale.At(s.From), Y: y + laneHeight - tall}, max(scale.At(s.To)-scale.At(s.From), 1), tall)
	}
	for _, m := range l.Moments {
		class := "moment"
		if m.Bad {
			class = "moment bad"
		}
		c.Circle(class, fmt.Sprintf("%.2f s: %s", m.At, m.Label), svg.Point{X: scale.At(m.At), Y: y + laneHeight/2}, 4)
	}
}

// state is how a role or a cache looks: by colour, and for eyes that see none, by height.
type state struct {
	class  string
	height float64
}

func stateOf(name string) state {
	switch strings.ToLower(name) {
	case "leader", "cloud":
		return state{"one", 1}
	case "follower", "coordinator", "ready":
		return state{"two", 0.6}
	case "":
		return state{"none", 0.15}
	}
	return state{"three", 0.35}
}

// pictureStyle takes its colours from Okabe and Ito's palette.
const pictureStyle = `
.plot text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, Arial, "DejaVu Sans", sans-serif; fill: #1b1f24; }
.plot .ground { fill: #ffffff; } .plot .title { font-size: 14px; font-weight: 600; } ` +
	`.plot .tick { font-size: 11px; fill: #57606a; }
.plot .track { fill: #f0f2f4; } .plot .amount { fill: #0072b2; }
.plot .span.one { fill: #d55e00; } .plot .span.two { fill: #56b4e9; } ` +
	`.plot .span.three { fill: #999999; } .plot .span.none { fill: #cccccc; }
.plot line.fault { stroke: #1b1f24; stroke-dasharray: 3 3; } .plot circle.fault { fill: #1b1f24; }
.plot .moment { fill: #f0e442; stroke: #1b1f24; } .plot .moment.bad { fill: #1b1f24; stroke: #1b1f24; }
`
