package parts

import (
	"strconv"
	"strings"
)

// Metrics maps series as they are written, `name` or `name{label="value"}`, to their values.
type Metrics map[string]float64

// Sum adds up all series of a metric whose labels contain every given `label="value"`.
func (m Metrics) Sum(name string, labels ...string) float64 {
	var sum float64
series:
	for key, value := range m {
		if key != name && !strings.HasPrefix(key, name+"{") {
			continue
		}
		for _, l := range labels {
			if !strings.Contains(key, l) {
				continue series
			}
		}
		sum += value
	}
	return sum
}

// Count is how many series a metric has.
func (m Metrics) Count(name string) (n int) {
	for key := range m {
		if key == name || strings.HasPrefix(key, name+"{") {
			n++
		}
	}
	return n
}

// ParseMetrics reads the text format. Lines that are not a series and a value are passed over.
func ParseMetrics(text string) Metrics {
	m := Metrics{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		if i < 0 {
			continue
		}
		if v, err := strconv.ParseFloat(line[i+1:], 64); err == nil {
			m[line[:i]] = v
		}
	}
	return m
}
