package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// expectationTable has the failed ones first. An expectation by the name of a metric is explained if asked for.
func (r Result) expectationTable(explained bool) table {
	t := table{
		Columns: []column{{Title: ""}, {Title: "expectation"}, {Title: "got", Right: true}, {Title: "want", Right: true}},
	}
	docs := map[string]string{}
	if explained {
		t.Columns = append(t.Columns, column{Title: "", Doc: true})
		for _, m := range Metrics() {
			docs[m.Name] = m.Doc
		}
	}
	ordered := slices.Clone(r.Expectations)
	slices.SortStableFunc(ordered, func(a, b Expectation) int { return cmp.Compare(rank(a.Passed), rank(b.Passed)) })
	for _, e := range ordered {
		cells := []cell{verdictCell(e.Passed), code(e.Name), text(e.Got), text(e.Want)}
		if explained {
			cells = append(cells, text(docs[e.Name]))
		}
		t.Rows = append(t.Rows, row{Cells: cells})
	}
	return t
}

// comparisonTable lays the ways side by side: the one table of a summary.
func (r Result) comparisonTable() table {
	ways := r.ways()
	t := table{Columns: []column{{Title: ""}}}
	for _, w := range ways {
		t.Columns = append(t.Columns, column{Title: wayName(w), Right: true})
	}
	add := func(total bool, title string, value func(way string) cell) {
		cells := []cell{text(title)}
		for _, w := range ways {
			cells = append(cells, value(w))
		}
		t.Rows = append(t.Rows, row{Cells: cells, Total: total})
	}
	if len(r.Bytes) > 0 {
		reference := r.Bytes.Sum(ByteRow{Way: WayReference})
		sum := func(match ByteRow) func(string) cell {
			return func(way string) cell {
				match.Way = way
				return text(kilobytes(r.Bytes.Sum(match)))
			}
		}
		add(true, "all bytes over the uplink, kB", sum(ByteRow{}))
		if reference > 0 {
			add(true, "÷ reference", func(w string) cell { return text(times(r.Bytes.Sum(ByteRow{Way: w}), reference)) })
		}
		for _, p := range r.Bytes.pools() {
			add(false, "pool "+p+", kB", sum(ByteRow{Pool: p}))
			if of := r.Bytes.Sum(ByteRow{Way: WayReference, Pool: p}); of > 0 {
				add(false, "pool "+p+" ÷ its reference", func(w string) cell {
					return text(times(r.Bytes.Sum(ByteRow{Way: w, Pool: p}), of))
				})
			}
		}
		for _, c := range r.Bytes.classes() {
			add(false, "cloud → edge, class "+c+", kB", sum(ByteRow{Class: c, Direction: Down}))
		}
		for _, c := range r.Bytes.classes() {
			add(false, "edge → cloud, class "+c+", kB", sum(ByteRow{Class: c, Direction: Up}))
		}
		for _, p := range r.Bytes.phases() {
			add(false, "in phase "+p+", kB", sum(ByteRow{Phase: p}))
		}
	}
	if len(r.Readiness) > 0 {
		add(false, "pool cache ready, s", func(w string) cell { return r.lastReady(w, true) })
		add(false, "last node synced, s", func(w string) cell { return r.lastReady(w, false) })
	}
	if len(r.Clients) > 0 {
		total := func(get func(Client) int64, show func(int64) cell) func(string) cell {
			return func(way string) cell {
				var n int64
				found := false
				for _, c := range r.Clients {
					if c.Way == way {
						n, found = n+get(c), true
					}
				}
				if !found {
					return text(none)
				}
				return show(n)
			}
		}
		plain := func(n int64) cell { return text(count(n)) }
		add(false, "changes delivered to clients", total(Client.Events, plain))
		add(false, "re-lists by clients", total(func(c Client) int64 { return c.Relists }, plain))
		add(false, "watch violations", total(func(c Client) int64 { return c.Violations }, r.violationCell))
	}
	return t
}

// lastReady returns when the last cache of a way was synced: those of the pool as a whole, or those of nodes.
func (r Result) lastReady(way string, pool bool) cell {
	last, found := 0.0, false
	for _, x := range r.Readiness {
		if x.Way != way || (x.Node == "") != pool {
			continue
		}
		if !x.Synced {
			return cell{Text: "never", Mark: bad}
		}
		last, found = max(last, x.Seconds), true
	}
	if !found {
		return text(none)
	}
	return text(fmt.Sprintf("%.2f", last))
}

