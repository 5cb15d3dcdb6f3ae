package member

import (
	"testing"
	"time"
)

func TestSilence(t *testing.T) {
	var s silence
	read, now := int64(0), time.Unix(1e9, 0)
	for i, c := range []struct {
		after  time.Duration
		comes  int64
		wanted bool
		want   bool
	}{
		{time.Hour, 0, false, false},
		{0, 0, true, false}, // streams begin
		{Silent, 0, true, false},
		{time.Millisecond, 0, true, true},
		{time.Second, 1, true, false}, // something came
		{Silent + 1, 0, true, true},
		{time.Second, 0, false, false},
		{time.Hour, 0, true, false}, // streams again: the silence of before is ignored
	} {
		now = now.Add(c.after)
		read += c.comes
		if got, _ := s.lasts(now, read, c.wanted); got != c.want {
			t.Errorf("step %d: %t", i, got)
		}
	}
}
