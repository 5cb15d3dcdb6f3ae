package relay

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// ProgressHeader on a watch request asks for every bookmark as it comes from upstream, so that the freshness of a relay
// passes along a chain of relays, and for a Testimony. Other clients get bookmarks about once a minute and before their timeout;
// these prove nothing about the freshness of a relay.
const ProgressHeader = "Weir-Progress"

// PastHeader on a request for a streaming list asks for the objects as they were at the oldest version from which a watch can resume,
// and all events since. A relay that begins so can serve whom this one can serve: its clients resume at the versions they have seen.
const PastHeader = "Weir-Past"

const (
	bookmarkEvery  = time.Minute     // bookmarkFrequency in storage/cacher
	bookmarkBefore = 2 * time.Second // before the timeout: nextBookmarkTime in storage/cacher
	watchBatch     = 64              // events taken from the ring at once
)

// watcher is one watch being served.
type watcher struct {
	r       *Relay
	w       http.ResponseWriter
	flush   http.Flusher
	q       *request
	e       *encoder
	s       *stream
	epoch   uint64
	said    uint64  // when the relay last testified to the client; 0: never
	seq     uint64  // next event
	after   uint64  // the client has seen this version
	sent    uint64  // version of the last frame
	ahead   bool    // the client has seen more than the relay: no bookmark can be vouched for
	every   bool    // every bookmark, as it comes, and where a batch begins: the client is a relay
	past    bool    // initial objects are those of the oldest version
	inside  *batch  // being sent
	history History // in which it began
	ended   <-chan struct{}
	buffer  []byte // frames gathered
	lent    *[]byte
	batch   [watchBatch]*event // taken from the ring
}

func (r *Relay) serveWatch(w http.ResponseWriter, req *http.Request, q *request) error {
	flusher, ok := w.(http.Flusher)
	if !ok {
		return fmt.Errorf("watch: %T cannot flush", w)
	}
	initial := q.opts.SendInitialEvents != nil && *q.opts.SendInitialEvents
	wait := uint64(0)
	if q.opts.SendInitialEvents != nil || r.doubts(q) {
		wait = q.version // a streaming list waits; a plain watch ahead of the cache is accepted (rule 2)
	}
	err := r.wait(req.Context(), q, wait)
	if err != nil && !r.Status().Synced {
		return err
	}
	ended, denied := r.ending()
	if denied != nil {
		return denied
	}
	x := &watcher{ended: ended, r: r, w: w, flush: flusher, q: q, e: r.encoder(q.out), every: req.Header.Get(ProgressHeader) != "", past: req.Header.Get(PastHeader) != "", history: r.Status().History}
	var v view
	if err == nil {
		v, err = x.begin(initial)
	}
	tellHistory(w, x.history)
	if err != nil && q.relay { // it looks at the header, and need not read a stream
		return err
	}
	media := q.out.media
	if media != mediaJSON {
		media += ";stream=watch"
	}
	w.Header().Set("Content-Type", media)
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(http.StatusOK)
	if err != nil { // as kube-apiserver: once a watch is accepted, errors are events
		_, _ = w.Write(errorFrame(q.out, err))
		flusher.Flush()
		return nil
	}
	flusher.Flush()
	x.s = r.openStream(w, req, true, x.seq)
	defer r.closeStream(x.s)
	if err := x.run(req, v); err != nil && !errors.Is(err, errGone) {
		r.cfg.Logger.Warn("watch ended", "client", x.s.client, "err", err)
	}
	return nil
}

// begin finds where the watch starts. The view is set for a watch with initial events.
func (x *watcher) begin(initial bool) (view, error) {
	if initial {
		v := x.r.now()
		if x.past {
			v = x.r.past()
		}
		x.history = v.history
		if err := agree(v.history, x.q); err != nil {
			return view{}, err
		}
		x.epoch, x.seq, x.after = v.epoch, v.seq, v.version
		return v, nil
	}
	x.r.mu.RLock()
	defer x.r.mu.RUnlock()
	x.history = x.r.history
	if err := agree(x.history, x.q); err != nil {
		return view{}, err
	}
	if x.r.alien(x.q) {
		return view{}, errTooOld(x.q.version, x.r.ring.floor)
	}
	x.epoch, x.seq, x.after = x.r.epoch, x.r.ring.next(), x.q.version
	if x.q.unset() || x.q.version == 0 {
		x.after = x.r.version
		return view{}, nil
	}
	if x.q.version >= x.r.version {
		return view{}, nil
	}
	seq, ok := x.r.ring.from(x.q.version)
	if !ok || !x.q.filter.fixed() && x.r.ring.inside(seq, x.q.version) {
		return view{}, errTooOld(x.q.version, x.r.ring.floor)
	}
	x.seq = seq
	return view{}, nil
}

var (
	errGone   = errors.New("the client is gone")
	errInside = errors.New("the client is inside a batch")
)

