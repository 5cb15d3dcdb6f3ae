package images

import (
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/exchange"
	"github.com/weir-edge/weir/impl/limit"
)

// Bounds of what members of the pool read here.
const (
	maxReads     = 64 // of one member: an image has some layers, and containerd pulls three at a time
	maxReadsSum  = 1024
	growingEvery = 200 * time.Millisecond // how often a pull is looked for that is about to begin
)

// Shown is what a hub shows of its store to other hubs of its pool, at contract.ImagesBlobsPath. It asks nobody else:
// so there are no circles. The port that it is at makes sure of its callers.
type Shown struct {
	Store *Store
	// Pulling reports whether this node is to pull a digest, of which there need not be a byte yet.
	Pulling func(exchange.Digest) bool
	Off     func() bool                // nothing is shown now; nil: it is
	Caller  func(*http.Request) string // the node of the hub that asks
	Clock   clock.WithTicker
	Bytes   *prometheus.CounterVec // see Metrics

	once  sync.Once
	slots limit.Slots
}

// ServeHTTP implements http.Handler.
func (s *Shown) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.once.Do(func() { s.slots.Each, s.slots.Sum = maxReads, maxReadsSum })
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	d, err := exchange.ParseDigest(strings.TrimPrefix(req.URL.Path, contract.ImagesBlobsPath))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := checkRange(req.Header.Get("Range")); err != nil {
		http.Error(w, err.Error(), http.StatusRequestedRangeNotSatisfiable)
		return
	}
	if s.Off != nil && s.Off() {
		http.Error(w, "images are not shared in this pool", http.StatusNotFound)
		return
	}
	by := s.Caller(req)
	if s.slots.Enter(by) != "" {
		http.Error(w, "too many reads of images are under way", http.StatusTooManyRequests)
		return
	}
	defer s.slots.Leave(by)
	if out := serveStored(w, req, s.Store, d, s.count(byServed)); out {
		return
	}
	s.serveGrowing(w, req, d)
}

func (s *Shown) count(from string) prometheus.Counter { return s.Bytes.WithLabelValues(from) }

// serveGrowing serves what this node's containerd is pulling, or is about to.
func (s *Shown) serveGrowing(w http.ResponseWriter, req *http.Request, d exchange.Digest) {
	end := s.Clock.Now().Add(exchange.PullStall)
	tick := s.Clock.NewTicker(growingEvery)
	defer tick.Stop()
	for {
		file, total, err := s.Store.Ingest(d)
		if err == nil {
			defer file.Close()
			g := &growing{ctx: req.Context(), clock: s.Clock, file: file, total: total}
			w.Header().Set("Content-Type", blobType)
			out := &counted{ResponseWriter: prompt{w}, count: s.count(byServed), ctx: req.Context()}
			http.ServeContent(out, req, "", time.Time{}, g)
			if g.err != nil {
				panic(http.ErrAbortHandler) // the answer ends short, and its reader sees that
			}
			return
		}
		if serveStored(w, req, s.Store, d, s.count(byServed)) {
			return
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNoSize) || !s.Pulling(d) || !s.Clock.Now().Before(end) {
			http.Error(w, "this node does not have "+d.String(), http.StatusNotFound)
			return
		}
		select {
		case <-tick.C():
		case <-req.Context().Done():
			return
		}
	}
}

// serveStored serves a complete blob as it is; false: there is none.
func serveStored(w http.ResponseWriter, req *http.Request, s *Store, d exchange.Digest, count prometheus.Counter) bool {
	file, info, err := s.Open(d)
	if err != nil {
		return false
	}
	defer file.Close()
	w.Header().Set("Content-Type", blobType)
	http.ServeContent(&counted{ResponseWriter: w, count: count, ctx: req.Context()}, req, "", info.ModTime(), file)
	if req.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
	return true
}
