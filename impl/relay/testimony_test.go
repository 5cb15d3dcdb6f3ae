package relay

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// chain is a relay that reads another one, by one clock.
type chain struct {
	t        *testing.T
	clock    *clocktesting.FakeClock
	up, down *Relay
	watch    *testWatch
	intake   *Intake
	items    []*wire.Object
}

func newChain(t *testing.T) *chain {
	c := &chain{t: t, clock: clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))}
	c.up, c.down = newRelay(t, withClock(c.clock)), newRelay(t, withClock(c.clock))
	return c
}

// open reads from a version, or with the initial events.
func (c *chain) open(query string) {
	c.t.Helper()
	if c.watch != nil {
		c.watch.close()
	}
	c.watch, c.intake = openWatch(c.t, c.up, query+"&allowWatchBookmarks=true", true), NewIntake(c.down)
}

const initialEvents = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"

// take takes everything up to an event that is described so.
func (c *chain) take(last string) {
	c.t.Helper()
	for {
		ev, err := c.watch.events.Next()
		if err != nil {
			c.t.Fatalf("waiting for %q: %v", last, err)
		}
		said := ev.Type
		switch {
		case ev.InitialEnd:
			said = "END"
			err = c.intake.End(History{}, ev, c.items)
		case ev.Testimony != "":
			said = "TESTIMONY"
			err = c.intake.Apply(ev)
		case c.down.Status().Synced:
			err = c.intake.Apply(ev)
		default:
			c.items = append(c.items, ev.Object)
		}
		if err != nil {
			c.t.Fatal(err)
		}
		if said == last {
			return
		}
	}
}

func (c *chain) want(what string, version uint64, age time.Duration, restored bool) {
	c.t.Helper()
	s := c.down.Status()
	if got, _ := s.Age(c.clock.Now()); s.Version != version || got != age || s.Restored != restored {
		c.t.Errorf("%s: at %d, %v old, restored %v; want %d, %v, %v", what, s.Version, got, s.Restored, version, age,
			restored)
	}
}

// TestAgePassesOn: a relay is as old as what it reads, and what its upstream hears from the cloud makes it young again.
func TestAgePassesOn(t *testing.T) {
	c := newChain(t)
	replace(t, c.up, 10, slice(t, "a/x", 5))
	c.clock.Step(40 * time.Second)
	c.open(initialEvents)
	c.take("END")
	c.want("a list", 10, 40*time.Second, false)
	bookmark(t, c.up, 10)
	c.take("TESTIMONY")
	c.want("a sign without a new version", 10, 0, false)
	c.clock.Step(20 * time.Second) // and the watch tells nothing by itself, as to other clients before their timeout
	c.want("silence", 10, 20*time.Second, false)

	c.watch.close()
	apply(t, c.up, wire.Modified, slice(t, "a/x", 11))
	c.clock.Step(40 * time.Second)
	c.open("resourceVersion=10")
	c.take(wire.Modified)
	c.want("what was missed", 11, 40*time.Second, false)
	apply(t, c.up, wire.Modified, slice(t, "a/x", 12))
	c.take(wire.Modified)
	c.want("news", 12, 0, false)

	c.watch.close()
	bookmark(t, c.up, 12)
	c.clock.Step(7 * time.Second)
	c.open("resourceVersion=12")
	c.take("TESTIMONY")
	c.want("nothing was missed", 12, 7*time.Second, false)
}

// TestRestoredPassesOn: what comes from a disk proves nothing further down either, until the cloud is heard.
func TestRestoredPassesOn(t *testing.T) {
	c := newChain(t)
	replace(t, c.up, 10, slice(t, "a/x", 5))
	apply(t, c.up, wire.Modified, slice(t, "a/x", 11))
	c.up = restored(t, c.up, c.clock.Now().Add(-time.Second), withClock(c.clock))
	c.open(initialEvents)
	c.take("END")
	c.want("a list", 11, time.Second, true)
	if s := c.down.Status(); s.Fresh(c.clock.Now(), time.Hour) {
		t.Error("what came from a disk is fresh")
	}
	bookmark(t, c.up, 11)
	c.take("TESTIMONY")
	c.want("the upstream hears", 11, 0, false)
	c.clock.Step(time.Minute)
	bookmark(t, c.up, 13)
	c.take(wire.Bookmark)
	c.want("the upstream hears more", 13, 0, false)
}

