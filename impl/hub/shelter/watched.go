package shelter

import (
	"sync"

	"github.com/weir-edge/weir/impl/offline"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/store"
)

// ofPods is what watched is about.
var ofPods = request.Resource{Version: "v1", Name: "pods"}

// maxOwed bounds how many pods are remembered; a node has some hundred at most.
const maxOwed = 4096

// watched knows which pods of this node a get may be answered from the watch that its kubelet has open. A kubelet gets
// each pod before it writes its status, and has just been shown it: a quarter of what a node reads while its pods are
// replaced.
//
// The cloud would answer such a get from its etcd. The store is behind it by what is on its way in the watch. A write
// of somebody else that is on its way is shown to the kubelet by that watch as well, which then makes up for it: it
// compares what it was shown with what it last wrote. A write that passed this hub, whoever sent it, is never missed: a
// pod that is being written is asked of the cloud, and goes on to be until the store has the answer to the write, or
// the cloud has answered a get that began after it.
type watched struct {
	mu   sync.Mutex
	owed map[store.Key]*owed
}

// owed is a pod of which the cloud may know more than the store, because of a write.
type owed struct {
	writing  int    // writes under way
	doubtful bool   // one is over, and the store may not have what became of it
	version  uint64 // at which the store has what became of all others
	writes   int    // that began
}

// writes notes that a pod is about to be written. done is to be called when that is over. shown: the store has what
// became of it; version: it will have that when it is at this version, 0 if none is known.
func (w *watched) writes(k store.Key) (done func(shown bool, version uint64)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.owed[k]
	if o == nil {
		o = &owed{}
		w.owed[k] = o
	}
	o.writing++
	o.writes++
	return func(shown bool, version uint64) {
		w.mu.Lock()
		defer w.mu.Unlock()
		o.writing--
		o.doubtful = o.doubtful || !shown && version == 0
		o.version = max(o.version, version)
		if o.writing == 0 && !o.doubtful && o.version == 0 {
			delete(w.owed, k)
		}
	}
}

// reads notes that the cloud is asked for a pod. done is to be called when the store has the answer.
func (w *watched) reads(k store.Key) (done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.owed[k]
	if o == nil || o.writing > 0 {
		return func() {}
	}
	writes := o.writes
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if o.writes == writes && w.owed[k] == o {
			delete(w.owed, k)
		}
	}
}

// owes reports whether the cloud may know more of a pod than the store, which has it at a version.
func (w *watched) owes(k store.Key, has uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.owed[k]; o != nil && o.writing == 0 && !o.doubtful && has >= o.version {
		delete(w.owed, k)
	}
	return w.owed[k] != nil
}

// tidy forgets pods that are gone, if there are many.
func (w *watched) tidy(gone func(store.Key) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.owed) < maxOwed {
		return
	}
	for k, o := range w.owed {
		if o.writing == 0 && gone(k) {
			delete(w.owed, k)
		}
	}
}

// ofPod is the pod that a request is about, if it is about one.
func ofPod(q *request.Request) (k store.Key, ok bool) {
	return offline.KeyOf(q), q.IsResource && q.Resource == ofPods && q.Name != ""
}
