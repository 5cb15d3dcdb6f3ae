package report

import "strings"

// Summary renders r as Markdown, with the verdict first.
func Summary(r Result) string {
	r = r.clean()
	var b strings.Builder
	sign := bad.sign()
	if r.Passed {
		sign = good.sign()
	}
	b.WriteString("# " + sign + " " + mdText(r.Scenario) + ": " + r.verdict() + "\n\n")
	for i, s := range r.lead() {
		if s = mdText(s); i == 0 {
			b.WriteString("**" + s + "**")
		} else {
			b.WriteString(" " + s)
		}
	}
	b.WriteString("\n\n")
	if r.Description != "" {
		b.WriteString(mdText(r.Description) + "\n\n")
	}
	if r.hasSeries() {
		b.WriteString("![" + mdText(bytesTitle(r)) + "](" + bytesFile + ")\n\n")
	}

	section := func(title string, t table) {
		if len(t.Rows) == 0 {
			return
		}
		b.WriteString("## " + title + "\n\n")
		t.markdown(&b)
	}
	title := "Bytes over the uplink"
	if len(r.ways()) > 1 {
		title = "Stock, Weir and the reference"
	}
	section(title, r.comparisonTable())
	section("Expectations", r.expectationTable(false))
	section("Watch violations", r.violationTable())
	section("Leader changes", r.failoverTable())
	section("Faults", r.faultTable())
	section("What a quiet node asks for", r.causeTable())
	section("What nodes ask for while their pods are replaced", r.replacingTable())
	section("Memory", r.memoryTable())
	section("Metrics", r.metricTable())

	b.WriteString("## How to repeat\n\n")
	if r.Repeat != "" {
		b.WriteString(mdBlock("sh", r.Repeat) + "\n")
	}
	r.environmentTable().markdown(&b)
	b.WriteString("Plots, and the tables by phase, node and client: `" + pageFile + "`. " + mdText(unitsNote) + "\n")
	return b.String()
}
