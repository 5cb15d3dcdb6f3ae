package report

import (
	"slices"
	"testing"
)

// TestCauses: what costs most comes first, each way has its columns, and the last row is the sum.
func TestCauses(t *testing.T) {
	all := []Cause{
		{Way: "stock", What: "list nodes", Requests: 2, Bytes: 1500},
		{Way: "stock", What: "watch pods", Requests: 1, Bytes: 4000},
		{Way: "weir", What: "list nodes", Requests: 3, Bytes: 5000},
	}
	r := Result{Causes: all, Replacing: all}
	for name, c := range map[string]struct {
		got  table
		want [][]string
	}{
		"a second": {r.causeTable(), [][]string{
			{"list nodes", "2.0", "1500.0", "3.0", "5000.0"}, {"watch pods", "1.0", "4000.0", "0.0", "0.0"},
			{"all", "3.0", "5500.0", "3.0", "5000.0"},
		}},
		"in all": {r.replacingTable(), [][]string{
			{"list nodes", "2.0", "1.5", "3.0", "5.0"}, {"watch pods", "1.0", "4.0", "0.0", "0.0"},
			{"all", "3.0", "5.5", "3.0", "5.0"},
		}},
	} {
		if len(c.got.Rows) != len(c.want) {
			t.Fatalf("%s: %d rows, want %d", name, len(c.got.Rows), len(c.want))
		}
		for i, x := range c.got.Rows {
			var cells []string
			for _, cell := range x.Cells {
				cells = append(cells, cell.Text)
			}
			if !slices.Equal(cells, c.want[i]) {
				t.Errorf("%s: row %d is %v, want %v", name, i, cells, c.want[i])
			}
		}
	}
}
