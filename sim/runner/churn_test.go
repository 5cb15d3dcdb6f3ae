package runner

import (
	"testing"

	"github.com/weir-edge/weir/sim/report"
)

// TestPerVersion: bytes of another way, class, direction or phase are no part of what a version cost.
func TestPerVersion(t *testing.T) {
	row := func(way, class, direction, phase string) report.ByteRow {
		return report.ByteRow{Way: way, Class: class, Direction: direction, Phase: phase, Bytes: 1000}
	}
	bytes := report.ByteTable{
		row(report.WayWeir, "pool", report.Down, phaseChurn), row(report.WayWeir, "pool", report.Down, phaseChurn),
		row(report.WayReference, "pool", report.Down, phaseChurn), row(report.WayWeir, "node", report.Down, phaseChurn),
		row(report.WayWeir, "pool", report.Up, phaseChurn), row(report.WayWeir, "pool", report.Down, phaseAlone),
	}
	if got := perVersion(bytes, phaseChurn, 5, 2); got != 200 {
		t.Errorf("%v bytes, want 200", got)
	}
}
