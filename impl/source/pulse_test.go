package source

import (
	"sync/atomic"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// shared are relays of one process, filled by compressed streams over one connection, at versions 10, 20 and so on.
type shared struct {
	clock   *testingclock.FakeClock
	holder  *holder
	relays  []*relay.Relay
	streams []*held
	bytes   atomic.Int64 // that have come
}

func sharing(t *testing.T, n int, pulses ...*Pulse) *shared {
	t.Helper()
	x := &shared{clock: testingclock.NewFakeClock(time.Now()), holder: &holder{watches: make(chan *held)}}
	up := serve(t, "cloud", x.holder)
	up.Gzip, up.Consistent, up.OnBytes = true, true, func(n int) { x.bytes.Add(int64(n)) }
	for i := range n {
		r := relayBy(t, x.clock)
		f, err := NewFeeder(Config{Relay: r, WatchTimeout: 4 * time.Second, Clock: x.clock, Pulse: pulses[i%len(pulses)]})
		if err != nil {
			t.Fatal(err)
		}
		run(t, f.Run)
		f.Use(up)
		stream := comes(t, "a stream", x.holder.watches)
		at := uint64(10 * (i + 1))
		stream.frames <- append(frame(t, wire.Added, "x", at-1), initialEnd(t, at)...)
		eventually(t, "the list", func() bool { return r.Status().Synced })
		x.relays, x.streams = append(x.relays, r), append(x.streams, stream)
	}
	return x
}

// pass lets time pass, and tells how many watches were opened meanwhile.
func (x *shared) pass(d time.Duration) (watches int) {
	for range d / (100 * time.Millisecond) {
		x.clock.Step(100 * time.Millisecond)
		select {
		case <-x.holder.watches:
			watches++
		case <-time.After(time.Millisecond): // for those who were woken
		}
	}
	return watches
}

// Of quiet streams over one connection one is watched, and what it shows counts for all, as of some time before.
func TestQuietStreamsAreProvedTogether(t *testing.T) {
	x := sharing(t, 4, &Pulse{})
	for round := range uint64(3) {
		probe := next(t, x.clock, x.holder)
		if !probe.metadata {
			t.Fatalf("round %d: %+v", round, probe)
		}
		if n := x.pass(2 * time.Second); n > 0 {
			t.Fatalf("round %d: %d more watches while one proves for all", round, n)
		}
		now := x.clock.Now()
		at, err := wire.ParseVersion(probe.version)
		if err != nil {
			t.Fatal(err)
		}
		probe.frames <- bookmark(t, at)
		for i, r := range x.relays {
			eventually(t, "a sign for all", func() bool { return r.Status().ProgressAt.After(now.Add(-2 * time.Second)) })
			s, base := r.Status(), uint64(10*(i+1))
			if s.ProgressAt.Equal(now) != (base == at) || s.Version != base {
				t.Errorf("round %d: relay %d is at %d, fresh as of %v before; the watch is from %d", round, i, s.Version,
					now.Sub(s.ProgressAt), at)
			}
		}
		if n := x.pass(2 * time.Second); n > 0 { // it lasts as long as it was asked for: else the cloud is asked
			t.Fatalf("round %d: %d more watches before the first one ended", round, n)
		}
		close(probe.frames)
	}
}

// Half of an event has come: what overtakes it says nothing about its stream.
func TestHalfAnEventIsNoProof(t *testing.T) {
	x := sharing(t, 2, &Pulse{})
	half := frame(t, wire.Modified, "x", 30)
	first := next(t, x.clock, x.holder)
	other := 0
	if first.version == "10" {
		other = 1
	}
	before := x.relays[other].Status().ProgressAt
	came := x.bytes.Load()
	x.streams[other].frames <- half[:len(half)/2]
	eventually(t, "half an event", func() bool { return x.bytes.Load() > came })
	x.pass(2 * time.Second)
	at, err := wire.ParseVersion(first.version)
	if err != nil {
		t.Fatal(err)
	}
	proved := x.relays[1-other]
	was := proved.Status().ProgressAt
	first.frames <- bookmark(t, at)
	eventually(t, "the bookmark", func() bool { return proved.Status().ProgressAt.After(was) })
	second := next(t, x.clock, x.holder) // of the stream that half an event came on
	if second.version == first.version || !second.metadata {
		t.Fatalf("%+v after %+v", second, first)
	}
	if s := x.relays[other].Status(); !s.ProgressAt.Equal(before) {
		t.Errorf("half an event came, and the relay is said to be fresh as of %v later", s.ProgressAt.Sub(before))
	}
}

// A link that is dead under one stream is dead under all over the same connection.
func TestDeadLinkEndsAllStreams(t *testing.T) {
	x := sharing(t, 3, &Pulse{})
	next(t, x.clock, x.holder) // it never ends
	plain := 0
	for range 3 {
		if w := next(t, x.clock, x.holder); !w.metadata {
			plain++
		}
	}
	if plain != 3 {
		t.Errorf("%d of 3 streams were left for another watch", plain)
	}
}

// Feeders that share no pulse prove each for itself.
func TestStreamsOfTwoProcesses(t *testing.T) {
	x := sharing(t, 2, &Pulse{}, &Pulse{})
	a, b := next(t, x.clock, x.holder), next(t, x.clock, x.holder)
	if a.version == b.version || !a.metadata || !b.metadata {
		t.Errorf("%+v, %+v", a, b)
	}
}
