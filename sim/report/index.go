package report

import (
	"cmp"
	"fmt"
	"html/template"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Entry is one scenario of an index page.
type Entry struct {
	Dir    string // the folder of its report, relative to that of the index page
	Result Result
}

// index is what index.html shows.
type index struct {
	Title, Lead, Units string
	Style              template.CSS
	Verdict            cell
	Failures           []failure
	Scenarios          table
}

// failure says why a scenario failed.
type failure struct{ Text, Link, Why string }

// Index renders the page above several scenarios, in the given order but for the failed ones, which come first.
func Index(entries []Entry) ([]byte, error) {
	x := newIndex(entries)
	var err error
	if x.Style, err = styles("assets/plot.css", "assets/page.css"); err != nil {
		return nil, err
	}
	return render("index.tmpl", x)
}

// IndexSummary is the same as Markdown.
func IndexSummary(entries []Entry) string {
	x := newIndex(entries)
	var b strings.Builder
	b.WriteString("# " + x.Verdict.Sign() + " " + mdText(x.Title) + ": " + mdText(x.Lead) + "\n\n")
	for _, f := range x.Failures {
		b.WriteString("- [" + mdText(f.Text) + "](" + mdLink(f.Link) + "): " + mdText(f.Why) + "\n")
	}
	if len(x.Failures) > 0 {
		b.WriteByte('\n')
	}
	x.Scenarios.markdown(&b)
	b.WriteString(mdText(x.Units) + "\n")
	return b.String()
}

// mdLink is the address of a scenario's summary for that of its page, safe within parentheses.
func mdLink(page string) string {
	return strings.NewReplacer("(", "%28", ")", "%29").Replace(strings.TrimSuffix(page, pageFile) + summaryFile)
}

func newIndex(entries []Entry) index {
	entries = slices.Clone(entries)
	var failures []failure
	for i := range entries {
		entries[i].Result = entries[i].Result.clean()
		if r := entries[i].Result; !r.Passed {
			failures = append(failures, failure{r.Scenario, linkTo(entries[i].Dir), r.grounds()})
		}
	}
	slices.SortStableFunc(entries, func(a, b Entry) int {
		return cmp.Compare(rank(a.Result.Passed), rank(b.Result.Passed))
	})
	failed := len(failures)
	lead := "No scenario was run."
	switch {
	case failed > 0:
		lead = fmt.Sprintf("%d of %s failed.", failed, plural(len(entries), "scenario", "scenarios"))
	case len(entries) == 1:
		lead = "The one scenario passed."
	case len(entries) > 1:
		lead = fmt.Sprintf("All %d scenarios passed.", len(entries))
	}
	return index{
		Title:     "Weir scenarios",
		Lead:      lead,
		Units:     unitsNote,
		Verdict:   verdictBadge(failed == 0 && len(entries) > 0),
		Failures:  failures,
		Scenarios: indexTable(entries),
	}
}

// rank puts what failed before what passed.
func rank(passed bool) int {
	if passed {
		return 1
	}
	return 0
}

// indexColumns are the metrics shown of each scenario; one that no scenario has is left out.
func indexColumns() map[string]string {
	return map[string]string{
		"pool_bytes_ratio":      "pool ÷ reference",
		"total_bytes_ratio":     "all ÷ reference",
		"stock_bytes_ratio":     "stock ÷ reference",
		"cache_ready_seconds":   "cache ready",
		"client_relists":        "re-lists",
		"watch_violations":      "violations",
		"failover_seconds_p99":  "failover p99",
		"failover_cloud_bytes":  "fault bytes",
		"failovers":             "failovers",
		"recovery_seconds_max":  "recovery",
		"new_cloud_connections": "new conns",
		"stale_seconds_max":     "stale",
		"resync_bytes_share":    "resync",
	}
}

func indexTable(entries []Entry) table {
	outcomes := make([]Outcome, 0, len(entries))
	for _, e := range entries {
		outcomes = append(outcomes, e.Result.Outcome)
	}
	titles := indexColumns()
	metrics := slices.DeleteFunc(reported(outcomes...), func(m Metric) bool { return titles[m.Name] == "" })
	t := table{Columns: []column{{Title: ""}, {Title: "scenario"}, {Title: "held", Right: true}}}
	for _, m := range metrics {
		t.Columns = append(t.Columns, column{Title: titles[m.Name], Right: true})
	}
	t.Columns = append(t.Columns, column{Title: "took", Right: true}, column{Title: "runtime"},
		column{Title: "seed", Right: true})
	for _, e := range entries {
		r := e.Result
		held := len(r.Expectations)
		for _, x := range r.Expectations {
			if !x.Passed {
				held--
			}
		}
		cells := []cell{
			verdictBadge(r.Passed),
			{Text: r.Scenario, Link: linkTo(e.Dir)},
			text(fmt.Sprintf("%d / %d", held, len(r.Expectations))),
		}
		for _, m := range metrics {
			v, ok := r.metric(m.Name, m.Unit)
			if !ok {
				v = none
			}
			cells = append(cells, text(v))
		}
		took := none
		if r.Seconds > 0 {
			took = seconds(r.Seconds)
		}
		t.Rows = append(t.Rows, row{Cells: append(cells, texts(took, r.Runtime, fmt.Sprint(r.Seed))...)})
	}
	return t
}

// linkTo returns the relative address of the report in dir.
func linkTo(dir string) string {
	p := path.Join(filepath.ToSlash(dir), pageFile)
	return (&url.URL{Path: p}).String()
}
