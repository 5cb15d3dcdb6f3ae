package report

import (
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"strings"
)

// Sheet is a report that is not of a scenario: a verdict and tables.
type Sheet struct {
	Title  string
	Passed bool
	Lead   string // one sentence below the title
	Note   string // at the end
	Repeat string // the command that makes it again
	Grids  []Grid
}

// Grid is a table of a Sheet.
type Grid struct {
	Caption string
	Columns []string
	Rows    []GridRow
	Note    string
}

// GridRow is a line of a Grid. Good and Bad mark its first field.
type GridRow struct {
	Fields    []string
	Good, Bad bool
}

// WriteSheet writes summary.md, index.html, which needs no other file, and result.json, which holds the given value,
// into dir.
func WriteSheet(dir string, s Sheet, result any) error {
	page, err := s.page()
	if err != nil {
		return fmt.Errorf("report %s: %w", s.Title, err)
	}
	data, err := marshal(result)
	if err != nil {
		return fmt.Errorf("report %s: %w", s.Title, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make folder of report: %w", err)
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{summaryFile, []byte(s.markdown())}, {indexFile, page}, {resultFile, data}} {
		if err := writeFile(filepath.Join(dir, f.name), f.data); err != nil {
			return err
		}
	}
	return nil
}

func (g Grid) table() table {
	t := table{Caption: oneLine(g.Caption), Note: oneLine(g.Note)}
	for _, c := range g.Columns {
		t.Columns = append(t.Columns, column{Title: c})
	}
	for _, r := range g.Rows {
		cells := make([]cell, 0, len(r.Fields))
		for _, f := range r.Fields {
			cells = append(cells, text(oneLine(f)))
		}
		switch {
		case len(cells) == 0:
		case r.Good:
			cells[0].Mark = good
		case r.Bad:
			cells[0].Mark = bad
		}
		t.Rows = append(t.Rows, row{Cells: cells})
	}
	return t
}

func (s Sheet) markdown() string {
	var b strings.Builder
	b.WriteString("# " + verdictBadge(s.Passed).Sign() + " " + mdText(s.Title) + ": " + mdText(s.Lead) + "\n\n")
	for _, g := range s.Grids {
		if g.Caption != "" {
			b.WriteString("## " + mdText(g.Caption) + "\n\n")
		}
		g.table().markdown(&b)
	}
	if s.Repeat != "" {
		b.WriteString("Repeat:\n\n" + mdBlock("sh", s.Repeat) + "\n")
	}
	if s.Note != "" {
		b.WriteString(mdText(s.Note) + "\n")
	}
	return b.String()
}

func (s Sheet) page() ([]byte, error) {
	style, err := styles("assets/plot.css", "assets/page.css")
	if err != nil {
		return nil, err
	}
	x := struct {
		Title, Lead, Note, Repeat string
		Style                     template.CSS
		Verdict                   cell
		Tables                    []table
	}{oneLine(s.Title), oneLine(s.Lead), oneLine(s.Note), s.Repeat, style, verdictBadge(s.Passed), nil}
	for _, g := range s.Grids {
		x.Tables = append(x.Tables, g.table())
	}
	return render("sheet.tmpl", x)
}
