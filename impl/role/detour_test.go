package role

import (
	"testing"
	"time"
)

// TestDetours: what the pool does not have goes its own way, and comes back, while the others stay.
func TestDetours(t *testing.T) {
	const grace, spread, wait = 30 * time.Second, 30 * time.Second, 9 * time.Second
	fine := Resource{Name: "fine", Synced: true, Fresh: true, There: true}
	for _, c := range []struct {
		name       string
		r          Resource
		unready    bool
		least, max time.Duration // when it goes; 0: never
		back       Resource      // what brings it back
	}{
		{"fine", fine, false, 0, 0, fine},
		{"denied", Resource{Synced: true, Fresh: true, Denied: true}, false, 0, spread / 10, fine},
		{"denied, nothing held", Resource{Denied: true}, false, 0, spread / 10, fine},
		{"never fed", Resource{}, false, wait, wait + spread/10, fine},
		{"joins, and the pool does not have it yet", Resource{Joins: true, Denied: true}, false, grace, grace + spread, fine},
		{"never fed, nor is the pool", Resource{}, true, wait, wait + spread/10, fine},
		{"not fed any more", Resource{Synced: true}, false, grace, grace + spread, fine},
		{"not fed any more, like all others", Resource{Synced: true}, true, 0, 0, fine},
	} {
		c.r.Name, c.back.Name = "this", "this"
		for seed := range uint64(20) {
			d := NewDetours(Config{Identity: "a_1", Grace: grace, Spread: spread, Wait: wait, Seed: seed})
			snap := Snapshot{Source: Coordinator, Ready: !c.unready}
			now := time.Minute
			run := func(r Resource, limit time.Duration, until Source) time.Duration {
				began := now
				for now-began <= limit {
					sources, wake := d.Step(Input{Now: now, Cloud: true}, snap, []Resource{fine, r})
					if sources[0] != Coordinator {
						t.Fatalf("%s: the other one is fed from %v", c.name, sources[0])
					}
					if sources[1] == until {
						return now - began
					}
					if wake <= now {
						t.Fatalf("%s: wake at %v is not after %v", c.name, wake, now)
					}
					now = wake
				}
				return -1
			}
			took := run(c.r, 5*time.Minute, Cloud)
			if c.max == 0 {
				if took >= 0 {
					t.Errorf("%s: left after %v", c.name, took)
				}
				continue
			}
			if took < c.least || took > c.max {
				t.Errorf("%s: left after %v, want %v to %v", c.name, took, c.least, c.max)
			}
			if took := run(c.r, 5*time.Minute, Coordinator); took >= 0 {
				t.Errorf("%s: came back after %v for no reason", c.name, took)
			}
			if took := run(c.back, 5*time.Minute, Coordinator); took < 0 || took > spread/10 {
				t.Errorf("%s: came back after %v", c.name, took)
			}
		}
	}
}

// TestDetoursFollowTheOthers: without a cloud, and where the others are fed from, there is no detour.
func TestDetoursFollowTheOthers(t *testing.T) {
	d := NewDetours(Config{Identity: "a_1"})
	r := []Resource{{Denied: true}}
	step := func(now time.Duration, cloud bool, s Source) Source {
		sources, _ := d.Step(Input{Now: now, Cloud: cloud}, Snapshot{Source: s, Ready: true}, r)
		return sources[0]
	}
	for i, c := range []struct {
		cloud      bool
		base, want Source
	}{
		{true, Nowhere, Nowhere}, {true, Coordinator, Cloud}, {false, Coordinator, Coordinator}, {true, Coordinator, Cloud},
		{true, Cloud, Cloud}, {false, Coordinator, Coordinator},
	} {
		if got := step(time.Duration(i+1)*time.Hour, c.cloud, c.base); got != c.want {
			t.Errorf("%d: fed from %v, want %v", i, got, c.want)
		}
	}
}
