package filter

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/encoding/protowire"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-edge/weir/impl/relay/wire"
)

var errEnded = errors.New("the watch has ended")

// stream is the watch of one client.
type stream struct {
	f      *topology
	w      http.ResponseWriter
	q      reading
	enc    wire.Encoding
	cancel context.CancelFunc
	behind atomic.Bool // somebody waits to tell the client of another view

	mu       sync.Mutex
	view     *view
	position uint64 // version that the client has; 0: not known
	hidden   map[string]bool
	owed     *view // what the client had before all was shown to it again
	buf, out []byte
	ended    bool
	taught   map[string]scope
}

func newStream(f *topology, w http.ResponseWriter, q reading, enc wire.Encoding, cancel context.CancelFunc) *stream {
	s := &stream{f: f, w: w, q: q, enc: enc, cancel: cancel, hidden: map[string]bool{}, taught: map[string]scope{}}
	if !q.asked.IsTrue("sendInitialEvents") {
		s.position, _ = wire.ParseVersion(q.asked.Query.Get("resourceVersion")) // 0: it says none
	}
	return s
}

// begin makes the stream follow the view, from what its client has.
func (s *stream) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := true
	s.view = s.f.now()
	if !s.q.follows() {
		return
	}
	if s.position > 0 {
		s.view, known = s.f.had(s.q.client, s.position)
	} else if had := s.f.listed(s.q.client, s.view); had != s.view {
		s.owed = had
	}
	s.f.join(s)
	if !known {
		s.expire(s.view)
		return
	}
	s.catchUp()
}

// end takes the stream away from those that follow.
func (s *stream) end() {
	s.f.leave(s)
	s.mu.Lock() // nobody writes any more
	s.ended = true
	s.mu.Unlock()
}

func (s *stream) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		_ = http.NewResponseController(s.w).Flush()
	}
}

// write takes what comes from the one that answers.
func (s *stream) write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.q.follows() && !s.ended {
		s.catchUp() // what comes now is behind the change of topology: see topology.had
	}
	if s.ended {
		return 0, errEnded
	}
	s.buf = append(s.buf, p...)
	s.out = s.out[:0]
	rest := s.buf
	for {
		n := frameLength(s.enc, rest)
		if n == 0 {
			break
		}
		if n < 0 { // not to be understood: it passes as it is
			s.out = append(s.out, rest...)
			rest = nil
			break
		}
		s.event(rest[:n])
		rest = rest[n:]
	}
	s.buf = append(s.buf[:0], rest...)
	if len(s.taught) > 0 { // first of all: see topology.keep
		s.f.learn(s.taught)
		clear(s.taught)
	}
	var err error
	if len(s.out) > 0 {
		_, err = s.w.Write(s.out)
	}
	if old := s.owed; old != nil && s.position > 0 && !s.ended {
		s.owed = nil
		now := s.view
		s.view = old
		s.catchUpTo(now)
	}
	return len(p), err
}

// frameLength tells how long the first frame is, 0 if it is not whole yet, less if it is none.
func frameLength(enc wire.Encoding, b []byte) int {
	if enc == wire.Protobuf {
		if len(b) < 4 {
			return 0
		}
		n := int(binary.BigEndian.Uint32(b))
		switch {
		case n > wire.MaxObject:
			return -1
		case len(b) < 4+n:
			return 0
		}
		return 4 + n
	}
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth < 0 {
				return -1
			}
			if depth == 0 {
				if i++; i < len(b) && b[i] == '\n' {
					i++
				}
				return i
			}
		}
	}
	if len(b) > wire.MaxObject {
		return -1
	}
	return 0
}

// event appends to out what the client is told of one event.
func (s *stream) event(frame []byte) {
	kind := kindOf(s.q.use.resource)
	ev, err := wire.NewEventReader(bytes.NewReader(frame), s.enc, kind).Next()
	if err != nil {
		s.f.Logger.Debug("an event passes unfiltered", "component", s.q.use.component, "resource", s.q.use.resource.Name,
			"err", err)
	}
	if err != nil || ev.Type == wire.Error {
		s.out = append(s.out, frame...)
		return
	}
	if ev.Type == wire.Bookmark || s.position > 0 { // initial events have versions in no order
		s.position = ev.Version
	}
	if ev.Object == nil {
		s.out = append(s.out, frame...)
		return
	}
	if ev.Type == wire.Deleted && s.q.learns() {
		s.taught[ev.Object.Namespace+"/"+ev.Object.Name] = anywhere
	} else {
		s.q.teach(s.enc, ev.Object, s.taught)
	}
	raw, shown := s.q.apply(s.view, s.enc, ev.Object)
	hidden, typ := s.hidden[ev.Object.Key], ev.Type
	switch {
	case typ == wire.Deleted:
		delete(s.hidden, ev.Object.Key)
		if hidden {
			return
		}
		if !shown {
			raw = ev.Object.Raw
		}
	case shown && hidden:
		delete(s.hidden, ev.Object.Key)
		typ = wire.Added
	case !shown:
		s.hidden[ev.Object.Key] = true
		if hidden || typ == wire.Added {
			return
		}
		typ, raw = wire.Deleted, ev.Object.Raw
	}
	if typ == ev.Type && bytes.Equal(raw, ev.Object.Raw) {
		s.out = append(s.out, frame...)
		return
	}
	s.frame(typ, kind, raw)
}

