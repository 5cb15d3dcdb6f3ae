package member

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/relay"
)

// A pool that is in an earlier history is waited for, and believed only when it is fresh all the same.
func TestPatienceWithThePool(t *testing.T) {
	for name, c := range map[string]struct {
		waited, age time.Duration
		yields      bool
	}{
		"a moment":            {time.Second, 0, false},
		"fresh":               {BehindPatience + time.Second, time.Second, true},
		"not fresh since":     {BehindPatience + time.Second, BehindPatience + 2*time.Second, false},
		"nobody knows":        {10 * BehindPatience, -1, false},
		"fresh for very long": {10 * BehindPatience, time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			p, now := &Plan{}, time.Unix(1000, 0)
			f := Feed{Up: Upstream{ID: "pool", Name: "coordinator", Relay: true}}
			p.Learn(f.Up, &EarlierHistoryError{1, 2, 0}, now)
			for range 10 { // it is asked again and again
				now = now.Add(c.waited / 10)
				p.Learn(f.Up, &EarlierHistoryError{1, 2, -1}, now)
			}
			p.Learn(f.Up, fmt.Errorf("watch: %w", &EarlierHistoryError{1, 2, c.age}), now)
			another := p.Another(f)
			if yields := another != nil && another.Yield && another.History.Number == 1; yields != c.yields {
				t.Errorf("yields: %v, want %v; %+v", yields, c.yields, another)
			}
		})
	}
}

// TestTakesUpAtOnce: a history that was waited for is taken up without a pause, in which the upstream might be left. An
// upstream that is left and used again is not waited for again.
func TestTakesUpAtOnce(t *testing.T) {
	p, now := &Plan{Lasts: 10 * time.Second}, time.Unix(1000, 0)
	pool := Upstream{ID: 1, Name: "coordinator", Relay: true}
	held := relay.Status{Synced: true, Version: 7, History: relay.History{Number: 2}}
	var waited time.Duration
	for range 100 {
		feed := Feed{Now: now, Up: pool, Relay: held}
		if step := p.Next(feed); step.Do == List {
			if waited < BehindPatience || step.Another == nil || !step.Another.Yield {
				t.Errorf("after %v: %+v", waited, step)
			}
			return
		}
		after := p.Ended(End{Now: now, Up: pool, Err: &EarlierHistoryError{1, 2, time.Second}})
		if after.Learned != nil && after.Wait != 0 {
			t.Errorf("it waits %v before it takes up what it has learned", after.Wait)
		}
		waited, now = waited+after.Wait, now.Add(after.Wait)
	}
	t.Error("it never takes up the pool's history")
}
