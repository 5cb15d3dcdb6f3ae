package hub

import (
	"sync/atomic"
	"testing"
	"time"
)

func TestSilence(t *testing.T) {
	var read atomic.Int64
	s, now := &silenceOf{read: &read}, time.Now()
	for i, c := range []struct {
		after  time.Duration
		comes  int64
		wanted bool
		want   bool
	}{
		{time.Hour, 0, false, false},
		{0, 0, true, false}, // streams begin
		{silence, 0, true, false},
		{time.Millisecond, 0, true, true},
		{time.Second, 1, true, false}, // something came
		{silence + 1, 0, true, true},
		{time.Second, 0, false, false},
		{time.Hour, 0, true, false}, // streams again: the silence of before does not count
	} {
		now = now.Add(c.after)
		read.Add(c.comes)
		if got := s.lasts(now, c.wanted); got != c.want {
			t.Errorf("step %d: %t", i, got)
		}
	}
}
