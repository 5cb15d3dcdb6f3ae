package filter

import (
	"context"
	"crypto/sha256"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/store"
)

const (
	maxPast    = 8   // changes of topology that are remembered for watches that were away
	maxClients = 256 // of which it is known what they have
)

// Filters are those that are on. See the package comment.
type Filters struct {
	Config
	rules map[use][]rule

	mu      sync.Mutex
	view    *view
	first   *view    // of this process: what a client has of which nothing is known; nil: such ones were forgotten
	past    []change // older views, the oldest first
	lost    uint64   // version of the last change that is not among them
	streams map[*stream]struct{}
	clients map[string]has
}

// change is one of topology: clients with a version up to this one have the view before.
type change struct {
	version uint64
	before  *view
}

// reading is a get, list or watch that is filtered.
type reading struct {
	asked  *request.Request
	use    use
	rules  []rule
	client string // the same for a list and the watch that follows
}

// match tells whether a request is filtered.
func (f *Filters) match(req *http.Request, asked *request.Request) (q reading, ok bool) {
	if !asked.Reads() || asked.Upgrade || asked.Subresource != "" {
		return q, false
	}
	q = reading{asked: asked, use: use{store.ComponentOf(req.UserAgent(), "", ""), asked.Resource}}
	if q.rules = f.rules[q.use]; len(q.rules) == 0 {
		return q, false
	}
	q.client = strings.Join([]string{who(req), req.UserAgent(), asked.Path, asked.Query.Get("labelSelector"), asked.Query.Get("fieldSelector")}, "\x00")
	return q, true
}

// who tells callers apart by what they show, so that nobody is taken for another who calls itself the same. One whose token was renewed
// is another: what it has is then known by its version, as after a restart.
func who(req *http.Request) string {
	h := sha256.New()
	for _, v := range req.Header.Values("Authorization") {
		_, _ = h.Write([]byte(v))
	}
	if req.TLS != nil && len(req.TLS.PeerCertificates) > 0 {
		_, _ = h.Write(req.TLS.PeerCertificates[0].RawSubject)
	}
	return string(h.Sum(nil))
}

// Serve lets next answer a request, through the filters that are on for it.
func (f *Filters) Serve(w http.ResponseWriter, req *http.Request, asked *request.Request, next func(http.ResponseWriter, *http.Request)) {
	if f == nil || len(f.rules) == 0 {
		next(w, req)
		return
	}
	q, ok := f.match(req, asked)
	if !ok {
		next(w, req)
		return
	}
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	req = req.WithContext(ctx)
	out := &writer{ResponseWriter: w, f: f, q: q, cancel: cancel}
	defer out.leave() // also when a broken stream panics its way out
	next(out, req)
	out.finish()
}

// apply is what all rules make of an object. What is no such object passes as it is.
func (q *reading) apply(v *view, enc wire.Encoding, o *wire.Object) (raw []byte, shown bool) {
	at := o
	for _, r := range q.rules {
		raw, shown, err := r.apply(v, enc, at)
		if err != nil {
			return o.Raw, true
		}
		if !shown {
			return nil, false
		}
		if len(raw) == len(at.Raw) && &raw[0] == &at.Raw[0] {
			continue
		}
		next, err := wire.ParseObject(enc, raw)
		if err != nil {
			return o.Raw, true
		}
		at = next
	}
	return at.Raw, true
}

// learns tells whether Services that pass teach the view.
func (q *reading) learns() bool {
	for _, r := range q.rules {
		if _, ok := r.(learn); ok {
			return true
		}
	}
	return false
}

// topology tells whether what passes depends on the view.
func (q *reading) topology() bool { return q.use.resource == slicesOf }

// change makes another view, and tells it to all watches.
func (f *Filters) change(edit func(*view)) {
	f.mu.Lock()
	next := *f.view
	edit(&next)
	if next.equal(f.view) {
		f.mu.Unlock()
		return
	}
	version := uint64(math.MaxUint64)
	if f.Slices != nil {
		version, _ = f.Slices()
	}
	f.past = append(f.past, change{version, f.view})
	if len(f.past) > maxPast {
		f.lost = f.past[0].version
		f.past = f.past[1:]
	}
	f.view = &next
	var open []*stream
	for s := range f.streams {
		open = append(open, s)
	}
	f.mu.Unlock()
	f.keep(&next)
	for _, s := range open {
		s.follow()
	}
}

func (f *Filters) now() *view {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view
}

// has is what a client has, as far as it is known.
type has struct {
	view   *view
	before *view  // if it was told of a change: what it had before
	at     uint64 // the version at which it was told: one that comes back with it may have missed a part of that
	lists  bool   // it was told to list, and has not done so yet
}

// set notes what a client has.
func (f *Filters) set(client string, h has) {
	if len(f.clients) >= maxClients {
		clear(f.clients)
		f.first = nil
	}
	f.clients[client] = h
}

// listed notes the same of one that was shown all, and gives what it still has to be told of: who had another view and was not told to list
// takes no notice of what looks different at the same version.
func (f *Filters) listed(client string, v *view) (had *view) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h, known := f.clients[client]; known && !h.lists {
		if h.before != nil {
			return h.before
		}
		return h.view
	}
	f.set(client, has{view: v})
	return v
}

// told notes that a client was told of a change at a version, or to list.
func (f *Filters) told(client string, before, v *view, at uint64, lists bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := f.clients[client]; h.before != nil && h.at == at {
		before = h.before
	}
	f.set(client, has{v, before, at, lists})
}

// had is the view that a client has which comes back at a version; ok is false if that is not known.
func (f *Filters) had(client string, version uint64) (v *view, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h, known := f.clients[client]; known {
		if h.before != nil && (h.lists || version <= h.at) {
			return h.before, true
		}
		return h.view, true
	}
	if f.first != nil { // it was told of all by the process before, which kept that; a relay from a disk may be behind it, and so is no measure
		return f.first, true
	}
	if f.lost > 0 && version <= f.lost {
		return nil, false
	}
	for _, c := range f.past {
		if version <= c.version {
			return c.before, true
		}
	}
	return f.view, true
}

func number(s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
