package source

import (
	"bytes"
	"cmp"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/mvcc"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source/hop"
)

// largeFrame is an event of 20 KiB.
func largeFrame(t *testing.T, typ, name string, version uint64) []byte {
	t.Helper()
	o := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: "a", Name: name, ResourceVersion: wire.FormatVersion(version),
		Annotations: map[string]string{"note": strings.Repeat("x", 20<<10)},
	}}
	raw, err := o.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return wire.AppendProtobufFrame(nil, typ, wire.Kind{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}, raw)
}

// resumed is a relay that was filled by a stream, which then broke, and that is fed by a plain watch since.
func resumed(t *testing.T) (c *testingclock.FakeClock, h *holder, r *relay.Relay, f *Feeder, plain *held) {
	t.Helper()
	c, h, r, f, stream, _ := quietStream(t)
	close(stream.frames)
	// at once: no time passes.
	for plain = comes(t, "a plain watch", h.watches); plain.metadata; plain = comes(t, "a plain watch", h.watches) {
	}
	if plain.version != "10" {
		t.Fatalf("%+v", plain)
	}
	return c, h, r, f, plain
}

// Once the plain events would fill the relay again, a compressed stream is opened beside the watch, and takes over.
func TestPlainWatchGivesWayToAStream(t *testing.T) {
	c, h, r, f, plain := resumed(t)
	for version := uint64(11); version <= 12; version++ {
		plain.frames <- largeFrame(t, wire.Modified, "x", version)
		eventually(t, "the event", func() bool { return r.Status().Version == version })
	}
	close(plain.frames)
	plain, stream := comes(t, "a watch", h.watches), comes(t, "another watch beside it", h.watches)
	if plain.version == "" {
		plain, stream = stream, plain
	}
	if plain.version != "12" || stream.version != "" {
		t.Fatalf("%+v, %+v", plain, stream)
	}
	stream.frames <- frame(t, wire.Added, "x", 12)
	plain.frames <- frame(t, wire.Added, "y", 13) // the list takes long, and the relay goes on
	eventually(t, "the event beside the list", func() bool { return r.Status().Version == 13 })
	stream.frames <- initialEnd(t, 15) // ahead of the relay, which is told each version in between
	plain.frames <- frame(t, wire.Modified, "x", 14)
	eventually(t, "the event in between", func() bool { return r.Status().Version == 14 })
	plain.frames <- frame(t, wire.Modified, "x", 15)
	comes(t, "the end of the plain watch", plain.gone)
	stream.frames <- frame(t, wire.Modified, "x", 16)
	eventually(t, "the event on the stream", func() bool { return r.Status().Version == 16 })
	if s := r.Status(); s.Objects != 2 {
		t.Errorf("%+v", s)
	}
	if s := f.Status(); s.Lists != (Lists{First: 1, Cheaper: 1}) || s.LastError != "" {
		t.Errorf("%+v", s)
	}
	if probe := next(t, c, h); !probe.metadata { // the stream is kept as the first one was
		t.Errorf("%+v", probe)
	}
}

// longBreak is a relay at version 11 that has missed so much that it is listed, and the watch of metadata beside the
// list.
func longBreak(t *testing.T) (c *testingclock.FakeClock, h *holder, r *relay.Relay, stream, beside *held) {
	t.Helper()
	c, h, r, _, plain := resumed(t)
	plain.frames <- largeFrame(t, wire.Modified, "x", 11)
	eventually(t, "the event", func() bool { return r.Status().Version == 11 })
	for stream == nil { // no watch brings anything, nor ends: the link is dead
		switch w := next(t, c, h); {
		case w.version == "":
			stream = w
		case w.metadata:
			beside = w
		}
	}
	for beside == nil || !beside.open() {
		if w := next(t, c, h); w.metadata {
			beside = w
		}
	}
	if beside.version != "11" {
		t.Fatalf("%+v", beside)
	}
	return c, h, r, stream, beside
}

