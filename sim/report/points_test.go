package report

import (
	"slices"
	"testing"
)

// TestPoints: what a sentence names is a metric.
func TestPoints(t *testing.T) {
	for _, text := range points() {
		for _, name := range inBraces.FindAllStringSubmatch(text, -1) {
			if !slices.ContainsFunc(Metrics(), func(m Metric) bool { return m.Name == name[1] }) {
				t.Errorf("%q names %s, which is no metric", text, name[1])
			}
		}
	}
}
