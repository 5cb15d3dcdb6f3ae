package relay

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/google/btree"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// waitAhead is how long a read that is ahead of the cache waits, as in kube-apiserver (blockTimeout in storage/cacher).
const waitAhead = 3 * time.Second

// ServeHTTP answers get, list and watch of the relay's resource. The caller must have authorized the request.
func (r *Relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	tellHistory(w, r.Status().History)
	denied := r.Denied()
	if denied != nil && r.cfg.Fallback != nil {
		r.cfg.Fallback.ServeHTTP(w, req)
		return
	}
	if denied != nil {
		WriteError(w, req, denied)
		return
	}
	q, err := r.parse(req)
	if err == nil && q.out.fallback {
		r.cfg.Fallback.ServeHTTP(w, req)
		return
	}
	if b := r.cfg.Resource.builtin; b != nil && b.warning != "" {
		w.Header().Add("Warning", `299 - "`+b.warning+`"`)
	}
	if err == nil {
		switch {
		case q.get:
			err = r.serveGet(w, req, q)
		case q.opts.Watch:
			err = r.serveWatch(w, req, q)
		default:
			err = r.serveList(w, req, q)
		}
	}
	if err != nil {
		WriteError(w, req, err)
	}
}

// view is a consistent state of a relay at one version.
type view struct {
	version uint64
	tree    *btree.BTreeG[*wire.Object]
	seq     uint64 // sequence number of the first event behind it
	epoch   uint64
	history History
	word    Testimony // on it
	said    uint64
}

// wait waits until the relay has reached a version, but not for longer than kube-apiserver would. It starts no goroutine, since a simulator runs it on one thread.
func (r *Relay) wait(ctx context.Context, q *request, version uint64) error {
	end := r.cfg.Clock.Now().Add(waitAhead)
	var timer clock.Timer
	for {
		r.mu.RLock()
		changed := r.notify
		r.mu.RUnlock()
		if reached, err := r.meet(q, version); reached || err != nil {
			return err
		}
		left := end.Sub(r.cfg.Clock.Now())
		if left <= 0 || ctx.Err() != nil {
			return r.late(q, version)
		}
		if timer == nil {
			timer = r.cfg.Clock.NewTimer(left)
			defer timer.Stop()
		}
		timer.Reset(left)
		select {
		case <-changed:
		case <-timer.C():
		case <-ctx.Done():
		}
	}
}

// late is the answer to who has waited in vain.
func (r *Relay) late(q *request, version uint64) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.alien(q) {
		return errTooOld(version, r.ring.floor)
	}
	return errAhead(version, r.version)
}

// meet tells whether a version is reached, and by an error that it cannot be.
func (r *Relay) meet(q *request, version uint64) (reached bool, err error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.synced {
		return false, errNotReady(r.cfg.Resource)
	}
	if err := agree(r.history, q); err != nil {
		return false, err
	}
	return r.version >= version, nil
}

// now returns the state at the version reached.
func (r *Relay) now() view {
	r.mu.Lock() // Clone marks the tree as shared
	defer r.mu.Unlock()
	return view{version: r.version, tree: r.tree.Clone(), seq: r.ring.next(), epoch: r.epoch, history: r.history, word: r.testimony(), said: r.said}
}

// past returns the state at the oldest version from which a watch can resume.
func (r *Relay) past() view {
	r.mu.Lock()
	defer r.mu.Unlock()
	seq, _ := r.ring.from(r.ring.floor)
	v := view{version: r.ring.floor, tree: r.tree.Clone(), seq: seq, epoch: r.epoch, history: r.history, word: r.testimony(), said: r.said}
	undo(v.tree, r.ring.events[seq-r.ring.base:])
	return v
}

// at returns the state at an earlier version, by undoing the events since. ok is false if the ring does not reach back.
func (r *Relay) at(version uint64) (view, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seq, ok := r.ring.from(version)
	if !ok || version > r.version || r.ring.inside(seq, version) {
		return view{}, false
	}
	v := view{version: version, tree: r.tree.Clone(), seq: seq, epoch: r.epoch}
	undo(v.tree, r.ring.events[seq-r.ring.base:])
	return v, true
}

func (r *Relay) serveGet(w http.ResponseWriter, req *http.Request, q *request) error {
	if err := r.wait(req.Context(), q, q.version); err != nil {
		return err
	}
	key := q.name
	if q.namespace != "" {
		key = q.namespace + "/" + q.name
	}
	r.mu.RLock()
	o, ok := r.tree.Get(&wire.Object{Key: key})
	r.mu.RUnlock()
	if !ok {
		return apierrors.NewNotFound(r.groupResource(), q.name)
	}
	e := r.encoder(q.out)
	body, err := e.object(o, false)
	if err != nil {
		return err
	}
	head, tail := []byte(nil), []byte{'\n'}
	if q.out.media == mediaProtobuf {
		head, tail = wire.AppendEnvelope(nil, e.kind(), len(body)), wire.EnvelopeTail()
	}
	out := r.newBody(w, q.out, int64(len(head)+len(body)+len(tail)))
	defer out.close()
	for _, part := range [][]byte{head, body, tail} {
		out.write(part)
	}
	return nil
}

func gvk(k wire.Kind) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(k.APIVersion, k.Kind)
}

// stream is one answer being written, so that the janitor can end it when its client takes nothing.
type stream struct {
	client  string
	watch   bool
	next    atomic.Uint64 // watches: sequence number of the next event
	started atomic.Int64  // when the write under way began, in ns; 0: none

	mu   sync.Mutex
	ctl  *http.ResponseController // nil once the handler has returned
	dead bool
}

func (r *Relay) openStream(w http.ResponseWriter, req *http.Request, watch bool, seq uint64) *stream {
	s := &stream{client: req.UserAgent() + " " + req.RemoteAddr, watch: watch, ctl: http.NewResponseController(w)}
	s.next.Store(seq)
	r.mu.Lock()
	r.streams[s] = struct{}{}
	r.mu.Unlock()
	return s
}

func (r *Relay) closeStream(s *stream) {
	s.mu.Lock()
	s.ctl = nil
	s.mu.Unlock()
	r.mu.Lock()
	delete(r.streams, s)
	r.mu.Unlock()
}

// stuck tells why a stream should be ended, "" if it should not.
func (s *stream) stuck(now time.Time, base uint64, limit time.Duration) string {
	began := s.started.Load()
	switch {
	case began == 0:
		return ""
	case now.Sub(time.Unix(0, began)) > limit:
		return "write timeout"
	case s.watch && s.next.Load() < base:
		return "behind the ring"
	}
	return ""
}

// abort makes the write under way fail.
func (s *stream) abort() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctl != nil && !s.dead {
		s.dead = true
		_ = s.ctl.SetWriteDeadline(time.Unix(1, 0))
	}
}

func (r *Relay) closed(reason string) {
	r.mu.Lock()
	r.counts.closed[reason]++
	r.mu.Unlock()
}