// A relay that has heard nothing for some seconds asks how far its new upstream is before a watch of it pours, and if
// that is not far, its first watch brings a bookmark soon: until then nobody knows that it is fresh. One that heard
// lately spares itself the round trip.
func TestLateRelayAsksFirst(t *testing.T) {
	for age, want := range map[time.Duration][]string{
		member.LateAfter: {"watch of 10 s", "question"}, member.LateAfter + time.Second: {"question", "watch of 3 s"},
	} {
		c := testingclock.NewFakeClock(time.Now())
		r := relayBy(t, c)
		if err := r.Replace(1000, []*wire.Object{slice(t, "a", 1000)}); err != nil {
			t.Fatal(err)
		}
		c.Step(age)
		cloud, asked := stateOf(t, 1001, slice(t, "a", 1000), slice(t, "b", 1001)), make(chan string, 100)
		up := serve(t, "cloud", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			what, q := "question", req.URL.Query()
			if q.Get("watch") != "" {
				what = "watch of " + q.Get("timeoutSeconds") + " s"
			}
			asked <- what
			(&rest.Handler{Source: cloud}).ServeHTTP(w, req)
		}))
		up.Consistent, up.Gzip = true, true
		f, err := NewFeeder(Config{Relay: r, WatchTimeout: 10 * time.Second, Clock: c})
		if err != nil {
			t.Fatal(err)
		}
		run(t, f.Run)
		f.Use(up)
		first := <-asked
		got := []string{first, <-asked}
		for got[1] == first { // the cloud may have to be asked for an object as well
			got[1] = <-asked
		}
		if !slices.Equal(got, want) {
			t.Errorf("after %v of silence: %q, want %q", age, got, want)
		}
	}
}

// The metadata beside a list are for the one that has seen more than the relay holds. Where nobody can have, they are
// not paid for.
func TestNobodyNeedsATrail(t *testing.T) {
	for name, test := range map[string]struct{ feeds, restored, want bool }{
		"it feeds others": {feeds: true, want: true}, "its disk was behind its clients": {restored: true, want: true},
		"neither": {},
	} {
		t.Run(name, func(t *testing.T) {
			c := testingclock.NewFakeClock(time.Now())
			r := relayBy(t, c)
			large, err := wire.NewEventReader(bytes.NewReader(largeFrame(t, wire.Modified, "a", 1001)), wire.Protobuf,
				r.Resource().WireKind()).Next()
			fatal(t, err)
			if test.restored {
				x := r.Restoration(1000)
				fatal(t, x.Add(slice(t, "a", 1000)))
				fatal(t, x.Apply(&mvcc.Event{Version: 1001, Cur: large.Object}))
				fatal(t, x.Finish(c.Now()))
			} else {
				fatal(t, r.Replace(1000, []*wire.Object{slice(t, "a", 1000)}))
				fatal(t, r.Apply(large))
			}
			c.Step(time.Minute)
			cloud, asked := stateOf(t, 1100, slice(t, "a", 1100)), make(chan string, 100)
			up := serve(t, "cloud", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if q := req.URL.Query(); q.Get("watch") != "" {
					asked <- cmp.Or(q.Get("resourceVersion"), "list")
				}
				(&rest.Handler{Source: cloud}).ServeHTTP(w, req)
			}))
			up.Consistent, up.Gzip = true, true
			f, err := NewFeeder(Config{
				Relay: r, WatchTimeout: 10 * time.Second, Clock: c, Feeds: func() bool { return test.feeds },
			})
			fatal(t, err)
			run(t, f.Run)
			f.Use(up)
			eventually(t, "the list", func() bool {
				c.Step(10 * time.Millisecond)
				return r.Status().Version >= 1100
			})
			trail := false
			for len(asked) > 0 {
				trail = <-asked == "1001" || trail
			}
			if trail != test.want {
				t.Errorf("it asked what happened since 1001: %v, want %v", trail, test.want)
			}
			if !r.Resumable(1001) {
				t.Error("who is where the relay was has to list")
			}
		})
	}
}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open reports whether the client still reads.
func (h *held) open() bool {
	select {
	case <-h.gone:
		return false
	default:
		return true
	}
}