// byteTables are the bytes by phase and by node.
func (r Result) byteTables() []table {
	ways := r.ways()
	columns := []column{{Title: ""}}
	for _, w := range ways {
		columns = append(columns,
			column{Title: wayName(w) + ", cloud → edge", Right: true}, column{Title: wayName(w) + ", edge → cloud", Right: true})
	}
	build := func(caption, head string, keys []string, match func(string) ByteRow) table {
		t := table{Caption: caption, Columns: slices.Clone(columns)}
		t.Columns[0].Title = head
		for _, k := range append(keys, "") {
			r1 := row{Cells: []cell{text(k)}, Total: k == ""}
			if k == "" {
				r1.Cells[0].Text = "all"
			}
			for _, w := range ways {
				for _, d := range []string{Down, Up} {
					m := ByteRow{}
					if k != "" {
						m = match(k)
					}
					m.Way, m.Direction = w, d
					r1.Cells = append(r1.Cells, text(kilobytes(r.Bytes.Sum(m))))
				}
			}
			t.Rows = append(t.Rows, r1)
		}
		return t
	}
	var tables []table
	if phases := r.Bytes.phases(); len(phases) > 0 {
		tables = append(tables,
			build("Bytes by phase, kB", "phase", phases, func(p string) ByteRow { return ByteRow{Phase: p} }))
	}
	if pools := r.Bytes.pools(); len(pools) > 0 {
		tables = append(tables, build("Bytes by pool, kB", "pool", pools, func(p string) ByteRow { return ByteRow{Pool: p} }))
	}
	if nodes := r.Bytes.nodes(); len(nodes) > 0 {
		tables = append(tables, build("Bytes by node, kB", "node", nodes, func(n string) ByteRow { return ByteRow{Node: n} }))
	}
	return tables
}

func (r Result) readinessTable() table {
	t := table{
		Caption: "Cache readiness, seconds since the way began",
		Columns: []column{{Title: "way"}, {Title: "node"}, {Title: "resource"}, {Title: "synced after, s", Right: true}},
	}
	ordered := slices.Clone(r.Readiness)
	slices.SortStableFunc(ordered, func(a, b Readiness) int {
		return cmp.Or(strings.Compare(a.Way, b.Way), compareNames(a.Pool, b.Pool), compareNames(a.Node, b.Node),
			compareNames(a.Resource, b.Resource))
	})
	for _, x := range ordered {
		at := cell{Text: "never", Mark: bad}
		if x.Synced {
			at = text(fmt.Sprintf("%.2f", x.Seconds))
		}
		t.Rows = append(t.Rows, row{
			Cells: []cell{text(wayName(x.Way)), text(cmp.Or(x.Node, strings.TrimSpace("pool "+x.Pool))), text(x.Resource), at},
		})
	}
	return t
}

func (r Result) clientTable() table {
	t := table{
		Caption: "Every client", Columns: []column{{Title: "way"}, {Title: "client"}, {Title: "node"}, {Title: "resource"}},
	}
	for _, title := range []string{"adds", "updates", "deletes", "bookmarks", "re-lists", "violations"} {
		t.Columns = append(t.Columns, column{Title: title, Right: true})
	}
	ordered := slices.Clone(r.Clients)
	slices.SortStableFunc(ordered, func(a, b Client) int {
		return cmp.Or(strings.Compare(a.Way, b.Way), compareNames(a.Name, b.Name), compareNames(a.Resource, b.Resource),
			compareNames(a.Node, b.Node))
	})
	for _, c := range ordered {
		cells := texts(wayName(c.Way), c.Name, c.Node, c.Resource,
			count(c.Adds), count(c.Updates), count(c.Deletes), count(c.Bookmarks), count(c.Relists))
		t.Rows = append(t.Rows, row{Cells: append(cells, r.violationCell(c.Violations))})
	}
	return t
}

// memoryTable has one row per kind of process and moment: the largest of its readings.
func (r Result) memoryTable() table {
	t := table{
		Columns: []column{
			{Title: "process"}, {Title: "when"}, {Title: "processes", Right: true}, {Title: "RssAnon, MB", Right: true},
			{Title: "VmRSS, MB", Right: true},
		},
		Note: "The largest reading of each kind. RssAnon is what a process owns; VmRSS also counts file pages of its " +
			"binary, which come and go.",
	}
	type key struct{ process, when string }
	var keys []key
	largest := map[key]Memory{}
	readings := map[key]int64{}
	for _, m := range r.Memory {
		k := key{m.Process, m.When}
		if _, ok := largest[k]; !ok {
			keys = append(keys, k)
		}
		l := largest[k]
		l.RSSAnonBytes, l.RSSBytes = max(l.RSSAnonBytes, m.RSSAnonBytes), max(l.RSSBytes, m.RSSBytes)
		largest[k] = l
		readings[k]++
	}
	for _, k := range keys {
		l := largest[k]
		t.Rows = append(t.Rows, row{
			Cells: texts(k.process, k.when, count(readings[k]), megabytes(l.RSSAnonBytes), megabytes(l.RSSBytes)),
		})
	}
	return t
}

// causeLimit bounds the causes that are shown.
const causeLimit = 30