func (x *watcher) run(req *http.Request, v view) error {
	clock := x.r.cfg.Clock
	timeout := time.Duration(float64(minWatch) * (1 + rand.Float64()))
	if t := x.q.opts.TimeoutSeconds; t != nil && *t > 0 {
		timeout = time.Duration(min(*t, int64(2*minWatch/time.Second))) * time.Second
	}
	end := clock.Now().Add(timeout)
	if v.tree != nil {
		if err := x.initial(v); err != nil {
			return err
		}
	}
	x.sent = x.after
	next := clock.NewTimer(time.Hour)
	defer next.Stop()
	beforeEnd := timeout > bookmarkBefore
	bookmarkAt := clock.Now().Add(bookmarkEvery)
	for {
		wake, done, err := x.drain()
		if done || err != nil {
			return err
		}
		now := clock.Now()
		if !now.Before(end) {
			return nil
		}
		until := end
		if x.q.opts.AllowWatchBookmarks && !x.every { // a relay takes each for a sign of the source
			if beforeEnd && bookmarkAt.After(end.Add(-bookmarkBefore)) {
				bookmarkAt = end.Add(-bookmarkBefore)
			}
			if !now.Before(bookmarkAt) {
				if bookmarkAt.Equal(end.Add(-bookmarkBefore)) {
					beforeEnd = false
				}
				bookmarkAt = now.Add(bookmarkEvery)
				if err := x.sendBookmark(x.after); err != nil {
					return err
				}
			}
			if bookmarkAt.Before(end) {
				until = bookmarkAt
			}
		}
		next.Reset(until.Sub(now))
		select {
		case <-wake:
		case <-next.C():
		case <-req.Context().Done():
			return nil
		case <-x.r.stop:
			return nil
		case <-x.ended:
			return nil
		}
	}
}

// initial sends the objects of a view as ADDED, and the bookmark that ends them.
func (x *watcher) initial(v view) error {
	x.borrow()
	defer x.giveBack()
	var err error
	visit := func(o *wire.Object) bool {
		if !strings.HasPrefix(o.Key, x.q.filter.prefix) {
			return false
		}
		if x.q.filter.matches(o) {
			var body []byte
			if body, err = x.e.object(o, false); err == nil {
				x.buffer = x.e.appendFrame(x.buffer, wire.Added, body)
				if len(x.buffer) >= chunk {
					err = x.writeBuffer()
				}
			}
		}
		return err == nil
	}
	v.tree.AscendGreaterOrEqual(&wire.Object{Key: x.q.filter.prefix}, visit)
	if err == nil && x.q.opts.AllowWatchBookmarks {
		end := map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		if x.every {
			x.said = v.said
			end[wire.TestimonyAnnotation] = v.word.String(x.r.cfg.Clock.Now())
		}
		err = x.appendBookmark(v.version, end)
	}
	if err == nil {
		err = x.writeBuffer()
	}
	x.flush.Flush()
	return err
}

// drain sends what the ring has for this watch, and returns what to wait on for more. done: the watch is over.
func (x *watcher) drain() (wake <-chan struct{}, done bool, err error) {
	for {
		x.r.mu.RLock()
		events, ok := x.r.ring.since(x.batch[:0], x.seq, watchBatch)
		wake, epoch, reached, floor, history := x.r.gather.wake, x.r.epoch, x.r.version, x.r.ring.floor, x.r.history.Number
		shown, version, said, word := x.r.gather.seq, x.r.gather.version, x.r.said, x.r.testimony()
		x.r.mu.RUnlock()
		switch {
		case epoch != x.epoch:
			err := x.write(errorFrame(x.q.out, errTooOld(x.after, floor)))
			x.flush.Flush()
			return nil, true, err
		case x.q.relay && history != x.q.history: // it comes again, and is told
			x.r.closed("another history")
			return nil, true, nil
		case !ok: // fell out of the ring: the client resumes, and gets 410 if that is too late
			x.r.closed("behind the ring")
			return nil, true, nil
		}
		if x.every && x.q.opts.AllowWatchBookmarks && said != x.said {
			x.said = said
			if err := x.testify(word); err != nil {
				return nil, true, err
			}
		}
		if events = events[:min(uint64(len(events)), max(shown, x.seq)-x.seq)]; len(events) == 0 {
			x.ahead = x.after > reached
			x.after = max(x.after, version)
			return wake, false, nil
		}
		err = x.sendAll(events)
		clear(events) // what the ring drops should be collected
		if errors.Is(err, errInside) {
			err := x.write(errorFrame(x.q.out, errTooOld(x.after, reached)))
			x.flush.Flush()
			return nil, true, err
		}
		if err != nil {
			return nil, true, err
		}
	}
}

