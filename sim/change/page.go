package change

import (
	"bytes"
	"embed"
	"fmt"
	"html"
	"html/template"
	"slices"
)

//go:embed assets/page.tmpl assets/page.css
var assets embed.FS

// Page is the report as one HTML page that needs no other file, no script and no network.
func (r *Report) Page() ([]byte, error) {
	style, err := assets.ReadFile("assets/page.css")
	if err != nil {
		return nil, err
	}
	t, err := template.New("page.tmpl").ParseFS(assets, "assets/page.tmpl")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, r.page(template.CSS(style))); err != nil { //nolint:gosec // the style sheet is embedded
		return nil, fmt.Errorf("render the page of a report: %w", err)
	}
	return b.Bytes(), nil
}

type page struct {
	Style                 template.CSS
	Title, Says           string
	Lead, Ground          string
	Notes, Unfinished     []string
	Accepted              []Accepted
	Groups                []group
	Broken                []string
	Jump                  bool
	Scenarios             []scenarioView
	Repeats               []string
	Words                 string
	Base, Head, Unchanged string
}

// group is lines of one verdict.
type group struct {
	Title string
	Open  bool
	Lines []lineView
}

type lineView struct{ Sign, Subject, Name, Before, After, Delta, Why, Class string }

// scenarioView lays the sides of a scenario beside one another.
type scenarioView struct {
	Name  string
	Sides []trackView
}

type trackView struct {
	Caption string
	Why     string
	Lanes   []laneView
	Marks   []markView
	Ticks   []markView
}

type laneView struct {
	Name   string
	Most   string
	Spans  []spanView
	Points []markView
	Bars   []spanView
}

type spanView struct{ Left, Width, Height, Class, Tip string }

type markView struct {
	Left, Label, Class string
	First              bool // the first violation: where the page jumps to
}

func (r *Report) page(style template.CSS) page {
	t := r.Sum()
	causes := r.causes(t)
	p := page{
		Style: style, Title: "Weir report", Says: r.lead(t, causes), Lead: plain(r.headline(t, causes)),
		Ground: plain(r.ground()), Notes: r.Notes,
		Unfinished: r.Unfinished, Accepted: r.Accepted,
		Unchanged: r.unchanged(t), Repeats: r.repeats(t), Words: plain(words), Base: r.Base.name(), Head: r.Head.name(),
	}
	for _, run := range t.Broken {
		p.Broken = append(p.Broken, fmt.Sprintf("%s, seed %d, %s: %s", run.Scenario, run.Seed, run.File, run.why()))
	}
	for _, run := range t.AlsoBase {
		p.Broken = append(p.Broken, fmt.Sprintf("%s, seed %d, at the base as well: %s", run.Scenario, run.Seed, run.why()))
	}
	for _, v := range []struct {
		verdict Verdict
		title   string
	}{{Worse, "Worse"}, {Gone, "Gone"}, {Better, "Better"}, {New, "New"}, {Unjudged, "Not judged"}, {Same, "Unchanged"}} {
		g := group{Title: v.title, Open: v.verdict != Same && v.verdict != Unjudged}
		for _, l := range r.Lines {
			if l.Verdict == v.verdict {
				before, after := l.sides()
				g.Lines = append(g.Lines, lineView{
					plain(l.sign()), l.Subject, l.Name, before, after, l.Delta(), l.Why, string(l.Verdict),
				})
			}
		}
		if len(g.Lines) > 0 {
			g.Title = fmt.Sprintf("%s: %d", v.title, len(g.Lines))
			p.Groups = append(p.Groups, g)
		}
	}
	p.Scenarios, p.Jump = r.scenarios(t)
	return p
}

// scenarios are all that have a track, the broken ones first.
func (r *Report) scenarios(t Total) (views []scenarioView, jump bool) {
	var names []string
	for _, run := range slices.Concat(t.Broken, t.AlsoBase, r.Runs) {
		if run.Track != nil && !slices.Contains(names, run.Scenario) {
			names = append(names, run.Scenario)
		}
	}
	for _, name := range names {
		v := scenarioView{Name: name}
		runs := slices.DeleteFunc(slices.Clone(r.Runs), func(run Run) bool {
			return run.Scenario != name || run.Track == nil
		})
		last, most := extent(runs)
		for _, run := range beside(runs) {
			at, _, bad := run.Track.first()
			bad = bad && run.Side == SideHead
			v.Sides = append(v.Sides, run.view(last, most, at, bad && !jump))
			jump = jump || bad
		}
		views = append(views, v)
	}
	return views, jump
}

// beside puts the runs of each round beside one another, the base's first.
func beside(runs []Run) (pairs []Run) {
	var sides [2][]Run
	for _, run := range runs {
		i := 0
		if run.Side == SideHead {
			i = 1
		}
		sides[i] = append(sides[i], run)
	}
	for round := range max(len(sides[0]), len(sides[1])) {
		for _, side := range sides {
			if round < len(side) {
				pairs = append(pairs, side[round])
			}
		}
	}
	return pairs
}

func (r Run) view(last float64, tallest map[string]float64, first float64, jump bool) trackView {
	last = max(last, 1e-9)
	left := func(at float64) string { return fmt.Sprintf("%.3f%%", 100*min(max(at/last, 0), 1)) }
	v := trackView{Caption: r.caption()}
	if !r.Passed {
		v.Why = r.why()
	}
	for _, m := range r.Track.Marks {
		v.Marks = append(v.Marks, markView{left(m.At), fmt.Sprintf("%.2f s: %s", m.At, m.Label), "", false})
	}
	for i := range 5 {
		at := last * float64(i) / 4
		v.Ticks = append(v.Ticks, markView{left(at), fmt.Sprintf("%.0f s", at), fmt.Sprintf("tick%d", i), false})
	}
	for _, l := range r.Track.Lanes {
		lv := laneView{Name: l.Name}
		for _, s := range l.Spans {
			st := stateOf(s.State)
			lv.Spans = append(lv.Spans, spanView{
				left(s.From), fmt.Sprintf("%.3f%%", max(100*(s.To-s.From)/last, 0.2)), fmt.Sprintf("%.0f%%", 100*st.height),
				st.class,
				fmt.Sprintf("%.2f to %.2f s: %s %s", s.From, s.To, s.State, s.Tip),
			})
		}
		for _, m := range l.Moments {
			class := ""
			if m.Bad {
				class = "bad"
			}
			here := jump && m.Bad && m.At == first
			jump = jump && !here
			lv.Points = append(lv.Points, markView{left(m.At), fmt.Sprintf("%.2f s: %s", m.At, m.Label), class, here})
		}
		if len(l.Amounts) > 0 {
			most := tallest[l.Name]
			lv.Most = l.most()
			for i, n := range l.Amounts {
				if n > 0 && float64(i) < last {
					lv.Bars = append(lv.Bars, spanView{
						left(float64(i)), fmt.Sprintf("%.3f%%", 100/last), fmt.Sprintf("%.1f%%", max(100*n/most, 4)), "",
						fmt.Sprintf("%d s: %s", i, Format(n, l.Unit)),
					})
				}
			}
		}
		v.Lanes = append(v.Lanes, lv)
	}
	return v
}

// plain takes the marks of Markdown out of text.
func plain(s string) string {
	out := make([]rune, 0, len(s))
	for _, c := range s {
		if c != '`' && c != '*' && c != '\\' {
			out = append(out, c)
		}
	}
	return html.UnescapeString(string(out)) // the template escapes
}
