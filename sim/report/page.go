package report

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"

	"github.com/weir-edge/weir/sim/report/svg"
)

//go:embed assets
var assets embed.FS

// page is what report.html shows.
type page struct {
	Title, Scenario, Description, Repeat, Units, ResultFile string

	Lead []string

	Style   template.CSS
	Verdict cell
	Tiles   []tile

	BytesPlot, ReadyPlot, ClientsPlot template.HTML // by package svg, which escapes
	ReadyNote, ClientsNote            string

	Failovers, Faults, Expectations, Violations, Comparison, Readiness, Clients, Causes, Replacing table
	Memory, Metrics, Environment                                                                   table
	ByteTables                                                                                     []table
}

// Page renders r as one HTML page that needs nothing else.
func Page(r Result) ([]byte, error) {
	r = r.clean()
	style, err := styles("assets/plot.css", "assets/page.css")
	if err != nil {
		return nil, err
	}
	ready, readyNote := readinessPlot(r)
	clients, clientsNote := clientsPlot(r)
	return render("page.tmpl", page{
		Title:        r.Scenario + ": " + r.verdict(),
		Scenario:     r.Scenario,
		Lead:         r.lead(),
		Description:  r.Description,
		Repeat:       r.Repeat,
		Units:        unitsNote,
		ResultFile:   resultFile,
		Style:        style,
		Verdict:      verdictBadge(r.Passed),
		Tiles:        r.tiles(),
		BytesPlot:    inline(bytesPlot(r, "bytes", false)),
		ReadyPlot:    inline(ready),
		ReadyNote:    readyNote,
		ClientsPlot:  inline(clients),
		ClientsNote:  clientsNote,
		Expectations: r.expectationTable(true),
		Failovers:    r.failoverTable(),
		Faults:       r.faultTable(),
		Violations:   r.violationTable(),
		Comparison:   r.comparisonTable(),
		Readiness:    r.readinessTable(),
		Clients:      r.clientTable(),
		Causes:       r.causeTable(),
		Replacing:    r.replacingTable(),
		Memory:       r.memoryTable(),
		Metrics:      r.metricTable(),
		Environment:  r.environmentTable(),
		ByteTables:   r.byteTables(),
	})
}

func verdictBadge(passed bool) cell {
	if passed {
		return cell{Text: "passed", Mark: good}
	}
	return cell{Text: "failed", Mark: bad}
}

// inline returns a plot for a page; svg.Canvas has escaped what is in it, see TestFormatsTakeAnything.
func inline(plot *svg.Canvas) template.HTML {
	if plot == nil {
		return ""
	}
	return template.HTML(plot.Inline())
}

// styles joins style sheets of this package.
func styles(names ...string) (template.CSS, error) {
	var all []byte
	for _, name := range names {
		css, err := assets.ReadFile(name)
		if err != nil {
			return "", err
		}
		all = append(all, css...)
	}
	return template.CSS(all), nil
}

func render(name string, data any) ([]byte, error) {
	t, err := template.ParseFS(assets, "assets/table.tmpl", "assets/"+name)
	if err != nil {
		return nil, fmt.Errorf("parse template: %w", err)
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, name, data); err != nil {
		return nil, fmt.Errorf("render %s: %w", name, err)
	}
	return b.Bytes(), nil
}

// Plot renders bytes over time as an SVG file; nil if r has no series.
func Plot(r Result) ([]byte, error) {
	plot := bytesPlot(r.clean(), "plot", true)
	if plot == nil {
		return nil, nil
	}
	style, err := styles("assets/plot.css")
	if err != nil {
		return nil, err
	}
	return []byte(plot.Standalone(string(style))), nil
}
