package report_test

import (
	"math"
	"testing"

	"github.com/weir-edge/weir/sim/report"
)

func TestUnits(t *testing.T) {
	for _, tc := range []struct {
		unit report.Unit
		v    float64
		want string
	}{
		{report.UnitBytes, 0, "0 B"},
		{report.UnitBytes, 999, "999 B"},
		{report.UnitBytes, 999.6, "1 kB"},
		{report.UnitBytes, 61_234_567, "61.2 MB"},
		{report.UnitBytes, 6_320_000, "6.32 MB"},
		{report.UnitBytes, 999_600, "1 MB"},
		{report.UnitBytes, -2_500, "-2.5 kB"},
		{report.UnitBytes, 1e19, "10,000 PB"},
		{report.UnitBits, 8e6, "8 Mbit/s"},
		{report.UnitBits, 256e3, "256 kbit/s"},
		{report.UnitRatio, 1.008, "1.008"},
		{report.UnitRatio, 19.84, "19.8"},
		{report.UnitRatio, 123.4, "123"},
		{report.UnitRatio, 1e300, "1e+300"},
		{report.UnitCount, 1e300, "1e+300"},
		{report.UnitShare, 0.0123, "1.23 %"},
		{report.UnitSeconds, 0, "0 s"},
		{report.UnitSeconds, 0.0032, "3.2 ms"},
		{report.UnitSeconds, 0.1, "0.1 s"},
		{report.UnitSeconds, 1.874, "1.87 s"},
		{report.UnitSeconds, 108.4, "108 s"},
		{report.UnitSeconds, 725, "12 min 5 s"},
		{report.UnitSeconds, 7260, "2 h 1 min"},
		{report.UnitCount, 1234567, "1,234,567"},
		{report.UnitCount, -1234, "-1,234"},
		{report.UnitCount, 0.5, "0.5"},
		{report.UnitCount, math.NaN(), "–"},
		{report.UnitBytes, math.Inf(1), "–"},
	} {
		if got := tc.unit.Format(tc.v); got != tc.want {
			t.Errorf("%q.Format(%v) = %q, want %q", tc.unit, tc.v, got, tc.want)
		}
	}
}

func TestSum(t *testing.T) {
	table := report.ByteTable{
		{Way: "weir", Class: "pool", Direction: "down", Phase: "start", Node: "a", Bytes: 1},
		{Way: "weir", Class: "pool", Direction: "up", Phase: "churn", Node: "b", Bytes: 10},
		{Way: "stock", Class: "node", Direction: "down", Phase: "churn", Node: "b", Bytes: 100},
	}
	for _, tc := range []struct {
		match report.ByteRow
		want  int64
	}{
		{report.ByteRow{}, 111},
		{report.ByteRow{Way: "weir"}, 11},
		{report.ByteRow{Class: "pool", Direction: "up"}, 10},
		{report.ByteRow{Node: "b", Phase: "churn"}, 110},
		{report.ByteRow{Way: "none"}, 0},
	} {
		if got := table.Sum(tc.match); got != tc.want {
			t.Errorf("Sum(%+v) = %d, want %d", tc.match, got, tc.want)
		}
	}
}
