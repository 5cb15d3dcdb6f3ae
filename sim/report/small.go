package report

import "slices"

// Small is the result without what only plots show: of bytes the sums of each way, class and direction, of faults,
// clients and readiness nothing but what metrics say of them. It is what baselines keep.
func (r Result) Small() Result {
	r = r.clean()
	sums := ByteTable{}
	for _, b := range r.Bytes {
		b.Phase, b.Node = "", ""
		if i := slices.IndexFunc(sums, func(s ByteRow) bool {
			return s.Way == b.Way && s.Class == b.Class && s.Direction == b.Direction
		}); i >= 0 {
			sums[i].Bytes += b.Bytes
			continue
		}
		sums = append(sums, b)
	}
	slices.SortFunc(sums, func(a, b ByteRow) int {
		return slices.Compare([]string{a.Way, a.Class, a.Direction}, []string{b.Way, b.Class, b.Direction})
	})
	r.Bytes, r.Series, r.Readiness, r.Clients, r.Violations, r.Marks, r.Faults = sums, nil, nil, nil, nil, nil, nil
	return r
}
