package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

func (h *Handler) watch(w http.ResponseWriter, req *http.Request, q *query) error {
	flusher, ok := w.(http.Flusher)
	if !ok {
		return fmt.Errorf("watch: %T cannot flush", w)
	}
	o := relay.WatchOptions{
		At: q.at, Selector: q.selector, Wait: q.opts.SendInitialEvents != nil, Initial: q.opts.SendInitialEvents != nil &&
			*q.opts.SendInitialEvents,
		Past: req.Header.Get(PastHeader) != "", Bookmarks: q.opts.AllowWatchBookmarks,
		Progress: req.Header.Get(ProgressHeader) != "", Calm: parseCalm(req.Header.Get(ProgressHeader)),
	}
	if t := q.opts.TimeoutSeconds; t != nil && *t > 0 {
		o.Timeout = time.Duration(min(*t, int64(2*relay.MinWatch/time.Second))) * time.Second
	}
	cur, laid, err := h.open(req.Context(), o)
	now := h.Status()
	switch denied := h.Denied(); {
	case err == nil:
		TellHistory(w.Header(), cur.History())
	case !now.Synced && o.Version > 0 && !o.Initial && o.History == nil:
		// told 503, client-go lists as soon as there is something to list.
		return apierrors.NewTooManyRequests(relay.StatusOf(err).Message, 1)
	case !now.Synced:
		return err
	case denied != nil:
		return denied
	default:
		TellHistory(w.Header(), now.History)
		if q.at.History != nil { // it looks at the header, and need not read a stream
			return err
		}
	}
	w.Header().Set("Content-Type", q.out.stream())
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(http.StatusOK)
	if err != nil { // as kube-apiserver: once a watch is accepted, errors are events
		_, _ = w.Write(h.encoder(q.out).failure(err))
		flusher.Flush()
		return nil
	}
	flusher.Flush()
	s := h.stream(w, req)
	defer s.Close()
	x := sender{cur: cur, laid: laid, e: h.encoder(q.out), stream: s, w: w, flush: flusher.Flush}
	if err := x.run(req.Context(), h.Clock()); err != nil && !errors.Is(err, errGone) {
		h.logger().Warn("watch ended", "client", req.UserAgent()+" "+req.RemoteAddr, "err", err)
	}
	return nil
}

// sender writes what a cursor gives to a client.
type sender struct {
	cur    *relay.Cursor
	laid   Laid // over what cur gives; nil: nothing
	e      *encoder
	stream *relay.Stream
	w      io.Writer
	flush  func()
	buffer []byte // frames gathered
	lent   *[]byte
}

var (
	errGone = errors.New("the client is gone")

	taken = sync.Pool{New: func() any { s := make([]relay.Event, 0, relay.WatchBatch+4); return &s }}
)

// run returns nil at the end of the watch, or of ctx.
func (x *sender) run(ctx context.Context, clk clock.Clock) error {
	next := clk.NewTimer(time.Hour)
	defer next.Stop()
	for {
		var changed <-chan struct{}
		if x.laid != nil {
			changed = x.laid.Changed()
		}
		wait, err := x.drain()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		next.Reset(wait.Until.Sub(clk.Now()))
		select {
		case <-wait.Changed:
		case <-changed:
		case <-next.C():
		case <-ctx.Done():
			return nil
		}
	}
}

// drain writes all that the cursor gives. What comes at once is written together.
func (x *sender) drain() (wait relay.Wait, err error) {
	defer x.giveBack()
	lent := taken.Get().(*[]relay.Event)
	defer taken.Put(lent)
	written := false
	for {
		events, wait, ended := x.cur.Read((*lent)[:0])
		x.stream.At(x.cur)
		more := len(events) > 0
		if x.laid != nil {
			var over bool
			if events, over = x.laid.Lay(events); over && ended == nil {
				ended = io.EOF
			}
		}
		if err := x.sendAll(events); err != nil {
			return wait, err
		}
		written = written || len(events) > 0
		clear(events) // what the ring drops should be collected
		if ended != nil && !errors.Is(ended, io.EOF) {
			x.gather(x.e.failure(ended))
			ended, written = io.EOF, true
		}
		if more && ended == nil {
			continue
		}
		if err := x.writeBuffer(); err != nil {
			return wait, err
		}
		if written {
			x.flush()
		}
		return wait, ended
	}
}

