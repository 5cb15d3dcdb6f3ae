package change

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-edge/weir/sim/report/svg"
)

// What bounds a history.
const (
	maxHistory = 8 << 20
	maxColumns = 200
)

// History is a line for each landed change: a table of figures over revisions.
type History struct {
	Columns []string // names of figures, with their units: "heartbeat: bytes … [B]"
	Rows    []Landed
}

// Landed is one change.
type Landed struct {
	Date     string // 2026-11-23
	Revision string
	Reason   string // of what it accepted, or empty
	Values   []float64
}

const historyHead = "date\trevision\taccepted"

// ReadHistory reads the table that String writes.
func ReadHistory(data []byte) (h History, err error) {
	if len(data) > maxHistory {
		return h, fmt.Errorf("the history has %d bytes: want %d at most", len(data), maxHistory)
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	head := strings.Split(lines[0], "\t")
	if strings.Join(head[:min(len(head), 3)], "\t") != historyHead || len(head) > maxColumns {
		return h, fmt.Errorf("line 1 of the history: %.80q: want %q and up to %d figures", lines[0], historyHead, maxColumns)
	}
	h.Columns = head[3:]
	for n, line := range lines[1:] {
		fields := strings.Split(line, "\t")
		if len(fields) != len(head) {
			return h, fmt.Errorf("line %d of the history has %d fields: want %d", n+2, len(fields), len(head))
		}
		row := Landed{Date: fields[0], Revision: fields[1], Reason: fields[2]}
		for i, f := range fields[3:] {
			v := math.NaN()
			if f != "" {
				if v, err = strconv.ParseFloat(f, 64); err != nil {
					return h, fmt.Errorf("line %d of the history, %s: %q: want a number or nothing", n+2, h.Columns[i], f)
				}
			}
			row.Values = append(row.Values, v)
		}
		h.Rows = append(h.Rows, row)
	}
	return h, nil
}

// Add appends a line for one side of a report, SideHead or SideBase: the base is measured by the testbed of the head,
// so old revisions can be added by the testbed of today. A revision that is there already is replaced, in its place.
func (h *History) Add(r *Report, side string) {
	of, samples := r.Head, func(f *Figure) []float64 { return flat(f.Head) }
	if side == SideBase {
		of, samples = r.Base, func(f *Figure) []float64 { return flat(f.Base) }
	}
	row := Landed{
		Date: cmp.Or(of.Date, r.Began.UTC().Format("2006-01-02")), Revision: of.name(),
		Values: make([]float64, len(h.Columns)),
	}
	for i := range row.Values {
		row.Values[i] = math.NaN()
	}
	if side != SideBase {
		for _, a := range r.Accepted {
			row.Reason = strings.Join(strings.Fields(strings.TrimSpace(row.Reason+" "+a.Reason)), " ")
		}
	}
	for _, f := range r.Figures {
		values := samples(&f)
		if len(values) == 0 {
			continue
		}
		name := f.Key()
		if f.Unit != "" {
			name += " [" + f.Unit + "]"
		}
		i := slices.Index(h.Columns, name)
		if i < 0 && len(h.Columns) < maxColumns-3 {
			i = len(h.Columns)
			h.Columns = append(h.Columns, name)
			row.Values = append(row.Values, math.NaN())
			for k := range h.Rows {
				h.Rows[k].Values = append(h.Rows[k].Values, math.NaN())
			}
		}
		if i >= 0 {
			row.Values[i] = median(values)
		}
	}
	if i := slices.IndexFunc(h.Rows, func(l Landed) bool { return l.Revision == row.Revision }); i >= 0 {
		h.Rows[i] = row
		return
	}
	h.Rows = append(h.Rows, row)
}

// String is the table, tabs between fields.
func (h *History) String() string {
	var b strings.Builder
	b.WriteString(strings.Join(append([]string{historyHead}, h.Columns...), "\t") + "\n")
	for _, r := range h.Rows {
		fields := []string{r.Date, r.Revision, strings.ReplaceAll(r.Reason, "\t", " ")}
		for _, v := range r.Values {
			text := ""
			if !math.IsNaN(v) {
				text = strconv.FormatFloat(v, 'g', 8, 64)
			}
			fields = append(fields, text)
		}
		b.WriteString(strings.Join(fields, "\t") + "\n")
	}
	return b.String()
}

// Page plots each figure over the landed changes, those that drifted furthest first.
func (h *History) Page() ([]byte, error) {
	style, err := assets.ReadFile("assets/page.css")
	if err != nil {
		return nil, err
	}
	type plot struct {
		Name, Now string
		Drift     float64
		SVG       template.HTML
	}
	var plots []plot
	for i, name := range h.Columns {
		var values []float64
		var names []string
		for _, r := range h.Rows {
			if !math.IsNaN(r.Values[i]) {
				values, names = append(values, r.Values[i]), append(names, r.Date+" "+r.Revision)
			}
		}
		if len(values) == 0 {
			continue
		}
		_, unit := figureOf(name)
		last := values[len(values)-1]
		drift := 0.0
		if values[0] != 0 {
			drift = last/values[0] - 1
		}
		plots = append(plots, plot{
			name, fmt.Sprintf("now %s, %+.1f %% since %s", Format(last, unit), 100*drift, names[0]), drift,
			template.HTML(historyPlot(i, name, unit, values, names)),
		}) //nolint:gosec // svg escapes all that goes into it
	}
	slices.SortStableFunc(plots, func(a, b plot) int { return -compareFloat(a.Drift, b.Drift) })
	t, err := template.New("history").Parse(historyTemplate)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, struct {
		Style template.CSS
		Rows  int
		Plots []plot
	}{template.CSS(style), len(h.Rows), plots}) //nolint:gosec // the style sheet is embedded
	return b.Bytes(), err
}

