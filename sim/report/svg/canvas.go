package svg

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// Canvas collects the elements of one drawing.
type Canvas struct {
	id            string
	width, height float64
	title, desc   string
	body          strings.Builder
}

// New returns an empty canvas. The id must be unique in the page that the drawing goes into.
func New(id string, width, height float64, title, desc string) *Canvas {
	return &Canvas{id: id, width: width, height: height, title: title, desc: desc}
}

// Point is a place on a canvas, from its upper left corner.
type Point struct{ X, Y float64 }

// Line draws a straight line.
func (c *Canvas) Line(class string, a, b Point) {
	c.element("line", class, "", "x1", num(a.X), "y1", num(a.Y), "x2", num(b.X), "y2", num(b.Y))
}

// Rect draws a rectangle; tip, if not empty, is shown when a pointer rests on it.
func (c *Canvas) Rect(class, tip string, at Point, width, height float64) {
	c.element("rect", class, tip, "x", num(at.X), "y", num(at.Y), "width", num(max(width, 0)), "height",
		num(max(height, 0)))
}

// Circle draws a circle with a tip.
func (c *Canvas) Circle(class, tip string, at Point, radius float64) {
	c.element("circle", class, tip, "cx", num(at.X), "cy", num(at.Y), "r", num(radius))
}

// Polyline draws a line through points.
func (c *Canvas) Polyline(class string, points []Point) {
	if len(points) > 0 {
		c.element("path", class, "", "d", path(points))
	}
}

// Area fills what is between points and the horizontal at baseline.
func (c *Canvas) Area(class string, points []Point, baseline float64) {
	if len(points) == 0 {
		return
	}
	first, last := points[0], points[len(points)-1]
	d := path(points) + "L" + num(last.X) + " " + num(baseline) + "L" + num(first.X) + " " + num(baseline) + "Z"
	c.element("path", class, "", "d", d)
}

// Anchor says which part of a text stands at its point.
type Anchor string

// The anchors of a text.
const (
	Start  Anchor = "start"
	Middle Anchor = "middle"
	End    Anchor = "end"
)

// Text writes one line.
func (c *Canvas) Text(class string, anchor Anchor, at Point, text string) {
	fmt.Fprintf(&c.body, `<text class="%s" x="%s" y="%s" text-anchor="%s">%s</text>`+"\n",
		Escape(class), num(at.X), num(at.Y), anchor, Escape(text))
}

// TextTip writes one line that is shortened to so many characters and has the whole text as its tip.
func (c *Canvas) TextTip(class string, anchor Anchor, at Point, text string, limit int) {
	short := Shorten(text, limit)
	if short == text {
		c.Text(class, anchor, at, text)
		return
	}
	fmt.Fprintf(&c.body, `<text class="%s" x="%s" y="%s" text-anchor="%s">%s<title>%s</title></text>`+"\n",
		Escape(class), num(at.X), num(at.Y), anchor, Escape(short), Escape(text))
}

func (c *Canvas) element(name, class, tip string, attributes ...string) {
	fmt.Fprintf(&c.body, `<%s class="%s"`, name, Escape(class))
	for i := 0; i+1 < len(attributes); i += 2 {
		fmt.Fprintf(&c.body, ` %s="%s"`, attributes[i], attributes[i+1])
	}
	if tip == "" {
		c.body.WriteString("/>\n")
		return
	}
	fmt.Fprintf(&c.body, `><title>%s</title></%s>`+"\n", Escape(tip), name)
}

// Inline returns the drawing for an HTML page that has the style sheet.
func (c *Canvas) Inline() string {
	return c.document(fmt.Sprintf(`viewBox="0 0 %s %s"`, num(c.width), num(c.height)), "")
}

// Standalone returns the drawing as a file of its own, with its style sheet and a margin, on a ground of
// class "ground".
func (c *Canvas) Standalone(css string) string {
	const margin = 16
	x, width, height := num(-margin), num(c.width+2*margin), num(c.height+2*margin)
	box := fmt.Sprintf(`viewBox="%s %s %s %s" width="%s" height="%s"`, x, x, width, height, width, height)
	ground := fmt.Sprintf(`<rect class="ground" x="%s" y="%s" width="%s" height="%s"/>`+"\n", x, x, width, height)
	return `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + c.document(box, "<style>"+Escape(css)+"</style>\n"+ground)
}

// document writes the drawing; box is its place and size, before comes before what was drawn.
func (c *Canvas) document(box, before string) string {
	id := Escape(c.id)
	return fmt.Sprintf(
		`<svg xmlns="http://www.w3.org/2000/svg" class="plot" %s role="img" aria-labelledby="%s-title %s-desc">`+"\n"+
			`<title id="%s-title">%s</title>`+"\n"+`<desc id="%s-desc">%s</desc>`+"\n%s%s</svg>\n",
		box, id, id, id, Escape(c.title), id, Escape(c.desc), before, c.body.String())
}

func path(points []Point) string {
	var d strings.Builder
	for i, p := range points {
		if i == 0 {
			d.WriteByte('M')
		} else {
			d.WriteByte('L')
		}
		d.WriteString(num(p.X) + " " + num(p.Y))
	}
	return d.String()
}

// num writes a coordinate: finite, within what renderers can take, one decimal.
func num(v float64) string {
	if math.IsNaN(v) {
		v = 0
	}
	v = math.Round(min(max(v, -1e6), 1e6)*10) / 10
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// Escape makes any string safe as text and in attributes of XML and HTML. Characters that XML forbids go.
func Escape(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return ' '
		case r < ' ' || r == 0xfffe || r == 0xffff:
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	return html.EscapeString(s)
}

// Shorten cuts s in the middle if it has more than limit characters: names differ at their ends.
func Shorten(s string, limit int) string {
	r := []rune(s)
	if len(r) <= limit || limit < 3 {
		return s
	}
	head := (limit - 1) / 2
	return string(r[:head]) + "…" + string(r[len(r)-(limit-1-head):])
}
