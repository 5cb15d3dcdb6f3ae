package offline

import (
	"container/list"
	"sync"
)

// maxDocument is the longest document that is kept: store.PutDocument takes no longer one.
const maxDocument = 8 << 20

// MaxRecording bounds what all recordings under way hold of objects and documents that have not come as a whole yet.
// The largest document fits.
const MaxRecording = 2 * maxDocument

// room shares MaxRecording among recordings. When they hold more, the one that has stood still longest is given up: its
// client takes the answer slowly, and so that of others would not be kept.
type room struct {
	max int

	mu    sync.Mutex
	sum   int
	still list.List // of *holding that hold something, the one that stands still longest first
}

// holding is what one recording holds in a room.
type holding struct {
	evict func()        // ends the recording
	at    *list.Element // in the room, which guards this and size
	size  int
}

// hold says how much a recording holds now, and returns those that have to be given up for it. Its caller holds the
// lock of no tee.
func (r *room) hold(h *holding, n int) (tooMany []*holding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(h)
	if n == 0 {
		return nil
	}
	h.size, h.at = n, r.still.PushBack(h)
	r.sum += n
	for r.sum > r.max && r.still.Len() > 1 { // one alone is bounded by what an object, or a document, may be
		oldest := r.still.Front().Value.(*holding)
		r.drop(oldest)
		tooMany = append(tooMany, oldest)
	}
	return tooMany
}

// leave says that a recording is over.
func (r *room) leave(h *holding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(h)
}

func (r *room) drop(h *holding) {
	if h.at != nil {
		r.still.Remove(h.at)
		r.sum -= h.size
		h.at, h.size = nil, 0
	}
}
