package bench

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestPhase: what a round took is what was taken in it, whatever was taken between rounds, and nodes that nobody hears
// are no steady phase.
func TestPhase(t *testing.T) {
	at := func(second int, cpu float64, beats int64, requests float64) reading {
		return reading{at: time.Unix(int64(second), 0), cpu: cpu, beats: beats, requests: requests}
	}
	p := phase{{at(0, 1, 0, 5), at(10, 2, 1000, 6)}, {at(11, 7, 1100, 16), at(21, 10, 2100, 19)}}
	if got := p.each(perBeat); !slices.Equal(got, []float64{0.001, 0.003}) {
		t.Errorf("%v s a heartbeat", got)
	}
	if s := p.sum(); s.cpu != 4 || s.beats != 2000 || s.requests != 4 || p.seconds() != 20 {
		t.Errorf("%+v in %v s", s, p.seconds())
	}
	if err := p.heard(3000); err != nil { // 100 a second: each within 30 s
		t.Error(err)
	}
	if err := p.heard(3001); err == nil || !strings.Contains(err.Error(), "--manager-nodes") {
		t.Errorf("some are heard too seldom: %v", err)
	}
}
