package relay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/relay/wire"
)

func TestNeverGoesBack(t *testing.T) {
	r := newRelay(t)
	replace(t, r, 10, slice(t, "a/x", 5))
	apply(t, r, wire.Modified, slice(t, "a/x", 12))
	apply(t, r, wire.Modified, slice(t, "a/x", 11)) // dropped
	apply(t, r, wire.Modified, slice(t, "a/x", 12)) // dropped
	if s := r.Status(); s.Version != 12 || s.RingEvents != 1 {
		t.Errorf("version %d, %d events", s.Version, s.RingEvents)
	}
	if err := r.Replace(11, nil); !errors.Is(err, ErrOlder) {
		t.Errorf("an older list: %v", err)
	}
	if err := newRelay(t).Apply(&wire.Event{Type: wire.Bookmark, Version: 3}); !errors.Is(err, ErrNotSynced) {
		t.Errorf("an event before the first list: %v", err)
	}
}

func TestSelectorChanges(t *testing.T) {
	r := newRelay(t)
	replace(t, r, 10, slice(t, "a/in", 5, "tier", "front"), slice(t, "a/out", 6))
	w := watch(t, r, "resourceVersion=10&labelSelector=tier%3Dfront")
	apply(t, r, wire.Modified, slice(t, "a/out", 11, "tier", "front"))
	apply(t, r, wire.Modified, slice(t, "a/out", 12, "tier", "front", "x", "y"))
	apply(t, r, wire.Modified, slice(t, "a/in", 13, "tier", "back"))
	apply(t, r, wire.Modified, slice(t, "a/in", 14, "tier", "back", "x", "y"))
	apply(t, r, wire.Deleted, slice(t, "a/in", 15))
	apply(t, r, wire.Deleted, slice(t, "a/out", 16, "tier", "front"))
	w.want("ADDED a/out 11", "MODIFIED a/out 12")
	ev, err := w.events.Next()
	if err != nil {
		t.Fatal(err)
	}
	// it leaves with its previous content and the new version
	if ev.Type != wire.Deleted || ev.Version != 13 || ev.Object.Labels.Get("tier") != "front" {
		t.Errorf("%s at %d with labels %v", ev.Type, ev.Version, ev.Object.Labels)
	}
	w.want("DELETED a/out 16")
}

func TestTooOldIs410(t *testing.T) {
	r := newRelay(t, func(c *Config) { c.RingBytes = 64 << 10 })
	replace(t, r, 10, slice(t, "a/x", 5))
	watch(t, r, "resourceVersion=9").want("ERROR 410", "EOF")
	for v := uint64(11); v < 1000; v++ {
		apply(t, r, wire.Modified, slice(t, "a/x", v))
	}
	s := r.Status()
	if s.RingBytes > 64<<10 || s.Oldest <= 11 {
		t.Fatalf("ring of %d bytes from %d", s.RingBytes, s.Oldest)
	}
	watch(t, r, "resourceVersion=11").want("ERROR 410", "EOF")
	watch(t, r, fmt.Sprint("resourceVersion=", s.Oldest)).want(fmt.Sprintf("MODIFIED a/x %d", s.Oldest+1))
	if _, err := listAt(t, r, 11); !errors.Is(err, ErrPast) {
		t.Errorf("exact list at 11: %v", err)
	}
}

func TestRingAges(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	r := newRelay(t, withClock(clock), func(c *Config) { c.RingAge = time.Minute })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	defer func() { cancel(); <-done }()
	replace(t, r, 10)
	apply(t, r, wire.Added, slice(t, "a/x", 11))
	eventually(t, "the janitor", clock.HasWaiters)
	clock.Step(2 * time.Minute)
	eventually(t, "an empty ring", func() bool { return r.Status().RingEvents == 0 })
	if r.Resumable(10) || !r.Resumable(11) {
		t.Error("resumable at 10, or not at 11")
	}
}

func TestReplaceIsOneBatch(t *testing.T) {
	r := newRelay(t)
	replace(t, r, 10, slice(t, "a/gone", 4), slice(t, "a/same", 5), slice(t, "a/changed", 6))
	w := watch(t, r, "resourceVersion=10&allowWatchBookmarks=true")
	replace(t, r, 20, slice(t, "a/same", 5), slice(t, "a/new", 18), slice(t, "a/changed", 15))
	batch := []string{"DELETED a/gone 10", "MODIFIED a/changed 15", "ADDED a/new 18", "BOOKMARK 20"}
	w.want(batch...)
	watch(t, r, "resourceVersion=10&allowWatchBookmarks=true").want(batch...) // from its start: all of it again
	watch(t, r, "resourceVersion=15").want("ERROR 410", "EOF")                // inside: never
	if r.Resumable(15) {
		t.Error("resumable inside the batch")
	}
	w = watch(t, r, "resourceVersion=20")
	apply(t, r, wire.Added, slice(t, "a/z", 21))
	w.want("ADDED a/z 21")
	if _, err := listAt(t, r, 15); !errors.Is(err, ErrPast) {
		t.Errorf("exact list inside a batch: %v", err)
	}
}

func TestContradictingListEndsTheHistory(t *testing.T) {
	r := newRelay(t)
	replace(t, r, 10, slice(t, "a/x", 5))
	w := watch(t, r, "resourceVersion=10")
	eventually(t, "the watch", func() bool { return r.Status().Watchers == 1 })
	replace(t, r, 20, slice(t, "a/x", 7)) // changed at 7, though we had seen up to 10
	w.want("ERROR 410", "EOF")
	if r.Resumable(10) || !r.Resumable(20) {
		t.Error("resumable at 10, or not at 20")
	}
}