// sendAll writes or gathers events; a lone one is written from where it is.
func (x *sender) sendAll(events []relay.Event) error {
	if x.e.out.delta {
		var err error
		if events, err = x.together(events); err != nil {
			return err
		}
	}
	for i := range events {
		ev := &events[i]
		if ev.Object != nil && !ev.Shared() && !x.e.out.delta { // one of many initial ones
			body, err := x.e.object(ev.Object, false)
			if err != nil {
				return err
			}
			x.borrow()
			x.buffer = x.e.appendFrame(x.buffer, ev.Type, body)
			if len(x.buffer) < chunk {
				continue
			}
			if err := x.writeBuffer(); err != nil {
				return err
			}
			continue
		}
		frame, err := x.e.frame(ev)
		if err != nil {
			return err
		}
		if len(x.buffer)+len(frame) > chunk {
			if err := x.writeBuffer(); err != nil {
				return err
			}
		}
		if len(x.buffer) == 0 && (len(events) == 1 || len(frame) >= chunk) {
			if err := x.write(frame); err != nil {
				return err
			}
			continue
		}
		x.gather(frame)
	}
	return nil
}

// together writes the initial objects that events begin with as few frames, and returns the rest. What the reader has
// is named alone.
func (x *sender) together(events []relay.Event) ([]relay.Event, error) {
	for len(events) > 0 && events[0].Object != nil && !events[0].Shared() {
		var frames [][]byte
		var names []byte
		for size := 0; size < largeChunk && len(events) > 0 && events[0].Object != nil && !events[0].Shared(); {
			if o := events[0].Object; o.Version <= x.e.out.since {
				names, events = wire.AppendDeltaName(names, o), events[1:]
				continue
			}
			frame, err := x.e.encodeFrame(events[0].Type, events[0].Object)
			if err != nil {
				return nil, err
			}
			size += len(frame)
			frames, events = append(frames, frame), events[1:]
		}
		if len(names) > 0 {
			x.gather(wire.AppendDeltaSame(nil, names))
		}
		if len(frames) > 0 {
			x.gather(wire.AppendDeltaEvents(nil, frames...))
		}
		if err := x.writeBuffer(); err != nil {
			return nil, err
		}
	}
	return events, nil
}

func (x *sender) gather(frame []byte) {
	x.borrow()
	x.buffer = append(x.buffer, frame...)
}

// borrow takes a buffer that is given back before the watch waits again: idle watchers hold none.
func (x *sender) borrow() {
	if x.lent == nil {
		x.lent = chunks.Get().(*[]byte)
		x.buffer = (*x.lent)[:0]
	}
}

func (x *sender) giveBack() {
	if x.lent != nil {
		chunks.Put(x.lent)
		x.lent, x.buffer = nil, nil
	}
}

func (x *sender) writeBuffer() error {
	if len(x.buffer) == 0 {
		return nil
	}
	err := x.write(x.buffer)
	x.buffer = x.buffer[:0]
	return err
}

func (x *sender) write(p []byte) error {
	if err := x.stream.Write(x.w.Write, p); err != nil {
		return errGone
	}
	return nil
}

// failure is the ERROR event of a watch.
func (e *encoder) failure(err error) (frame []byte) {
	s := relay.StatusOf(err)
	if e.out.media == mediaProtobuf {
		raw, _ := s.Marshal()
		frame = wire.AppendProtobufFrame(nil, wire.Error, statusKind, raw)
	} else {
		body, _ := json.Marshal(s)
		frame = wire.AppendJSONFrame(nil, wire.Error, body)
	}
	if e.out.delta {
		return wire.AppendDeltaEvents(nil, frame)
	}
	return frame
}
