package report

import (
	"cmp"
	"fmt"
	"math"
	"strings"
)

// Compare lays two runs of one scenario side by side, as Markdown.
func Compare(a, b Result) (string, error) {
	a, b = a.clean(), b.clean()
	if a.Scenario != b.Scenario {
		return "", fmt.Errorf("these are of %q and of %q", a.Scenario, b.Scenario)
	}
	var out strings.Builder
	out.WriteString("# " + mdText(a.Scenario) + ": two runs side by side\n\n")
	for _, x := range []struct {
		name string
		r    Result
	}{{"A", a}, {"B", b}} {
		out.WriteString("- **" + x.name + "** " + x.r.verdict() + ": " + mdText(x.r.grounds()) + "\n")
	}
	out.WriteByte('\n')
	if s := poolAgreement(a, b); s != "" {
		out.WriteString(mdText(s) + "\n\n")
	}
	if a.Seed != b.Seed {
		out.WriteString(mdText(fmt.Sprintf("The seeds differ (%d, %d), so the workloads do too.", a.Seed, b.Seed)) + "\n\n")
	}
	section := func(title string, t table) {
		if len(t.Rows) > 0 {
			out.WriteString("## " + title + "\n\n")
			t.markdown(&out)
		}
	}
	section("Expectations", compareExpectations(a, b))
	section("Metrics", compareMetrics(a, b))
	section("Bytes over the uplink", compareBytes(a, b))
	section("Runs", compareRuns(a, b))
	out.WriteString(mdText(apartNote+" "+unitsNote) + "\n")
	return out.String(), nil
}

// poolAgreement says how far the bytes of the pool class, cloud to edge, with Weir are apart.
func poolAgreement(a, b Result) string {
	match := ByteRow{Way: WayWeir, Class: "pool", Direction: Down}
	x, y := a.Bytes.Sum(match), b.Bytes.Sum(match)
	if x == 0 || y == 0 {
		return ""
	}
	apart := math.Abs(float64(y-x)) / float64(max(x, y))
	return fmt.Sprintf("Bytes of class pool from cloud to edge with Weir are %s apart: A %s, B %s.",
		UnitShare.Format(apart), UnitBytes.Format(float64(x)), UnitBytes.Format(float64(y)))
}

func compareExpectations(a, b Result) table {
	t := table{Columns: []column{
		{Title: "expectation"}, {Title: "want", Right: true}, {Title: "A"}, {Title: "got", Right: true}, {Title: "B"},
		{Title: "got", Right: true},
	}}
	var names []string
	runs := [2]map[string]Expectation{{}, {}}
	for i, r := range []Result{a, b} {
		for _, e := range r.Expectations {
			if _, known := runs[0][e.Name]; !known && (i == 0 || !has(runs[1], e.Name)) {
				names = append(names, e.Name)
			}
			runs[i][e.Name] = e
		}
	}
	for _, name := range names {
		want := cmp.Or(runs[0][name].Want, runs[1][name].Want)
		if has(runs[0], name) && has(runs[1], name) && runs[0][name].Want != runs[1][name].Want {
			want = runs[0][name].Want + " (B: " + runs[1][name].Want + ")"
		}
		cells := []cell{code(name), text(want)}
		for _, run := range runs {
			if e, ok := run[name]; ok {
				cells = append(cells, verdictCell(e.Passed), text(e.Got))
			} else {
				cells = append(cells, text("not asked"), text(none))
			}
		}
		t.Rows = append(t.Rows, row{Cells: cells})
	}
	return t
}

func has(m map[string]Expectation, name string) bool {
	_, ok := m[name]
	return ok
}

func compareMetrics(a, b Result) table {
	t := table{
		Columns: []column{
			{Title: "metric"}, {Title: "A", Right: true}, {Title: "B", Right: true}, {Title: "B ÷ A", Right: true},
		},
	}
	for _, m := range reported(a.Outcome, b.Outcome) {
		cells := []cell{code(m.Name)}
		for _, r := range []Result{a, b} {
			v, ok := r.metric(m.Name, m.Unit)
			if !ok {
				v = none
			}
			cells = append(cells, text(v))
		}
		t.Rows = append(t.Rows, row{Cells: append(cells, text(quotient(b.Metrics, a.Metrics, m.Name)))})
	}
	return t
}

// quotient returns x ÷ y of the metric, if both have it.
func quotient(x, y Values, name string) string {
	a, hasA := x[name]
	b, hasB := y[name]
	if !hasA || !hasB || !isFinite(a) || !isFinite(b) || b == 0 {
		return none
	}
	return marked(a/b, ratio(a/b))
}

// notable is from where on two figures differ notably: B ÷ A is marked.
const (
	notable   = 0.1
	apartNote = "(!): more than 10 % apart."
)

// marked adds the mark to a ratio that was written out.
func marked(v float64, written string) string {
	if math.Abs(v-1) > notable {
		return "(!) " + written
	}
	return written
}

func compareBytes(a, b Result) table {
	t := table{
		Columns: []column{{Title: "kB"}, {Title: "A", Right: true}, {Title: "B", Right: true}, {Title: "B ÷ A", Right: true}},
	}
	add := func(title string, total bool, match ByteRow) {
		x, y := a.Bytes.Sum(match), b.Bytes.Sum(match)
		if x == 0 && y == 0 {
			return
		}
		t.Rows = append(t.Rows, row{
			Total: total, Cells: texts(title, kilobytes(x), kilobytes(y), marked(float64(y)/float64(max(x, 1)), times(y, x))),
		})
	}
	both := append(append(ByteTable{}, a.Bytes...), b.Bytes...)
	for _, way := range (Result{Bytes: both}).ways() {
		add(wayName(way)+", all", true, ByteRow{Way: way})
		for _, class := range both.classes() {
			add(wayName(way)+", cloud → edge, class "+class, false, ByteRow{Way: way, Class: class, Direction: Down})
			add(wayName(way)+", edge → cloud, class "+class, false, ByteRow{Way: way, Class: class, Direction: Up})
		}
	}
	return t
}

func compareRuns(a, b Result) table {
	t := table{Columns: []column{{Title: ""}, {Title: "A"}, {Title: "B"}}}
	x, y := a.environmentTable(), b.environmentTable()
	var names []string
	fields := [2]map[string]string{{}, {}}
	for i, env := range []table{x, y} {
		for _, r := range env.Rows {
			name := r.Cells[0].Text
			if fields[0][name] == "" && fields[1][name] == "" {
				names = append(names, name)
			}
			fields[i][name] = r.Cells[1].Text
		}
	}
	for _, name := range names {
		t.Rows = append(t.Rows, row{Cells: texts(name, cmp.Or(fields[0][name], none), cmp.Or(fields[1][name], none))})
	}
	return t
}
