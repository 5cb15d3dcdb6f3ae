package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"
)

// Figure is one measured figure: what each round gave, and how it is judged.
type Figure struct {
	Name    string    `json:"name"`
	Unit    string    `json:"unit"` // one word, as benchstat wants it
	Samples []float64 `json:"samples"`
	Limit   *Limit    `json:"limit,omitempty"` // nil: shown for comparison
	Detail  string    `json:"detail,omitempty"`
}

// Limit is what a figure's median is held to.
type Limit struct {
	Least  bool    `json:"least,omitempty"` // at least Value; else at most
	Value  float64 `json:"value"`
	Source string  `json:"source"` // who says so, and where
}

// AtMost is a limit that a figure must not exceed.
func AtMost(v float64, source string) *Limit { return &Limit{Value: v, Source: source} }

// AtLeast is one that it must reach.
func AtLeast(v float64, source string) *Limit { return &Limit{Least: true, Value: v, Source: source} }

func (l *Limit) String() string {
	if l == nil {
		return "for comparison"
	}
	if l.Least {
		return fmt.Sprintf("≥ %.4g", l.Value)
	}
	return fmt.Sprintf("≤ %.4g", l.Value)
}

// allows reports whether a value is within the limit. What is not a number never is.
func (l *Limit) allows(v float64) bool {
	switch {
	case l == nil:
		return true
	case l.Least:
		return v >= l.Value
	}
	return v <= l.Value
}

// confidence of an interval around a median that is shown, if there are rounds enough for it.
const confidence = 0.95

// Summary is the median of the rounds with its confidence interval. With less rounds than 95 % of confidence need,
// which are 6, the interval is from the least to the most, and its confidence less.
func (f Figure) Summary() benchmath.Summary {
	if len(f.Samples) == 0 {
		return benchmath.Summary{Center: math.NaN(), Lo: math.NaN(), Hi: math.NaN()}
	}
	n := len(f.Samples)
	level := min(confidence, 1-math.Pow(2, float64(1-n))) // that the median lies between the least and the most of n
	sample := benchmath.NewSample(slices.Clone(f.Samples), &benchmath.DefaultThresholds)
	s := benchmath.AssumeNothing.Summary(sample, level)
	if math.IsInf(s.Lo, 0) || math.IsInf(s.Hi, 0) { // a single round
		s.Lo, s.Hi = sample.Values[0], sample.Values[n-1]
	}
	return s
}

// Got is the median.
func (f Figure) Got() float64 { return f.Summary().Center }

// Met reports whether the median is within the limit, if there is one. A figure without a sample meets none.
func (f Figure) Met() bool { return f.Limit.allows(f.Got()) }

// spread is how far the interval is from the median, for a person.
func (f Figure) spread() string {
	s := f.Summary()
	switch len(f.Samples) {
	case 0:
		return "not measured"
	case 1:
		return "1 round"
	}
	return fmt.Sprintf("%.3g to %.3g, %d rounds", s.Lo, s.Hi, len(f.Samples))
}

func (f Figure) String() string {
	text := fmt.Sprintf("%s: %.3g %s (%s; %s", f.Name, f.Got(), f.Unit, f.Limit, f.spread())
	if f.Detail != "" {
		text += "; " + f.Detail
	}
	return text + ")"
}

// benchmark is the figure's name in the format of Go benchmarks. A minus and a number at its end would be a number of
// CPUs.
func (f Figure) benchmark(part string) string {
	var b strings.Builder
	gap := false
	for _, r := range strings.NewReplacer("÷", "over", "×", "x", "/", " per ").Replace(f.Name) {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			if gap && b.Len() > 0 {
				b.WriteByte('_')
			}
			gap = false
			b.WriteRune(r)
			continue
		}
		gap = true
	}
	return strings.ToUpper(part[:1]) + part[1:] + "/" + b.String()
}

// MissedError is of the limits that a report misses.
type MissedError struct {
	Judged  int
	Figures []Figure
}

func (m *MissedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d targets missed:", len(m.Figures), m.Judged)
	for _, f := range m.Figures {
		fmt.Fprintf(&b, "\n  %s: %.4g %s, wanted %s (%s)", f.Name, f.Got(), f.Unit, f.Limit, f.Limit.Source)
	}
	return b.String()
}
