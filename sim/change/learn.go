package change

import "math"

// Learn tells by what share figures differ from themselves, from reports in which base and head are the same: the most
// that medians were apart. Of times nothing is learned: the machine's noise is measured with them, each time. Nor of
// counts: a share of one or two would hide one more.
func Learn(reports ...*Report) Bands {
	bands := Bands{}
	for _, r := range reports {
		for _, f := range r.Figures {
			before, after := median(flat(f.Base, f.Again)), median(flat(f.Head))
			if f.Kind == Time || f.Kind == Count || math.IsNaN(before) || math.IsNaN(after) || before == 0 {
				continue
			}
			bands[f.Key()] = max(bands[f.Key()], math.Abs(after/before-1))
		}
	}
	return bands
}
