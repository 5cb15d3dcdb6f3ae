package rest

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/relay"
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
	r := newRelay(t, func(c *relay.Config) { c.RingBytes, c.Gather = 64<<10, -1 })
	replace(t, r, 10)
	w := &stuckWriter{ResponseRecorder: httptest.NewRecorder(), stuck: make(chan struct{}), goOn: make(chan struct{})}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet,
		slicesPath+"?watch=1&resourceVersion=10&timeoutSeconds=60", nil)
	req.Header.Set("Accept", mediaProtobuf)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		(&Handler{Source: r}).ServeHTTP(w, req)
	}()
	eventually(t, "the watch", func() bool { return r.Status().Watchers == 1 })
	version := uint64(11)
	apply(t, r, wire.Added, slice(t, "a/0", version))
	<-w.stuck
	for r.Resumable(12) { // what it has taken is one event at least, and what it takes at once is bounded
		for range relay.WatchBatch {
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
