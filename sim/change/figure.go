package change

import (
	"math"
	"slices"
)

// Kind says how a figure is compared.
type Kind string

// The kinds of figures. Less is better in each.
const (
	Count  Kind = "count" // of lists, of connections: each counts
	Bytes  Kind = "bytes"
	Memory Kind = "memory"
	Time   Kind = "time" // by the clock, or of a processor
)

// Kinds are in the order of what weighs more.
func Kinds() []Kind { return []Kind{Count, Bytes, Memory, Time} }

// Figure is one figure of both sides. Samples stand in rounds: what was measured at about the same time on all sides
// has the same index.
type Figure struct {
	Subject string      `json:"subject"` // a scenario, or what of the card it is of
	Name    string      `json:"name"`
	Unit    string      `json:"unit,omitempty"` // B, s, ratio; empty: a count
	Kind    Kind        `json:"kind"`
	Base    [][]float64 `json:"base"`
	Again   [][]float64 `json:"again,omitempty"` // the base once more, beside itself: what it differs by is noise
	Head    [][]float64 `json:"head"`
	Repeat  string      `json:"repeat,omitempty"` // the command that measures it again
}

// Key names a figure in bands and in the history.
func (f Figure) Key() string { return f.Subject + ": " + f.Name }

// flat are the finite samples of rounds.
func flat(rounds ...[][]float64) (all []float64) {
	for _, r := range rounds {
		for _, samples := range r {
			for _, v := range samples {
				if !math.IsNaN(v) && !math.IsInf(v, 0) {
					all = append(all, v)
				}
			}
		}
	}
	return all
}

// finite leaves out what JSON cannot hold.
func finite(rounds [][]float64) [][]float64 {
	out := make([][]float64, 0, len(rounds))
	for i := range rounds {
		out = append(out, flat(rounds[i:i+1]))
	}
	return out
}

// median of values; NaN without any.
func median(values []float64) float64 { return quantile(values, 0.5) }

// quantile of values, between two of them in proportion.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	low := int(math.Floor(at))
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (sorted[high]-sorted[low])*(at-float64(low))
}
