package member

import (
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/relay"
)

func TestThrift(t *testing.T) {
	now, full := time.Now(), relay.Status{Synced: true, Bytes: 100 << 10}
	// half of that is of what was before.
	ring := relay.Status{Synced: true, Bytes: 100 << 10, Version: 100, Oldest: 90, RingBytes: 50 << 10}
	for _, c := range []struct {
		name  string
		plain int // events of 10 KiB, one a second
		other int // likewise, of another upstream or compressed
		gap   time.Duration
		cloud uint64 // version that it has reached
		s     relay.Status
		want  bool
	}{
		{"nothing came", 0, 0, time.Hour, 0, full, false},
		{"few plain ones", 10, 0, 0, 0, full, false},
		{"as many as fill the relay", 11, 0, 0, 0, full, true},
		{"compressed ones are cheap", 0, 100, 0, 0, full, false},
		{"a short gap", 0, 20, 9 * time.Second, 0, full, false},
		{"a long gap", 0, 20, 11 * time.Second, 0, full, true},
		{"a few changes are no rate", 0, 2, 20 * time.Second, 0, full, false},
		{"a small relay", 3, 0, 0, 0, relay.Status{Synced: true, Bytes: 1}, false},
		{"a small relay, many", 4, 0, 0, 0, relay.Status{Synced: true, Bytes: 1}, true},
		{"few versions were missed after a restart", 0, 0, 0, 113, ring, false},
		{"many were", 0, 0, 0, 114, ring, true},
		{"the cloud has nothing new", 0, 0, time.Second, 100, ring, false},
		{"as many as fill the relay, which misses a few", 11, 0, 0, 101, ring, false},
		{"as many as fill the relay, which misses none", 11, 0, 0, 100, ring, true},
		{"an empty relay is listed anyway", 100, 100, time.Hour, 0, relay.Status{}, false},
	} {
		var x thrift
		at := now
		for i := range c.plain + c.other {
			at = at.Add(time.Second)
			x.came(at, 10<<10, i < c.plain)
		}
		if got := x.lists(c.s, c.gap, c.cloud); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
	var x thrift
	x.came(now, 6000, false)
	x.came(now.Add(time.Hour), 600, false)
	if got := x.missed(time.Minute); got < 600 || got > 620 {
		t.Errorf("an hour ago is not forgotten: %d bytes in a minute", got)
	}
	x.came(now, 100, true)
	if x.switched(); x.plain != 0 {
		t.Error("the events of another upstream count")
	}
}
