package scenario

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-edge/weir/sim/report"
)

// Expectation states what a metric must be at the end of a run.
type Expectation struct {
	Metric string
	Op     string // <=, >=, <, >, == or !=
	Limit  float64

	limit string // as it was written
}

const notMeasured = "not measured"

// operators by how they are written. signs are what reports show.
var operators = [...]struct {
	op, sign string
	holds    func(got, limit float64) bool
}{
	{"<=", "≤", func(got, limit float64) bool { return got <= limit }},
	{">=", "≥", func(got, limit float64) bool { return got >= limit }},
	{"==", "=", func(got, limit float64) bool { return got == limit }},
	{"!=", "≠", func(got, limit float64) bool { return got != limit }},
	{"<", "<", func(got, limit float64) bool { return got < limit }},
	{">", ">", func(got, limit float64) bool { return got > limit }},
}

// Check tells what the metric is, for a person, and whether the expectation holds. A metric that is missing or is
// not a finite number fails.
func (e Expectation) Check(metrics map[string]float64) (got string, passed bool) {
	v, ok := metrics[e.Metric]
	if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
		return notMeasured, false
	}
	for _, o := range operators {
		if o.op == e.Op {
			passed = o.holds(v, e.Limit)
		}
	}
	got = report.FormatMetric(e.Metric, v)
	if !passed && v != e.Limit && got == report.FormatMetric(e.Metric, e.Limit) {
		got = strconv.FormatFloat(v, 'f', -1, 64) // 1.0204 is not ≤ 1.02, and "1.020" would not show it
	}
	return got, passed
}

// OfTime reports whether e limits a time that passed, or what follows from one: a hub that hears nothing for a second
// opens a connection.
func (e Expectation) OfTime() bool {
	return e.Metric == "new_cloud_connections" ||
		slices.ContainsFunc(report.Metrics(), func(m report.Metric) bool {
			return m.Name == e.Metric && m.Unit == report.UnitSeconds
		})
}

// Want is the other half of what Check returns: "≤ 1.020".
func (e Expectation) Want() string {
	for _, o := range operators {
		if o.op == e.Op {
			return o.sign + " " + report.FormatMetric(e.Metric, e.Limit)
		}
	}
	return e.String()
}

// Report is the line of a report about e.
func (e Expectation) Report(metrics map[string]float64) report.Expectation {
	got, passed := e.Check(metrics)
	return report.Expectation{Name: e.Metric, Passed: passed, Got: got, Want: e.Want()}
}

// String writes e as scenario files do.
func (e Expectation) String() string {
	limit := e.limit
	if limit == "" {
		limit = strconv.FormatFloat(e.Limit, 'f', -1, 64)
	}
	return e.Metric + " " + e.Op + " " + limit
}

// MarshalYAML implements yaml.Marshaler.
func (e Expectation) MarshalYAML() (any, error) { return e.String(), nil }

var (
	expectationPattern = regexp.MustCompile(`^([A-Za-z0-9_.-]+)\s*([^A-Za-z0-9_.\s-]+)\s*(\S.*)$`)
	limitPattern       = regexp.MustCompile(`^([0-9]{1,18}(?:\.[0-9]{1,18})?(?:e[0-9]{1,2})?)\s*([A-Za-z%/]*)$`)
)

const expectationHelp = "a metric, a comparison and a limit, as: pool_bytes_ratio <= 1.02"

// ParseExpectation reads "pool_bytes_ratio <= 1.02".
func ParseExpectation(s string) (Expectation, error) {
	m := expectationPattern.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return Expectation{}, fmt.Errorf("want %s", expectationHelp)
	}
	e := Expectation{Metric: m[1], Op: m[2]}
	unit, err := metricUnit(e.Metric)
	if err != nil {
		return Expectation{}, err
	}
	if err := checkOperator(e.Op); err != nil {
		return Expectation{}, err
	}
	if e.Limit, err = parseLimit(m[3], unit); err != nil {
		return Expectation{}, err
	}
	e.limit = strings.Join(strings.Fields(m[3]), "")
	return e, nil
}

func metricUnit(name string) (report.Unit, error) {
	metrics := report.Metrics()
	names := make([]string, 0, len(metrics))
	for _, m := range metrics {
		if m.Name == name {
			return m.Unit, nil
		}
		names = append(names, m.Name)
	}
	return "", fmt.Errorf("there is no metric %s%s; want one of %s", name, didYouMean(name, names),
		strings.Join(names, ", "))
}

func checkOperator(op string) error {
	var all []string
	for _, o := range operators {
		if o.op == op {
			return nil
		}
		all = append(all, o.op)
	}
	return fmt.Errorf("there is no comparison %s; want one of %s", op, strings.Join(all, " "))
}

// limitUnit is a unit that a limit may have.
type limitUnit struct {
	name string
	size float64
}

// unitsOf returns what may follow a limit of the unit. Units are decimal, as in reports.
func unitsOf(unit report.Unit) []limitUnit {
	switch unit {
	case report.UnitBytes:
		return []limitUnit{{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}}
	case report.UnitSeconds:
		return []limitUnit{{"ms", 1e-3}, {"s", 1}, {"min", 60}}
	case report.UnitShare:
		return []limitUnit{{"%", 1e-2}}
	}
	return nil
}

func parseLimit(s string, unit report.Unit) (float64, error) {
	help := "a number that is not negative"
	units := unitsOf(unit)
	names := make([]string, 0, len(units))
	for _, u := range units {
		names = append(names, u.name)
	}
	if len(names) > 0 {
		help += ", alone or in " + strings.Join(names, ", ")
	} else {
		help += ", without a unit"
	}
	m := limitPattern.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return 0, fmt.Errorf("the limit %s: want %s", s, help)
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, fmt.Errorf("the limit %s: want %s: %w", s, help, err)
	}
	if m[2] == "" {
		return n, nil
	}
	for _, u := range units {
		if u.name == m[2] {
			return n * u.size, nil
		}
	}
	return 0, fmt.Errorf("the limit %s: want %s%s", s, help, didYouMean(m[2], names))
}