// TestRefill: a state that somebody held moves a relay forward only, clients are told what differs, and it is no sign
// of anything.
func TestRefill(t *testing.T) {
	c := newChain(t)
	replace(t, c.up, 10, slice(t, "a/x", 5), slice(t, "a/y", 6))
	c.open(initialEvents)
	c.take("END")
	client := watch(t, c.down, "resourceVersion=10")
	c.clock.Step(20 * time.Minute)

	holder := newRelay(t, withClock(c.clock))
	refill := func(version uint64) error {
		holder = newRelay(t, withClock(c.clock))
		replace(t, holder, version, slice(t, "a/x", 15), slice(t, "a/z", 20))
		c.clock.Step(10 * time.Second)
		w := openWatch(t, holder, initialEvents+"&allowWatchBookmarks=true", true)
		intake := NewRefill(c.up)
		var items []*wire.Object
		for {
			ev, err := w.events.Next()
			if err != nil {
				t.Fatal(err)
			}
			if ev.InitialEnd {
				return intake.End(History{}, ev, items)
			}
			items = append(items, ev.Object)
		}
	}
	if err := refill(20); err != nil {
		t.Fatal(err)
	}
	if s := c.up.Status(); s.Version != 20 || !s.Restored || s.Fresh(c.clock.Now(), time.Hour) {
		t.Errorf("refilled: %+v", s)
	}
	for c.down.Status().Version < 20 {
		c.take(wire.Bookmark)
	}
	c.want("further down", 20, 10*time.Second, true)
	client.want("DELETED a/y 10", "MODIFIED a/x 15", "ADDED a/z 20")
	if err := refill(20); !errors.Is(err, ErrOlder) {
		t.Errorf("the same version again: %v", err)
	}
	apply(t, c.up, wire.Modified, slice(t, "a/x", 21))
	c.take(wire.Modified)
	c.want("the cloud is heard", 21, 0, false)

	empty := newRelay(t, withClock(c.clock))
	intake := NewRefill(empty)
	if err := intake.End(History{}, &wire.Event{Type: wire.Bookmark, Version: 7, InitialEnd: true, Testimony: "7/5000"},
		nil); err != nil {
		t.Fatal(err)
	}
	s := empty.Status()
	if age, _ := s.Age(c.clock.Now()); !s.Synced || !s.Restored || age != 5*time.Second {
		t.Errorf("an empty relay refilled: %+v", s)
	}
	if err := intake.Apply(&wire.Event{Type: wire.Bookmark, Version: 8}); err != nil {
		t.Fatal(err)
	}
	if after := empty.Status(); after.Version != 8 || !after.Restored || after.ProgressAt.After(s.ProgressAt) {
		t.Errorf("what a refill brings behind its list is no sign of the cloud: %+v", after)
	}
}

func TestTestimony(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, want := range []Testimony{{7, now, false}, {1 << 60, now.Add(-90 * time.Minute), true}} {
		got, err := parseTestimony(want.String(now), now)
		if err != nil || *got != want {
			t.Errorf("%s: %+v, %v", want.String(now), got, err)
		}
	}
	if got, err := parseTestimony("7/18446744073709551615", now); err != nil || got.AsOf.After(now.Add(-time.Hour)) {
		t.Errorf("an age beyond all: %+v, %v", got, err)
	}
	for _, s := range []string{
		"", "/", "7", "7/", "/7", "7/-1", "7/1/", "7/1/fresh", "a/b", strings.Repeat("9", 30) + "/1",
	} {
		if _, err := parseTestimony(s, now); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
}

// TestCalm: a reader that asked for calm is told that the source lives once in that time, and is told at its end what
// came meanwhile. Changes come at once.
func TestCalm(t *testing.T) {
	c := newChain(t)
	replace(t, c.up, 10, slice(t, "a/x", 5))
	const calm = 10 * time.Second
	all, err := c.up.Select("", labels.Everything(), fields.Everything())
	if err != nil {
		t.Fatal(err)
	}
	cur, err := c.up.Watch(t.Context(), WatchOptions{
		At: At{Version: 10}, Selector: all, Bookmarks: true, Progress: true, Calm: calm, Timeout: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	read := func(what, want string, until time.Duration) {
		t.Helper()
		events, wait, err := cur.Read(nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, ev := range events {
			if ev.Testimony != "" {
				got = append(got, "TESTIMONY")
			} else {
				got = append(got, ev.Type)
			}
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: %q, want %q", what, s, want)
		}
		if in := wait.Until.Sub(c.clock.Now()); until > 0 && in != until {
			t.Errorf("%s: it waits %v, want %v", what, in, until)
		}
	}
	read("at first", "TESTIMONY", 0)
	c.clock.Step(time.Second)
	bookmark(t, c.up, 10)
	read("a sign soon after", "", calm-time.Second)
	apply(t, c.up, wire.Modified, slice(t, "a/x", 11))
	read("a change", wire.Modified, 0)
	c.clock.Step(calm - time.Second)
	read("what is owed", "TESTIMONY", 0)
	c.clock.Step(calm)
	read("nothing was said", "", 0)
	bookmark(t, c.up, 11)
	read("a sign later", "TESTIMONY", 0)
}
