package member

import (
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/contract"
)

// TestFollow: a hub that never accepted a connection has its patience, and is barred; one whose connection broke has a
// moment to accept another, more if this process ran late, and none if nobody listens any more.
func TestFollow(t *testing.T) {
	began := time.Unix(1000, 0)
	at := began.Add
	for name, c := range map[string]struct {
		ends []Pulse
		want []bool
		bars bool
	}{
		"never there": {
			ends: []Pulse{{Now: at(time.Second)}, {Now: at(2 * time.Second), Refused: true}, {Now: at(3 * time.Second)}},
			want: []bool{false, false, true}, bars: true,
		},
		"broken, and there again": {
			ends: []Pulse{
				{Now: at(0), Beat: true}, {Now: at(200 * time.Millisecond), Beat: true}, {Now: at(400 * time.Millisecond)},
			},
			want: []bool{false, false, false},
		},
		"broken": {
			ends: []Pulse{{Now: at(0), Beat: true}, {Now: at(200 * time.Millisecond)}, {Now: at(250 * time.Millisecond)}},
			want: []bool{false, false, true},
		},
		"broken, while this process hardly runs": {
			ends: []Pulse{
				{Now: at(0), Beat: true, Late: time.Second}, {Now: at(time.Second)},
				{Now: at(250*time.Millisecond + min(2*time.Second, contract.PulseSilence))},
			},
			want: []bool{false, false, true},
		},
		"dead": {
			ends: []Pulse{{Now: at(0), Beat: true}, {Now: at(time.Millisecond), Refused: true}},
			want: []bool{false, true},
		},
		"free once, while that fails": {
			ends: []Pulse{
				{Now: at(3 * time.Second)}, {Now: at(4 * time.Second)}, {Now: at(3*time.Second + contract.PulseSilence)},
			},
			want: []bool{true, false, true}, bars: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := NewFollow(began, 3*time.Second)
			for i, p := range c.ends {
				if got := f.Ended(p); got != c.want[i] {
					t.Errorf("try %d: release %t, want %t", i, got, c.want[i])
				}
			}
			if f.Bars() != c.bars {
				t.Errorf("bars: %t, want %t", f.Bars(), c.bars)
			}
		})
	}
}