// After a long silence a list costs less than what was missed. It does not wait long for the metadata beside it.
func TestLongBreakIsListed(t *testing.T) {
	c, _, r, stream, _ := longBreak(t)
	stream.frames <- frame(t, wire.Added, "x", 30)
	stream.frames <- frame(t, wire.Added, "z", 20)
	stream.frames <- initialEnd(t, 30)
	eventually(t, "the list", func() bool {
		c.Step(10 * time.Millisecond)
		s := r.Status()
		return s.Version == 30 && s.Objects == 2
	})
	if r.Resumable(20) {
		t.Error("nobody knows what happened until 20")
	}
}

// The metadata beside such a list tell what happened on the way, and a client that has seen a part of it goes on: after
// a loss of power clients have seen more than was on the disk.
func TestLongBreakHasATrail(t *testing.T) {
	_, h, r, stream, beside := longBreak(t)
	beside.frames <- metaFrame(t, wire.Modified, "x", 15)
	stream.frames <- frame(t, wire.Added, "x", 30)
	stream.frames <- frame(t, wire.Added, "z", 20)
	stream.frames <- initialEnd(t, 30)
	beside.frames <- metaFrame(t, wire.Added, "g", 16)
	beside.frames <- metaFrame(t, wire.Added, "z", 20)
	if v := r.Status().Version; v != 11 {
		t.Fatalf("at %d before the way is known", v)
	}
	beside.frames <- metaFrame(t, wire.Modified, "x", 30)
	told := comes(t, "a watch", h.watches) // of what came and went
	if told.version != "11" || told.metadata {
		t.Fatalf("%+v", told)
	}
	told.frames <- frame(t, wire.Added, "g", 16)
	told.frames <- frame(t, wire.Deleted, "g", 29)
	eventually(t, "the list", func() bool { return r.Status().Version == 30 })
	comes(t, "the end of the watch of metadata", beside.gone)
	for _, version := range []uint64{11, 15, 18, 20, 29, 30} {
		if !r.Resumable(version) {
			t.Errorf("a client that has seen %d has to list", version)
		}
	}
}

// TestCoordinatorBeganAnew: a hub starts from a disk that lacks its last changes, and the coordinator has lost its own:
// it knows no more of the way than the list does. The cloud does, and clients of the hub that have seen a part of it go
// on.
func TestCoordinatorBeganAnew(t *testing.T) {
	for name, test := range map[string]struct{ there, restored, nobody bool }{
		"with the cloud": {there: true, restored: true}, "without": {restored: true}, "as it was all the time": {there: true},
		"a replica, which never asks": {restored: true, nobody: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRelay(t)
			if test.restored {
				x := r.Restoration(1000)
				fatal(t, x.Add(slice(t, "a", 1000)))
				fatal(t, x.Finish(time.Now()))
			} else {
				fatal(t, r.Replace(1000, []*wire.Object{slice(t, "a", 1000)}))
			}
			cloud := stateOf(t, 1000, slice(t, "a", 1000))
			put(t, cloud, "a", 1003)
			put(t, cloud, "b", 1007)
			put(t, cloud, "a", 1010)
			var asked atomic.Int32
			judge := serve(t, "cloud", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				asked.Add(1)
				(&rest.Handler{Source: cloud}).ServeHTTP(w, req)
			}))
			judge.Consistent = true
			c := Config{Relay: r, Judge: func() *hop.Upstream {
				if !test.there {
					return nil
				}
				return judge
			}}
			if test.nobody {
				c.Judge = nil
			}
			f, err := NewFeeder(c)
			fatal(t, err)
			run(t, f.Run)
			f.Use(serve(t, "coordinator", &rest.Handler{Source: stateOf(t, 1010, slice(t, "a", 1010), slice(t, "b", 1007))}))
			eventually(t, "the coordinator's state", func() bool { return r.Status().Version == 1010 })
			if got, want := r.Resumable(1003), test.there && test.restored; got != want {
				t.Errorf("a client that has seen 1003 goes on: %v, want %v", got, want)
			}
			if !r.Resumable(1000) || test.restored && test.there != (asked.Load() > 0) || !test.restored && asked.Load() > 0 {
				t.Errorf("the cloud was asked %d times; who has seen 1000 goes on: %v", asked.Load(), r.Resumable(1000))
			}
		})
	}
}
