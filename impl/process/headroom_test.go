package process

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

func TestPercent(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		name string
		room Headroom
		heap heap
		want int
	}{
		{"before the first collection", Headroom{}, heap{}, 100},
		{"small heap: the least headroom", Headroom{}, heap{live: 10 * mb, roots: 6 * mb}, 50},
		{"large heap: a share of it", Headroom{}, heap{live: 100 * mb}, 25},
		{"roots count", Headroom{}, heap{live: 100 * mb, roots: 100 * mb}, 12},
		{"tiny heap: bounded", Headroom{}, heap{live: 100 << 10}, maxGOGC},
		{"never without end", Headroom{Min: 1 << 10, Percent: 1}, heap{live: 100 * mb}, minGOGC},
		{"what is looked at", Headroom{Scanned: 100}, heap{live: 20 * mb, roots: 4 * mb, scan: 12 * mb}, 50},
		{"little is looked at", Headroom{Scanned: 100}, heap{live: 100 * mb, scan: 10 * mb}, 25},
		{"as asked", Headroom{Min: mb, Percent: 50}, heap{live: 100 * mb}, 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.room.percent(c.heap); got != c.want {
				t.Errorf("got GOGC=%d, want %d", got, c.want)
			}
		})
	}
}

func goal() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func TestKeepFollowsTheHeap(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- Headroom{Min: 1 << 20, Percent: 25}.Keep(ctx) }()
	held := make([][]byte, 64)
	for i := range held {
		held[i] = make([]byte, 1<<20)
	}
	for range 1000 { // the cleanup runs some time after a collection; GOGC=100 would have a goal of 128 MiB
		runtime.GC()
		if g := goal(); g > 64<<20 && g < 96<<20 {
			break
		}
	}
	if g := goal(); g < 64<<20 || g > 96<<20 {
		t.Errorf("with 64 MiB live the next collection is at %d MiB, want about 80", g>>20)
	}
	runtime.KeepAlive(held)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := debug.SetGCPercent(100); got != 100 {
		t.Errorf("GOGC after Keep: %d, want what it was, 100", got)
	}
}

func TestKeepLeavesGOGCOff(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (Headroom{}).Keep(ctx); err != nil {
		t.Fatal(err)
	}
	if got := debug.SetGCPercent(-1); got != -1 {
		t.Errorf("GOGC after Keep: %d, want -1", got)
	}
}
