package source

import (
	"compress/gzip"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source/hop"
)

// held is a watch that a test answers frame by frame.
type held struct {
	version  string // from where it was asked for; "" for a streaming list
	metadata bool
	frames   chan []byte // closed: the watch ends
	gone     <-chan struct{}
}

// holder is a cloud whose watches are held; streaming lists are compressed as kube-apiserver's are, a member per flush.
type holder struct{ watches chan *held }

func (h *holder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	q := req.URL.Query()
	x := &held{
		version: q.Get("resourceVersion"), metadata: strings.Contains(req.Header.Get("Accept"), ";as=PartialObjectMetadata;"),
		frames: make(chan []byte), gone: req.Context().Done(),
	}
	gzipped := q.Get("sendInitialEvents") == "true" && req.Header.Get("Accept-Encoding") == "gzip"
	w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf"+";stream=watch")
	if gzipped {
		w.Header().Set("Content-Encoding", "gzip")
	}
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	select {
	case h.watches <- x:
	case <-x.gone:
		return
	}
	for {
		select {
		case b, ok := <-x.frames:
			if !ok {
				return
			}
			if gzipped {
				z := gzip.NewWriter(w)
				_, _ = z.Write(b)
				_ = z.Close()
			} else {
				_, _ = w.Write(b)
			}
			w.(http.Flusher).Flush()
		case <-req.Context().Done():
			return
		}
	}
}

func bookmark(t *testing.T, version uint64) []byte {
	t.Helper()
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: wire.FormatVersion(version)}}
	raw, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return wire.AppendProtobufFrame(nil, wire.Bookmark, hop.MetadataKind, raw)
}

func metaFrame(t *testing.T, typ, name string, version uint64) []byte {
	t.Helper()
	return wire.AppendProtobufFrame(nil, typ, hop.MetadataKind, slice(t, name, version).Raw)
}

// metaEnd ends the initial events of a streaming list of metadata.
func metaEnd(t *testing.T, version uint64) []byte {
	t.Helper()
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: wire.FormatVersion(version), Annotations: map[string]string{
			metav1.InitialEventsAnnotationKey: "true",
		},
	}}
	raw, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return wire.AppendProtobufFrame(nil, wire.Bookmark, hop.MetadataKind, raw)
}

// quietStream is a relay that was filled by a compressed stream, at version 10, on which nothing more came until the
// first watch of metadata was opened.
func quietStream(t *testing.T) (c *testingclock.FakeClock, h *holder, r *relay.Relay, f *Feeder, stream, probe *held) {
	t.Helper()
	c, h = testingclock.NewFakeClock(time.Now()), &holder{watches: make(chan *held)}
	r = relayBy(t, c)
	f, err := NewFeeder(Config{Relay: r, WatchTimeout: 3 * time.Second, Clock: c})
	if err != nil {
		t.Fatal(err)
	}
	up := serve(t, "cloud", h)
	up.Gzip = true
	run(t, f.Run)
	f.Use(up)
	stream = comes(t, "the stream", h.watches)
	if stream.version != "" {
		t.Fatalf("the first watch is from %s", stream.version)
	}
	stream.frames <- append(frame(t, wire.Added, "x", 9), initialEnd(t, 10)...)
	return c, h, r, f, stream, next(t, c, h)
}

// next lets time pass until another watch is opened.
func next(t *testing.T, c *testingclock.FakeClock, h *holder) (w *held) {
	t.Helper()
	eventually(t, "another watch", func() bool {
		select {
		case w = <-h.watches:
			return true
		case <-time.After(5 * time.Millisecond): // for those who were woken
			c.Step(100 * time.Millisecond)
			return false
		}
	})
	return w
}

func TestCompressedStreamIsKept(t *testing.T) {
	c, h, r, f, stream, probe := quietStream(t)
	if probe.version != "10" || !probe.metadata {
		t.Fatalf("%+v", probe)
	}
	before := r.Status().ProgressAt
	probe.frames <- bookmark(t, 12)
	eventually(t, "the bookmark", func() bool { return r.Status().Version == 12 })
	if !r.Status().ProgressAt.After(before) {
		t.Error("a bookmark beside the stream is no sign of life")
	}
	close(probe.frames)
	probe = next(t, c, h) // the stream is still quiet
	if probe.version != "12" || !probe.metadata {
		t.Fatalf("%+v", probe)
	}
	probe.frames <- metaFrame(t, wire.Modified, "x", 13)
	comes(t, "the end of the watch of metadata", probe.gone)
	if v := r.Status().Version; v != 12 {
		t.Errorf("the metadata alone brought the relay to %d", v)
	}
	stream.frames <- frame(t, wire.Modified, "x", 13)
	eventually(t, "the event", func() bool { return r.Status().Version == 13 })
	probe = next(t, c, h)
	if probe.version != "13" || !probe.metadata {
		t.Fatalf("%+v", probe)
	}
	stream.frames <- frame(t, wire.Modified, "x", 14) // the stream is first
	comes(t, "the end of the watch of metadata", probe.gone)
	eventually(t, "the event", func() bool { return r.Status().Version == 14 })
	if s := f.Status(); s.Lists.Total() != 1 || s.LastError != "" {
		t.Errorf("%+v", s)
	}
}

func TestStreamThatStandsStill(t *testing.T) {
	c, h, _, f, stream, probe := quietStream(t)
	probe.frames <- metaFrame(t, wire.Modified, "x", 11) // and the stream does not bring it
	comes(t, "the end of the watch of metadata", probe.gone)
	plain := next(t, c, h)
	comes(t, "the end of the stream", stream.gone)
	if plain.version != "10" || plain.metadata {
		t.Errorf("%+v", plain)
	}
	if s := f.Status(); s.Lists.Total() != 1 || !strings.Contains(s.LastError, "has not brought version 11") {
		t.Errorf("%+v", s)
	}
}

func TestDeadLinkUnderQuietStream(t *testing.T) {
	c, h, _, f, stream, _ := quietStream(t)
	plain := next(t, c, h) // the watch of metadata never ends
	comes(t, "the end of the stream", stream.gone)
	if plain.version != "10" || plain.metadata {
		t.Errorf("%+v", plain)
	}
	if s := f.Status(); !strings.Contains(s.LastError, "the link is dead") {
		t.Errorf("%+v", s)
	}
}

// An upstream that ends each watch at once is not asked without rest.
func TestWatchThatEndsAtOnce(t *testing.T) {
	c, h, _, f, stream, _ := quietStream(t)
	close(stream.frames)
	for range 3 {
		plain := next(t, c, h)
		if plain.metadata { // still of the stream
			continue
		}
		close(plain.frames)
		eventually(t, "the failure", func() bool { return strings.Contains(f.Status().LastError, "at once") })
	}
}

// What is asked over a link that answers nothing comes all at once when it is back: no watch of metadata is opened
// meanwhile.
func TestSilentLinkIsNotAsked(t *testing.T) {
	c, h, r, f, stream, probe := quietStream(t)
	var silent atomic.Bool
	silent.Store(true)
	f.mu.Lock()
	f.up.Silent = silent.Load
	f.mu.Unlock()
	stream.frames <- frame(t, wire.Modified, "x", 11)
	comes(t, "the end of the watch of metadata", probe.gone)
	eventually(t, "the event", func() bool { return r.Status().Version == 11 })
	for range 100 {
		c.Step(100 * time.Millisecond)
		select {
		case w := <-h.watches:
			t.Fatalf("a watch from %s over a silent link", w.version)
		default:
		}
	}
	silent.Store(false)
	if probe = next(t, c, h); !probe.metadata {
		t.Errorf("%+v", probe)
	}
}
