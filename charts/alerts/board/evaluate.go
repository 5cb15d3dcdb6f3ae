package main

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
)

const (
	steps    = 240 // of a line
	interval = "10s"
)

var engine = promql.NewEngine(promql.EngineOpts{
	Logger: quiet, MaxSamples: 50_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Second,
})

// evaluator asks what a dashboard asks.
type evaluator struct {
	store    *store
	recorded map[string]string // expressions of rules that record
}

// line is one of a panel. Values of which there are none are NaN.
type line struct {
	name   string
	values []float64 // one a step
}

// lines are those of a target, by name.
func (e *evaluator) lines(ctx context.Context, expr, legend string) (all []line, err error) {
	expr = strings.NewReplacer("$__rate_interval", interval, "$instance", ".+").Replace(expr)
	for name, is := range e.recorded {
		expr = strings.ReplaceAll(expr, name, is)
	}
	step := e.store.last.Sub(e.store.first) / steps
	q, err := engine.NewRangeQuery(ctx, e.store.db, nil, expr, e.store.first, e.store.last, step)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", expr, err)
	}
	defer q.Close()
	found, err := q.Exec(ctx).Matrix()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", expr, err)
	}
	for _, s := range found {
		l := line{name: named(legend, s.Metric), values: make([]float64, steps+1)}
		for i := range l.values {
			l.values[i] = math.NaN()
		}
		for _, p := range s.Floats {
			if i := int((p.T - e.store.first.UnixMilli()) / step.Milliseconds()); i >= 0 && i < len(l.values) {
				l.values[i] = p.F
			}
		}
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b line) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

var label = regexp.MustCompile(`{{ *(\w+) *}}`)

// named is a legend with its labels.
func named(legend string, of labels.Labels) string {
	return label.ReplaceAllStringFunc(legend, func(s string) string { return of.Get(label.FindStringSubmatch(s)[1]) })
}