// A client that applies any prefix of what it is sent, breaks, and resumes, must end with the relay's state.
func TestResumeAfterAnyPrefix(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for round := range 60 {
		r := newRelay(t)
		state := map[string]uint64{}
		version := uint64(10)
		replace(t, r, version)
		client := map[string]uint64{}
		seen, w := version, watch(t, r, "resourceVersion=10&allowWatchBookmarks=true")
		for range 30 {
			key := fmt.Sprintf("a/%d", rnd.IntN(6))
			version++
			switch _, have := state[key]; {
			case rnd.IntN(6) == 0: // a list after a gap
				var items []*wire.Object
				for k := range state {
					if rnd.IntN(3) == 0 {
						delete(state, k)
					}
				}
				version += 10
				state[key] = version - 5
				for k, v := range state {
					items = append(items, slice(t, k, v))
				}
				replace(t, r, version, items...)
			case have && rnd.IntN(3) == 0:
				delete(state, key)
				apply(t, r, wire.Deleted, slice(t, key, version))
			default:
				typ := wire.Added
				if have {
					typ = wire.Modified
				}
				state[key] = version
				apply(t, r, typ, slice(t, key, version))
			}
			for range rnd.IntN(3) { // read a little, break perhaps
				if seen >= version {
					break
				}
				ev, err := w.events.Next()
				if err != nil {
					t.Fatalf("seed %d round %d: %v", seed, round, err)
				}
				follow(client, ev, &seen)
			}
			if rnd.IntN(3) == 0 {
				w.close()
				if !r.Resumable(seen) { // inside a batch: list and watch, as a reflector does
					clear(client)
					for k, v := range state {
						client[k] = v
					}
					seen = version
				}
				w = watch(t, r, fmt.Sprintf("resourceVersion=%d&allowWatchBookmarks=true", seen))
			}
		}
		bookmark(t, r, version+1)
		w.close()
		if !r.Resumable(seen) {
			continue
		}
		w = watch(t, r, fmt.Sprintf("resourceVersion=%d&allowWatchBookmarks=true&timeoutSeconds=1", seen))
		for {
			ev, err := w.events.Next()
			if err != nil {
				break
			}
			follow(client, ev, &seen)
			if seen >= version {
				break
			}
		}
		if fmt.Sprint(client) != fmt.Sprint(state) {
			t.Fatalf("seed %d round %d: client has %v, relay %v", seed, round, client, state)
		}
		w.close()
	}
}

func follow(client map[string]uint64, ev *wire.Event, seen *uint64) {
	switch ev.Type {
	case wire.Added, wire.Modified:
		client[ev.Object.Key] = ev.Version
	case wire.Deleted:
		delete(client, ev.Object.Key)
	}
	*seen = ev.Version
}

func TestTimeoutAndBookmarks(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	r := newRelay(t, withClock(clock))
	replace(t, r, 10, slice(t, "a/x", 5))
	w := watch(t, r, "resourceVersion=10&allowWatchBookmarks=true&timeoutSeconds=100")
	eventually(t, "the watch to sleep", func() bool { return r.Status().Watchers == 1 && clock.HasWaiters() })
	bookmark(t, r, 33)
	eventually(t, "the watch to sleep", clock.HasWaiters)
	clock.Step(61 * time.Second)
	w.want("BOOKMARK 33")
	eventually(t, "the watch to sleep", clock.HasWaiters)
	clock.Step(37 * time.Second)
	w.want("BOOKMARK 33") // two seconds before its end
	eventually(t, "the watch to sleep", clock.HasWaiters)
	clock.Step(2 * time.Second)
	w.want("EOF")
}

func TestParseResource(t *testing.T) {
	for in, want := range map[string]string{
		"endpoints.v1.":                      "/api/v1 Endpoints protobuf",
		"endpoints.v1":                       "/api/v1 Endpoints protobuf",
		"endpointslices.v1.discovery.k8s.io": "/apis/discovery.k8s.io/v1 EndpointSlice protobuf",
		"widgets.v1.example.com=Widget":      "/apis/example.com/v1 Widget json",
	} {
		r, err := ParseResource(in)
		if got := fmt.Sprint(r.Path(), " ", r.Kind, " ", r.Encoding()); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", ".", "endpoints", "widgets.v1.example.com", "endpoints.v1.=Wrong", "x.v1=", "x.v1.=X",
	} {
		if _, err := ParseResource(in); err == nil {
			t.Errorf("%q was accepted", in)
		}
	}
}

// TestNothingForThisReader: events that a reader has seen elsewhere leave it with what to wait for, not with nothing at
// all.
func TestNothingForThisReader(t *testing.T) {
	r := newRelay(t, func(c *Config) { c.Gather = -1 })
	replace(t, r, 10, slice(t, "a/x", 5))
	c, err := r.Watch(t.Context(), WatchOptions{At: At{Version: 20}})
	if err != nil {
		t.Fatal(err)
	}
	for v := uint64(15); v <= 20; v++ {
		apply(t, r, wire.Modified, slice(t, "a/x", v))
	}
	if events, wait, err := c.Read(nil); len(events) != 0 || wait.Changed == nil || wait.Until.IsZero() || err != nil {
		t.Errorf("%v, %v, %v", events, wait, err)
	}
}