func (s *stream) frame(typ string, kind wire.Kind, raw []byte) {
	if s.enc == wire.JSON {
		s.out = wire.AppendJSONFrame(s.out, typ, raw)
		return
	}
	s.out = wire.AppendProtobufFrame(s.out, typ, kind, raw)
}

// follow tells the client what another view makes of what it has. It does not wait for a client that takes nothing: the
// goroutine that it starts does, of which a stream has one at most, until the stream ends.
func (s *stream) follow() {
	if s.behind.Swap(true) {
		return
	}
	go func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.behind.Store(false)
		if !s.ended {
			s.catchUp()
		}
	}()
}

// catchUp brings the client from its view to that of now. mu is held.
func (s *stream) catchUp() {
	s.catchUpTo(s.f.now())
}

func (s *stream) catchUpTo(now *view) {
	old := s.view
	s.view = now
	switch {
	case old == now || old.equal(now):
	case s.retell(old, now):
		s.f.told(s.q.client, old, now, s.position, false)
	default:
		s.expire(old)
	}
}

// retell writes DELETED and ADDED for all that looks different now; false if it is not known what the client has.
func (s *stream) retell(old, v *view) bool {
	sel, err := labels.Parse(s.q.asked.Query.Get("labelSelector"))
	if err != nil || s.f.Slices == nil || s.enc != wire.Protobuf || s.position == 0 ||
		s.q.asked.Query.Get("fieldSelector") != "" ||
		s.q.asked.Odd || !s.q.asked.IsTrue("allowWatchBookmarks") {
		return false
	}
	kind := kindOf(s.q.use.resource)
	s.out = s.out[:0]
	version, all := s.f.Slices()
	if version < s.position { // a relay behind its client
		return false
	}
	for o := range all {
		if o.Version > s.position || s.q.asked.Namespace != "" && o.Namespace != s.q.asked.Namespace ||
			!sel.Matches(o.Labels) {
			continue
		}
		before, _ := s.q.apply(old, s.enc, o)
		now, _ := s.q.apply(v, s.enc, o)
		if bytes.Equal(before, now) {
			continue
		}
		gone, err := wire.ParseObject(s.enc, before)
		if err == nil {
			gone, err = gone.WithVersion(s.enc, s.position)
		}
		if err != nil {
			return false
		}
		s.frame(wire.Deleted, kind, gone.Raw)
		s.frame(wire.Added, kind, now)
	}
	if len(s.out) == 0 {
		return true
	}
	s.frame(wire.Bookmark, kind, bookmark(s.position))
	_, _ = s.w.Write(s.out)
	_ = http.NewResponseController(s.w).Flush()
	return true
}

// bookmark is an object with nothing but a version.
func bookmark(version uint64) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, fieldMeta, protowire.BytesType),
		appendString(nil, metaVersion, wire.FormatVersion(version)))
}

// expire ends the watch so that the client lists. mu is held.
func (s *stream) expire(had *view) {
	s.f.told(s.q.client, had, s.f.now(), s.position, true)
	status := apierrors.NewResourceExpired("what this client is shown has changed").Status()
	status.Kind, status.APIVersion = "Status", "v1"
	s.out = s.out[:0]
	if s.enc == wire.JSON {
		if b, err := json.Marshal(status); err == nil {
			s.out = wire.AppendJSONFrame(s.out, wire.Error, b)
		}
	} else if b, err := status.Marshal(); err == nil {
		s.out = wire.AppendProtobufFrame(s.out, wire.Error, wire.Kind{APIVersion: "v1", Kind: "Status"}, b)
	}
	_, _ = s.w.Write(s.out)
	_ = http.NewResponseController(s.w).Flush()
	s.ended = true
	s.cancel()
}
