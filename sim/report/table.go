package report

import "strings"

// table is a table of a report, before it is Markdown or HTML.
type table struct {
	Caption string
	Columns []column
	Rows    []row
	Note    string // under the table
}

type column struct {
	Title string
	Right bool // numbers
	Doc   bool // an explanation of what stands before it
}

// Class is the CSS class of the cells of a column in HTML.
func (c column) Class() string {
	switch {
	case c.Right:
		return "number"
	case c.Doc:
		return "doc"
	}
	return ""
}

type row struct {
	Cells []cell
	Total bool // stands out
}

// cell is one field. Code cells are names that a person copies; Mark is good or bad, shown as a sign and a colour.
type cell struct {
	Text string
	Code bool
	Link string // relative, HTML only
	Mark mark
}

type mark int

const (
	unmarked mark = iota
	good
	bad
)

func (m mark) sign() string {
	switch m {
	case good:
		return "✔"
	case bad:
		return "✘"
	}
	return ""
}

// Class is the CSS class of a cell in HTML. Long texts may break lines where numbers may not.
func (c cell) Class() string {
	const long = 32
	class := ""
	switch c.Mark {
	case good:
		class = "good"
	case bad:
		class = "bad"
	}
	if len(c.Text) > long {
		class = strings.TrimSpace(class + " long")
	}
	return class
}

// Sign is what shows the mark of a cell without its colour.
func (c cell) Sign() string { return c.Mark.sign() }

func text(s string) cell { return cell{Text: s} }

func code(s string) cell { return cell{Text: s, Code: true} }

func texts(fields ...string) []cell {
	cells := make([]cell, 0, len(fields))
	for _, f := range fields {
		cells = append(cells, text(f))
	}
	return cells
}

// verdictCell says in words whether something held.
func verdictCell(passed bool) cell {
	if passed {
		return cell{Text: "held", Mark: good}
	}
	return cell{Text: "failed", Mark: bad}
}

// widest is to what a column is padded: a longer field is for the one that reads the table rendered.
const widest = 120

// markdown renders t in GitHub's Markdown; the columns are padded so that the text is readable as it is.
func (t table) markdown(b *strings.Builder) {
	if len(t.Rows) == 0 {
		return
	}
	lines := make([][]string, 0, len(t.Rows)+1)
	head := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		head[i] = mdText(c.Title)
	}
	lines = append(lines, head)
	for _, r := range t.Rows {
		line := make([]string, len(t.Columns))
		for i := range line {
			if i < len(r.Cells) {
				line[i] = r.Cells[i].markdown(r.Total)
			}
		}
		lines = append(lines, line)
	}
	widths := make([]int, len(t.Columns))
	for i := range widths {
		widths[i] = 3
		for _, line := range lines {
			widths[i] = max(widths[i], min(len([]rune(line[i])), widest))
		}
	}
	for n, line := range lines {
		for i, field := range line {
			pad := strings.Repeat(" ", max(widths[i]-len([]rune(field)), 0))
			if t.Columns[i].Right {
				b.WriteString("| " + pad + field + " ")
			} else {
				b.WriteString("| " + field + pad + " ")
			}
		}
		b.WriteString("|\n")
		if n > 0 {
			continue
		}
		for i, c := range t.Columns {
			if c.Right {
				b.WriteString("| " + strings.Repeat("-", widths[i]-1) + ": ")
			} else {
				b.WriteString("| " + strings.Repeat("-", widths[i]) + " ")
			}
		}
		b.WriteString("|\n")
	}
	b.WriteByte('\n')
	if t.Note != "" {
		b.WriteString(mdText(t.Note) + "\n\n")
	}
}

func (c cell) markdown(bold bool) string {
	s := mdText(c.Text)
	if c.Code && c.Text != "" {
		s = mdCode(c.Text)
	}
	if bold && s != "" && !c.Code {
		s = "**" + s + "**"
	}
	if sign := c.Sign(); sign != "" {
		s = strings.TrimSpace(sign + " " + s)
	}
	return s
}
