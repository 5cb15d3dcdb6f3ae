package member

import (
	"errors"
	"fmt"
	"net/http"
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

// TestDenied: that an upstream does not have a resource counts at once, that it does not give it only for a while
// later where there is something to lose, and neither counts of one that does not hear from the cloud.
func TestDenied(t *testing.T) {
	for name, c := range map[string]struct {
		code        int
		synced      bool
		unconfirmed bool
		between     int           // another answer, between the first and the second
		took        time.Duration // until the second
		want        [2]bool
	}{
		"not there":            {code: http.StatusNotFound, synced: true, want: [2]bool{true, true}},
		"not read so":          {code: http.StatusMethodNotAllowed, synced: true, want: [2]bool{true, true}},
		"barred":               {code: http.StatusForbidden, want: [2]bool{true, true}},
		"barred, has a state":  {code: http.StatusForbidden, synced: true, want: [2]bool{false, true}},
		"barred now and again": {code: http.StatusForbidden, synced: true, between: http.StatusBadGateway},
		"barred by one that starts anew": {
			code: http.StatusForbidden, synced: true, took: barredPatience, want: [2]bool{false, false},
		},
		"a hub without cloud": {code: http.StatusForbidden, unconfirmed: true},
		"fails":               {code: http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			p, now := &Plan{}, time.Unix(1000, 0)
			end := func(code int, took time.Duration) bool {
				return p.Ended(End{
					Now: now, Err: http.ErrHandlerTimeout, Code: code, Synced: c.synced, Took: took,
					Up: Upstream{ID: 1, Unconfirmed: c.unconfirmed},
				}).Denied
			}
			first := end(c.code, 0)
			now = now.Add(barredPatience)
			if c.between != 0 {
				end(c.between, 0)
			}
			if got := [2]bool{first, end(c.code, c.took)}; got != c.want {
				t.Errorf("denied: %v, want %v", got, c.want)
			}
		})
	}
}

// TestLongWatch: a watch of the cloud that showed nothing is followed by a long one, and any other one by one of the
// usual length.
func TestLongWatch(t *testing.T) {
	now := time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)
	usual := 10 * time.Second
	for name, x := range map[string]struct {
		change func(*Plan, *Feed)
		end    End
		want   time.Duration
	}{
		"quiet":         {want: LongWatch},
		"an event":      {change: func(p *Plan, _ *Feed) { p.Came(now, 100, true) }, want: usual},
		"it broke":      {end: End{Err: errors.New("reset")}, want: usual},
		"another cloud": {change: func(_ *Plan, f *Feed) { f.Doubtful = true }, want: usual},
		"a relay":       {change: func(_ *Plan, f *Feed) { f.Up.Cloud = false }, want: usual},
		"from a disk":   {change: func(_ *Plan, f *Feed) { f.Relay.Restored = true }, want: usual},
	} {
		p := &Plan{Lasts: usual}
		f := Feed{Now: now, Relay: relay.Status{Synced: true, ProgressAt: now}, Up: Upstream{ID: 1, Cloud: true}}
		if s := p.Next(f); s.Do != Resume || s.Lasts != usual {
			t.Fatalf("%s: the first step is %+v", name, s)
		}
		if x.change != nil {
			x.change(p, &f)
		}
		x.end.Now, x.end.Up, x.end.Synced = now, f.Up, true
		p.Ended(x.end)
		if s := p.Next(f); s.Do != Resume || s.Lasts != x.want {
			t.Errorf("%s: the next step is %+v, want one of %v", name, s, x.want)
		}
	}
}

// TestNobodyRemembers: a gate that was asked before is told what the relay has once kube-apiserver has forgotten its
// version as well, and not asked for changes again.
func TestNobodyRemembers(t *testing.T) {
	gate, cloud := Upstream{ID: "gate", Relay: true}, Upstream{ID: "cloud", Cloud: true}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for about, c := range map[string]struct {
		asked   []Upstream
		next    Upstream
		version uint64
		want    Do
	}{
		"both have forgotten":               {[]Upstream{gate, cloud}, gate, 5, Compare},
		"the gate again, and the cloud":     {[]Upstream{gate, gate, cloud}, gate, 5, Compare},
		"another version":                   {[]Upstream{gate, cloud}, gate, 6, Resume},
		"the gate alone, and it was left":   {[]Upstream{gate}, gate, 5, Resume},
		"another gate":                      {[]Upstream{gate, cloud}, Upstream{ID: "other", Relay: true}, 5, Resume},
		"kube-apiserver is asked each time": {[]Upstream{gate, cloud}, Upstream{ID: "cloud", Cloud: true}, 5, Resume},
	} {
		p := Plan{Lasts: 10 * time.Second}
		step := func(up Upstream, version uint64) Do {
			return p.Next(Feed{Now: now, Up: up, Relay: relay.Status{Synced: true, Version: version, ProgressAt: now}}).Do
		}
		for _, up := range c.asked {
			if got := step(up, 5); got != Resume {
				t.Fatalf("%s: %s at %s", about, got, up.ID)
			}
			p.Ended(End{Now: now, Up: up, Err: errors.New("too old"), Code: http.StatusGone, Synced: true})
			p.Switched()
		}
		if got := step(c.next, c.version); got != c.want {
			t.Errorf("%s: %s, want %s", about, got, c.want)
		}
	}
}

// TestForgottenElsewhere: what one upstream has forgotten another one may remember. It is asked for all changes before
// the two states are compared.
func TestForgottenElsewhere(t *testing.T) {
	gate, cloud := Upstream{ID: "gate", Relay: true}, Upstream{ID: "cloud", Cloud: true}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for about, c := range map[string]struct {
		next Upstream
		want Do
	}{"at the same one": {gate, Compare}, "at another one": {cloud, Resume}} {
		p := Plan{Lasts: 10 * time.Second}
		step := func(up Upstream) Do {
			return p.Next(Feed{Now: now, Up: up, Relay: relay.Status{Synced: true, Version: 5, ProgressAt: now}}).Do
		}
		if got := step(gate); got != Resume {
			t.Fatalf("%s: %s at first", about, got)
		}
		p.Ended(End{Now: now, Up: gate, Err: errors.New("too old"), Code: http.StatusGone, Synced: true})
		if got := step(c.next); got != c.want {
			t.Errorf("%s: %s, want %s", about, got, c.want)
		}
	}
}