// sendAll writes events together; a lone one is written from where it is.
func (x *watcher) sendAll(events []*event) error {
	alone := len(events) == 1
	if !alone {
		x.borrow()
		defer x.giveBack()
	}
	for _, ev := range events {
		if err := x.send(ev, alone); err != nil {
			if errors.Is(err, errInside) {
				return errors.Join(err, x.writeBuffer())
			}
			return err
		}
	}
	x.seq += uint64(len(events))
	x.s.next.Store(x.seq)
	if err := x.writeBuffer(); err != nil {
		return err
	}
	x.flush.Flush()
	return nil
}

// send writes or gathers one event as this watch sees it.
func (x *watcher) send(ev *event, alone bool) error {
	ends := ev.cur == nil && ev.batch != nil && ev.batch == x.inside // the last change may have had the same version
	if !ends && !ev.after(x.after) {
		return nil
	}
	if err := x.enter(ev.batch); err != nil {
		return err
	}
	x.after, x.ahead = ev.version, false
	if ev.cur == nil {
		if x.q.opts.AllowWatchBookmarks && (x.every || ev.batch != nil) {
			return x.appendBookmark(ev.version, nil)
		}
		return nil
	}
	typ, o := x.q.filter.view(ev)
	if o == nil {
		return nil
	}
	frame, err := x.e.frame(ev, typ, o)
	if err != nil {
		return err
	}
	x.sent = ev.version
	if alone || len(frame) >= chunk {
		if err := x.writeBuffer(); err != nil {
			return err
		}
		return x.write(frame)
	}
	if len(x.buffer)+len(frame) > chunk {
		if err := x.writeBuffer(); err != nil {
			return err
		}
	}
	x.buffer = append(x.buffer, frame...)
	return nil
}

// enter is called where events are part of a batch. A client that saw more than the state that the batch starts from, at a source
// that was ahead, goes on if the batch admits it. Else it has not seen what the batch deletes, and would not: these deletions are stamped with
// the version that the batch starts from.
func (x *watcher) enter(b *batch) error {
	if b == nil || b == x.inside {
		return nil
	}
	if !b.admits(x.after) || b.inside(x.after) && !x.q.filter.fixed() {
		return errInside
	}
	x.inside = b
	if !x.every || !x.q.opts.AllowWatchBookmarks {
		return nil
	}
	x.ahead = false
	begin := map[string]string{wire.BatchAnnotation: wire.FormatVersion(b.to)}
	if b.admitted != 0 {
		begin[wire.AdmitsAnnotation] = wire.FormatVersion(b.admitted)
	}
	return x.appendBookmark(max(b.from, x.after), begin)
}

// view tells how an event looks through a filter: which type, and which content. nil: not at all. An object that enters
// the selector is ADDED, one that leaves it DELETED with its previous content (convertToWatchEvent in storage/cacher).
func (f *filter) view(ev *event) (typ string, o *wire.Object) {
	is, was := !ev.deleted && f.matches(ev.cur), f.matches(ev.prev)
	switch {
	case is && was:
		return wire.Modified, ev.cur
	case is:
		return wire.Added, ev.cur
	case was && ev.deleted:
		return wire.Deleted, ev.cur
	case was:
		return wire.Deleted, ev.prev
	}
	return "", nil
}

func (x *watcher) appendBookmark(version uint64, annotations map[string]string) error {
	if version < x.sent || x.ahead {
		return nil
	}
	frame, err := x.e.bookmark(version, annotations)
	if err != nil {
		return err
	}
	x.sent = version
	x.buffer = append(x.buffer, frame...)
	return nil
}

// testify says how old the relay's state is. That is true also for a client that is ahead of it, and moves nobody.
func (x *watcher) testify(word Testimony) error {
	frame, err := x.e.bookmark(max(x.after, 1), map[string]string{wire.TestimonyAnnotation: word.String(x.r.cfg.Clock.Now())})
	if err != nil {
		return err
	}
	if err := x.write(frame); err != nil {
		return err
	}
	x.flush.Flush()
	return nil
}

func (x *watcher) sendBookmark(version uint64) error {
	if err := x.appendBookmark(version, nil); err != nil {
		return err
	}
	if err := x.writeBuffer(); err != nil {
		return err
	}
	x.flush.Flush()
	return nil
}

// borrow takes a buffer that is given back before the watch waits again: idle watchers hold none.
func (x *watcher) borrow() {
	x.lent = chunks.Get().(*[]byte)
	x.buffer = (*x.lent)[:0]
}

func (x *watcher) giveBack() {
	chunks.Put(x.lent)
	x.lent, x.buffer = nil, nil
}

func (x *watcher) writeBuffer() error {
	if len(x.buffer) == 0 {
		return nil
	}
	err := x.write(x.buffer)
	x.buffer = x.buffer[:0]
	return err
}

func (x *watcher) write(p []byte) error {
	x.s.started.Store(x.r.cfg.Clock.Now().UnixNano())
	_, err := x.w.Write(p)
	x.s.started.Store(0)
	if err != nil {
		return errGone
	}
	return nil
}
