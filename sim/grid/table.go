package grid

import (
	"bytes"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-edge/weir/sim/report"
)

// late is the time until fresh from which a cell counts as beyond the limit: the pool was old, and said so.
const late = 60.0

// row is a cell and what was seen in it.
type row struct {
	Cell
	Ran, Held       bool
	Load, Fresh     string
	Oldest          string
	Bytes           string
	Relists, Breaks string
	Why             string
}

// Write writes summary.md and index.html of the reports that there are into dir.
func Write(dir, repeat string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make folder of the table: %w", err)
	}
	rows, ran, revisions := read(dir)
	lead := fmt.Sprintf("%d of %d cells ran.", ran, len(rows))
	if ran > 0 {
		lead += fmt.Sprintf(" Revision %s.", strings.Join(revisions, " and "))
	}
	var page bytes.Buffer
	if err := pageTemplate.Execute(&page, map[string]any{"Lead": lead, "Repeat": repeat, "Rows": rows}); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	for name, text := range map[string][]byte{
		"summary.md": []byte(summary(lead, repeat, rows)), "index.html": page.Bytes(),
	} {
		//nolint:gosec // a report is for everybody
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return fmt.Errorf("write the table: %w", err)
		}
	}
	return nil
}

// Ran reports whether a cell has a report, of a pool that once was there.
func (c Cell) Ran(dir string) bool {
	res, err := report.Load(filepath.Join(dir, c.Name()))
	return err == nil && cameUp(res)
}

func cameUp(res report.Result) bool {
	_, ok := res.Metrics["cache_ready_seconds"]
	return ok
}

// read reads what the cells of the table reported, and of which revisions they were.
func read(dir string) (rows []row, ran int, revisions []string) {
	for _, c := range Cells() {
		r := row{Cell: c, Load: "-", Fresh: "-", Oldest: "-", Bytes: "-", Relists: "-", Breaks: "-"}
		if res, err := report.Load(filepath.Join(dir, c.Name())); err == nil {
			ran++
			r.take(res)
			if !slices.Contains(revisions, res.Revision) {
				revisions = append(revisions, res.Revision)
			}
		}
		rows = append(rows, r)
	}
	return rows, ran, revisions
}

func (r *row) take(res report.Result) {
	r.Ran = true
	for _, m := range []struct {
		name, form string
		to         *string
	}{
		{"fresh_seconds_max", "%.1f", &r.Fresh}, {"stale_seconds_max", "%.0f", &r.Oldest},
		{"catch_up_bytes_share", "%.2f", &r.Bytes},
		{"client_relists", "%.0f", &r.Relists}, {"watch_violations", "%.0f", &r.Breaks},
	} {
		if v, ok := res.Metrics[m.name]; ok {
			*m.to = fmt.Sprintf(m.form, v)
		}
	}
	if v, ok := res.Metrics["link_load_share"]; ok {
		r.Load = fmt.Sprintf("%.0f %%", 100*v)
	}
	fresh, measured := res.Metrics["fresh_seconds_max"]
	switch {
	case !cameUp(res):
		r.Why = "did not come up"
	case !measured:
		r.Why = "never as before"
	case res.Metrics["watch_violations"] > 0:
		r.Why = "promises broken"
	case fresh > late:
		r.Why = "beyond the limit"
	default:
		r.Held = true
	}
}

// Verdict is what the table says of a cell.
func (r row) Verdict() string {
	switch {
	case !r.Ran:
		return "did not run"
	case r.Held:
		return "held"
	}
	return r.Why
}

const legend = "Changes: per cent of what the link carries, as they are uncompressed; measured from the fault until " +
	"all was as before. Fresh: seconds from a fault's end until every cache of the pool held what was written then. " +
	"Oldest: the longest for which a hub served what it did not know to be fresh; it tells the age with each answer. " +
	"Bytes: of class pool, from the fault until all was as before, ÷ (the changes of that time, uncompressed, and one " +
	"gzipped list). " +
	"A cell holds if no promise of list and watch was broken and the pool was fresh within 60 s."

func summary(lead, repeat string, rows []row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Thin links\n\n%s %s\n\n    %s\n\n| link | changes | measured | fault | fresh, s | oldest, s | "+
		"bytes | client relists | violations | |\n| --- | --: | --: | --- | --: | --: | --: | --: | --: | --- |\n", lead,
		legend, repeat)
	for _, r := range rows {
		if r.Ran {
			fmt.Fprintf(&b, "| %v | %d %% | %s | %s | %s | %s | %s | %s | %s | %s |\n", r.Rate, r.Cell.Load, r.Load, r.Fault,
				r.Fresh, r.Oldest, r.Bytes, r.Relists, r.Breaks, r.Verdict())
		}
	}
	var missing []string
	for _, r := range rows {
		if !r.Ran {
			missing = append(missing, r.Name())
		}
	}
	if len(missing) > 0 {
		fmt.Fprintf(&b, "\nDid not run: %s.\n", strings.Join(missing, ", "))
	}
	return b.String()
}

var pageTemplate = template.Must(
	template.New("page").Funcs(template.FuncMap{"legend": func() string { return legend }}).Parse(`<!doctype html>
<meta charset="utf-8"><title>Thin links</title>
<style>body{font:15px/1.5 sans-serif;margin:2em auto;max-width:60em}td,th{padding:.2em .8em;text-align:right}
.held{background:#dfd}.no{background:#fdd}.idle{color:#888}</style>
<h1>Thin links</h1><p>{{.Lead}} {{legend}}</p><pre>{{.Repeat}}</pre>
<table><tr><th>link<th>changes<th>measured<th>fault<th>fresh, s<th>oldest, s<th>bytes` +
		`<th>client relists<th>violations<th></tr>
{{range .Rows}}<tr class="{{if .Held}}held{{else if .Ran}}no{{else}}idle{{end}}">` +
		`<td>{{.Rate}}<td>{{.Cell.Load}} %<td>{{.Load}}<td>
{{- if .Ran}}<a href="{{.Name}}/report.html">{{.Fault}}</a>{{else}}{{.Fault}}{{end}}` +
		`<td>{{.Fresh}}<td>{{.Oldest}}<td>{{.Bytes}}<td>{{.Relists}}<td>{{.Breaks}}<td>{{.Verdict}}</tr>
{{end}}</table>
`))