// figureOf is the figure that a column has, and its unit: "" of a count.
func figureOf(column string) (key, unit string) {
	if from := strings.LastIndex(column, " ["); from > 0 && strings.HasSuffix(column, "]") {
		return column[:from], column[from+2 : len(column)-1]
	}
	return column, ""
}

func compareFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func historyPlot(id int, name, unit string, values []float64, names []string) string {
	const width, height, left = 560.0, 110.0, 70.0
	c := svg.New(fmt.Sprintf("figure-%d", id), width, height, name, "its median at each landed change")
	scale := svg.Scale{Max: slices.Max(values) * 1.05, From: height - 18, To: 8}
	c.Line("axis", svg.Point{X: left, Y: scale.From}, svg.Point{X: width - 8, Y: scale.From})
	c.Text("tick", svg.End, svg.Point{X: left - 6, Y: scale.From}, "0")
	c.Text("tick", svg.End, svg.Point{X: left - 6, Y: scale.At(slices.Max(values)) + 4}, Format(slices.Max(values), unit))
	points := make([]svg.Point, 0, len(values))
	step := (width - 30 - left) / float64(max(len(values)-1, 1))
	for i, v := range values {
		points = append(points, svg.Point{X: left + 10 + float64(i)*step, Y: scale.At(v)})
	}
	c.Polyline("course", points)
	for i, p := range points {
		c.Circle("landed", names[i]+": "+Format(values[i], unit), p, 3.5)
	}
	return c.Inline()
}

const historyTemplate = `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">` +
	`<meta name="viewport" content="width=device-width, initial-scale=1"><title>Weir: history of figures</title>
<style>{{.Style}}.plot{width:100%;height:auto;display:block}` +
	`.plot text{font:11px system-ui,sans-serif;fill:var(--muted)}.plot .axis{stroke:var(--line)}` +
	`.plot .course{fill:none;stroke:var(--link);stroke-width:2}.plot .landed{fill:var(--link)}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,380px),1fr));gap:22px}` +
	`.figures h3{margin:0}</style></head>
<body><h1>History of figures</h1><p class="muted">{{.Rows}} landed changes. Those that grew furthest come first.</p>
<div class="figures">{{range .Plots}}<section><h3>{{.Name}}</h3><p class="muted">{{.Now}}</p>{{.SVG}}</section>
{{end}}</div></body></html>
`

// ends is how many landed changes stand for either end of a window, where it has twice as many: one measurement is one
// sample.
const ends = 3

// Drift names the figures that grew by more than a share over the last so many landed changes, or by more than what
// they differ by from themselves where that is more: small losses, each within its band. A count has to grow by more
// than one. What a figure grew by where a change accepted its losses is ignored.
func (h *History) Drift(last int, share float64, bands Bands) (grown []string) {
	rows := h.Rows[max(len(h.Rows)-last, 0):]
	for i, column := range h.Columns {
		name, unit := figureOf(column)
		var values []float64 // less what was accepted: of a count as a number, else as a factor
		before, accepted, times := math.NaN(), 0.0, 1.0
		for _, r := range rows {
			v := r.Values[i]
			if math.IsNaN(v) {
				continue
			}
			if before >= 0 && r.Reason != "" {
				accepted += v - before
				if before > 0 && v > 0 {
					times *= v / before
				}
			}
			before = v
			if v /= times; unit == "" {
				v = before - accepted
			}
			values = append(values, v)
		}
		if len(values) < 2 {
			continue
		}
		few := 1
		if len(values) >= 2*ends {
			few = ends
		}
		first, now := median(values[:few]), median(values[len(values)-few:])
		switch {
		case unit == "s": // of another hour, on another machine
		case unit == "" && now-first > 1:
			grown = append(grown, fmt.Sprintf("%s: %+.4g", name, now-first))
		case unit != "" && first > 0 && now/first-1 > max(share, bands[name]):
			grown = append(grown, fmt.Sprintf("%s: %+.1f %%", name, 100*(now/first-1)))
		}
	}
	return grown
}
