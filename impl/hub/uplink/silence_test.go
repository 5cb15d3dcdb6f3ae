package uplink

import (
	"sync/atomic"
	"testing"
	"time"
)

func TestSilence(t *testing.T) {
	var read atomic.Int64
	s, now := &Silence{read: &read}, time.Now()
	for i, c := range []struct {
		after  time.Duration
		comes  int64
		wanted bool
		want   bool
	}{
		{time.Hour, 0, false, false},
		{0, 0, true, false}, // streams begin
		{silent, 0, true, false},
		{time.Millisecond, 0, true, true},
		{time.Second, 1, true, false}, // something came
		{silent + 1, 0, true, true},
		{time.Second, 0, false, false},
		{time.Hour, 0, true, false}, // streams again: the silence of before does not count
	} {
		now = now.Add(c.after)
		read.Add(c.comes)
		if got := s.Lasts(now, c.wanted); got != c.want {
			t.Errorf("step %d: %t", i, got)
		}
	}
}
