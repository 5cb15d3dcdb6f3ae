package relay

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// stuckWriter is a client that reads nothing of the body before it is let go.
type stuckWriter struct {
	*httptest.ResponseRecorder
	stuck chan struct{} // closed at the first write
	once  sync.Once
	goOn  chan struct{}
}

func (w *stuckWriter) Write(p []byte) (int, error) {
	w.once.Do(func() { close(w.stuck) })
	<-w.goOn
	return w.ResponseRecorder.Write(p)
}

// A client that reads again after the ring has passed it gets no event behind a gap: its watch ends.
func TestWatcherBehindTheRing(t *testing.T) {
	r := newRelay(t, func(c *Config) { c.RingBytes, c.Gather = 64<<10, -1 })
	replace(t, r, 10)
	w := &stuckWriter{ResponseRecorder: httptest.NewRecorder(), stuck: make(chan struct{}), goOn: make(chan struct{})}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, slicesPath+"?watch=1&resourceVersion=10&timeoutSeconds=60", nil)
	req.Header.Set("Accept", mediaProtobuf)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.ServeHTTP(w, req)
	}()
	eventually(t, "the watch", func() bool { return r.Status().Watchers == 1 })
	version := uint64(11)
	apply(t, r, wire.Added, slice(t, "a/0", version))
	<-w.stuck
	for r.Resumable(12) { // what it has taken is one event at least, and what it takes at once is bounded
		for range watchBatch {
			version++
			apply(t, r, wire.Added, slice(t, fmt.Sprint("a/", version), version))
		}
	}
	close(w.goOn)
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("a watch that the ring has passed is still open")
	}
	events := wire.NewEventReader(bytes.NewReader(w.Body.Bytes()), wire.Protobuf, sliceResource(t).WireKind())
	for want := uint64(11); ; want++ {
		ev, err := events.Next()
		if err != nil {
			break
		}
		if ev.Version != want {
			t.Fatalf("behind event %d came %s %d: events between are lost in silence", want-1, ev.Type, ev.Version)
		}
	}
}

// Who resumes where a batch begins of which the ring has dropped a part would miss deletions: 410.
func TestBatchTrimmedInPart(t *testing.T) {
	r := newRelay(t, func(c *Config) { c.RingBytes, c.Gather = 64<<10, -1 })
	big := strings.Repeat("x", 8<<10)
	replace(t, r, 10, slice(t, "a/0", 1, "big", big), slice(t, "a/1", 2, "big", big), slice(t, "a/2", 3, "big", big))
	replace(t, r, 20) // a batch of three deletions
	srv := serve(t, r)
	first := r.ring.base
	for version := uint64(21); r.ring.base == first; version++ {
		apply(t, r, wire.Added, slice(t, fmt.Sprint("a/", version), version, "big", big))
	}
	if b := r.ring.events[0].batch; b == nil || b.from != 10 {
		t.Fatalf("the ring begins with %+v, not inside the batch", r.ring.events[0])
	}
	for _, v := range []uint64{10, 15, 19} {
		if r.Resumable(v) {
			t.Errorf("resumable at %d, though deletions of the batch from 10 to 20 are gone", v)
		}
		watch(t, srv, fmt.Sprint("resourceVersion=", v)).want("ERROR 410", "EOF")
	}
	watch(t, srv, "resourceVersion=20").want("ADDED a/21 21")
}

// A relay that is behind a client vouches for nothing: no bookmark comes before it has caught up.
func TestNoBookmarkWhileBehind(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	r := newRelay(t, withClock(clock))
	replace(t, r, 10, slice(t, "a/x", 5))
	w := watch(t, serve(t, r), "resourceVersion=40&allowWatchBookmarks=true&timeoutSeconds=100")
	asleep := func() bool { return r.Status().Watchers == 1 && clock.HasWaiters() }
	eventually(t, "the watch to sleep", asleep)
	clock.Step(61 * time.Second)
	eventually(t, "the watch to sleep", asleep)
	apply(t, r, wire.Modified, slice(t, "a/x", 30)) // which the client has seen
	bookmark(t, r, 41)
	eventually(t, "the watch to sleep", asleep)
	clock.Step(37 * time.Second)
	w.want("BOOKMARK 41")
	eventually(t, "the watch to sleep", asleep)
	clock.Step(2 * time.Second)
	w.want("EOF")
}
