package main

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
)

const (
	column = 50 // px of one of Grafana's 24 columns
	unit   = 32 // px of one of its rows
	gap    = 6
	keys   = 4 // lines of a legend, two entries in each
	fontPx = 11
	letter = 6 // px of a character, about
)

// colours are told apart by all eyes (Okabe and Ito).
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#666666", "#000000"}

// draw draws a dashboard.
func draw(ctx context.Context, b *board, e *evaluator) ([]byte, error) {
	high := 0
	for _, p := range b.Panels {
		high = max(high, p.GridPos.Y+p.GridPos.H)
	}
	var w bytes.Buffer
	fmt.Fprintf(&w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="%d">`+
		"\n<title>%s</title>\n"+`<rect width="100%%" height="100%%" fill="#f4f5f5"/>`+"\n",
		24*column, high*unit, fontPx, html.EscapeString("The dashboard "+b.Title))
	for _, p := range b.Panels {
		x, y, wide, tall := p.GridPos.X*column+gap/2, p.GridPos.Y*unit+gap/2, p.GridPos.W*column-gap, p.GridPos.H*unit-gap
		if p.Type == "row" {
			fmt.Fprintf(&w, `<text x="%d" y="%d" font-size="15" font-weight="bold">%s</text>`+"\n", x+6, y+19,
				html.EscapeString(p.Title))
			continue
		}
		var lines []line
		for _, t := range p.Targets {
			some, err := e.lines(ctx, t.Expr, t.Legend)
			if err != nil {
				return nil, fmt.Errorf("panel %q: %w", p.Title, err)
			}
			lines = append(lines, some...)
		}
		fmt.Fprintf(&w, `<g transform="translate(%d %d)"><rect width="%d" height="%d" rx="3" fill="#fff" `+
			`stroke="#d8d9da"/><text x="10" y="19" font-weight="bold" font-size="12">%s</text>`+"\n", x, y, wide, tall,
			html.EscapeString(p.Title))
		switch {
		case len(lines) == 0:
			fmt.Fprintf(&w, `<text x="%d" y="%d" text-anchor="middle" fill="#666">no data</text>`, wide/2, tall/2)
		case p.Type == "stat":
			stat(&w, lines, p.Field.Defaults.Unit, wide, tall)
		default:
			chart(&w, lines, p.Field.Defaults.Unit, wide, tall, e.store.last.Sub(e.store.first).Seconds())
		}
		w.WriteString("</g>\n")
	}
	w.WriteString("</svg>\n")
	return w.Bytes(), nil
}

// stat draws the last values.
func stat(w *bytes.Buffer, lines []line, in string, wide, tall int) {
	high := (tall - 30) / len(lines)
	for i, l := range lines {
		last := math.NaN()
		for _, v := range slices.Backward(l.values) {
			if !math.IsNaN(v) {
				last = v
				break
			}
		}
		y := 30 + i*high + high*2/3
		fmt.Fprintf(w, `<text x="12" y="%d" fill="#555">%s</text><text x="%d" y="%d" text-anchor="end" font-size="%d" `+
			`fill="%s">%s</text>`+"\n",
			y, html.EscapeString(short(l.name, wide/2)), wide-12, y, min(26, high*2/3+4), colours[i%len(colours)],
			scaled(last, in))
	}
}

// chart draws lines over time.
func chart(w *bytes.Buffer, lines []line, in string, wide, tall int, seconds float64) {
	const left, top = 62, 30
	rows := min(keys, (len(lines)+1)/2)
	width, height := wide-left-12, tall-top-24-rows*14
	lowest, most := 0.0, 0.0
	for _, l := range lines {
		for _, v := range l.values {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				lowest, most = min(lowest, v), max(most, v)
			}
		}
	}
	if most == lowest {
		most = lowest + 1
	}
	at := func(v float64) float64 { return top + float64(height)*(most-v)/(most-lowest) }
	for i := range 4 {
		v := lowest + (most-lowest)*float64(i)/3
		fmt.Fprintf(w, `<path d="M%d %.1fH%d" stroke="#e5e5e5"/><text x="%d" y="%.1f" text-anchor="end" `+
			`fill="#555">%s</text>`+"\n", left, at(v), left+width, left-6, at(v)+4, scaled(v, in))
	}
	for i := range 4 {
		x := left + width*i/3
		fmt.Fprintf(w, `<text x="%d" y="%d" text-anchor="middle" fill="#555">%.0f s</text>`, x-8, top+height+15,
			seconds*float64(i)/3)
	}
	for i, l := range lines {
		d, pen := "", "M"
		for n, v := range l.values {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				pen = "M"
				continue
			}
			d += fmt.Sprintf("%s%.1f %.1f", pen, left+float64(width)*float64(n)/steps, at(v))
			pen = "L"
		}
		colour := colours[i%len(colours)]
		fmt.Fprintf(w, `<path d="%s" fill="none" stroke="%s" stroke-width="1.5"/>`+"\n", d, colour)
		if i >= 2*keys {
			continue
		}
		name := short(l.name, width/2-20)
		if i == 2*keys-1 && len(lines) > 2*keys {
			name = fmt.Sprintf("and %d more", len(lines)-i)
		}
		x, y := left+i%2*width/2, tall-8-(rows-1-i/2)*14
		fmt.Fprintf(w, `<path d="M%d %dh12" stroke="%s" stroke-width="3"/><text x="%d" y="%d">%s</text>`+"\n", x, y-4, colour,
			x+17, y, html.EscapeString(name))
	}
}

// short is a name that fits into a width.
func short(name string, px int) string {
	if r, most := []rune(name), px/letter; len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return name
}

// scaled is a value as Grafana shows it in a unit.
func scaled(v float64, in string) string {
	suffix := map[string]string{"s": " s", "Bps": " B/s", "decbytes": " B", "ops": " /s", "reqps": " /s"}[in]
	if in == "s" && math.Abs(v) >= 2*86400 {
		return strconv.FormatFloat(v/86400, 'f', 0, 64) + " d"
	}
	for _, p := range []struct {
		by   float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(v) >= p.by && suffix != "" && in != "s" {
			return strconv.FormatFloat(v/p.by, 'g', 3, 64) + " " + p.name + suffix[1:]
		}
	}
	return strconv.FormatFloat(v, 'g', 3, 64) + suffix
}