// causeTable has one row per kind of request of a quiet node, what costs most first.
func (r Result) causeTable() table {
	t := causesOf(r.Causes, "what a node asks for", "B/s", 1)
	t.Note = "Per node: requests an hour, and bytes a second both ways, with the frames of HTTP/2. TLS is what was " +
		"counted on the uplink beside them; its requests are connections that began. A watch costs what it brings, " +
		"bookmarks among it, and begins again now and then."
	return t
}

// replacingTable has the same of all nodes while their pods are replaced.
func (r Result) replacingTable() table {
	t := causesOf(r.Replacing, "what all nodes ask for", "kB", 1000)
	t.Note = "All nodes of the pool together, until the last pod is replaced."
	return t
}

func causesOf(all []Cause, title, unit string, scale float64) table {
	t := table{Columns: []column{{Title: title}}}
	ways := map[string]int{}
	rows := map[string][]Cause{}
	for _, c := range all {
		if _, ok := ways[c.Way]; !ok {
			ways[c.Way] = len(ways)
			t.Columns = append(t.Columns, column{Title: wayName(c.Way) + ": requests", Right: true},
				column{Title: unit, Right: true})
		}
	}
	most := map[string]float64{}
	for _, c := range all {
		if rows[c.What] == nil {
			rows[c.What] = make([]Cause, len(ways))
		}
		rows[c.What][ways[c.Way]] = c
		most[c.What] = max(most[c.What], c.Bytes)
	}
	others, sum := make([]Cause, len(ways)), make([]Cause, len(ways))
	add := func(what string, causes []Cause, total bool) {
		x := row{Cells: texts(what), Total: total}
		for _, c := range causes {
			x.Cells = append(x.Cells, texts(fmt.Sprintf("%.1f", c.Requests), fmt.Sprintf("%.1f", c.Bytes/scale))...)
		}
		t.Rows = append(t.Rows, x)
	}
	into := func(all, causes []Cause) {
		for i, c := range causes {
			all[i].Requests += c.Requests
			all[i].Bytes += c.Bytes
		}
	}
	for i, what := range slices.SortedFunc(maps.Keys(rows), func(a, b string) int {
		return cmp.Or(cmp.Compare(most[b], most[a]), cmp.Compare(a, b))
	}) {
		into(sum, rows[what])
		if i >= causeLimit {
			into(others, rows[what])
			continue
		}
		add(what, rows[what], false)
	}
	if len(rows) > causeLimit {
		add("all others", others, false)
	}
	if len(rows) > 0 {
		add("all", sum, true)
	}
	return t
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f", float64(n)/1e6) }

// violationLimit bounds the violations that are shown; the count of all is in the metrics.
const violationLimit = 50

func (r Result) violationTable() table {
	t := table{
		Columns: []column{
			{Title: "at", Right: true}, {Title: "way"}, {Title: "node"}, {Title: "client"}, {Title: "rule"},
			{Title: "what was seen"},
		},
	}
	for _, v := range r.Violations[:min(len(r.Violations), violationLimit)] {
		t.Rows = append(t.Rows, row{
			Cells: texts(fmt.Sprintf("%.2f s", v.Seconds), wayName(v.Way), v.Node, v.Client, v.Rule, v.Detail),
		})
	}
	total := max(len(r.Violations), int(min(finite(r.Metrics["watch_violations"]), 1e9)))
	if total > len(t.Rows) && len(t.Rows) > 0 {
		t.Note = fmt.Sprintf("The first %s of %s; the timeline has all.", count(int64(len(t.Rows))), count(int64(total)))
	}
	return t
}

func (r Result) metricTable() table {
	t := table{Columns: []column{{Title: "metric"}, {Title: "value", Right: true}, {Title: "meaning", Doc: true}}}
	for _, m := range reported(r.Outcome) {
		t.Rows = append(t.Rows, row{Cells: []cell{code(m.Name), text(m.Unit.Format(r.Metrics[m.Name])), text(m.Doc)}})
	}
	return t
}

// environmentTable says what ran, where and when.
func (r Result) environmentTable() table {
	t := table{Columns: []column{{Title: "run"}, {Title: ""}}}
	add := func(name, value string) {
		if value != "" {
			t.Rows = append(t.Rows, row{Cells: texts(name, value)})
		}
	}
	for _, f := range r.Topology {
		add(f.Name, f.Unit.Format(f.Value))
	}
	add("runtime", r.Runtime)
	add("seed", fmt.Sprint(r.Seed))
	add("started", r.startedText())
	if r.Seconds > 0 {
		add("took", seconds(r.Seconds))
	}
	add("revision", r.Revision)
	for _, name := range slices.SortedFunc(maps.Keys(r.Versions), compareNames) {
		add(name, r.Versions[name])
	}
	add("machine", r.Machine.String())
	return t
}
