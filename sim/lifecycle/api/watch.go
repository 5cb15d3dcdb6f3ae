package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// watch opens a stream of changes.
func (s *Server) watch(r *request) (*http.Response, error) {
	if r.from != 0 && r.from < r.store.oldest && !r.initial {
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("version %d is too old", r.from))
	}
	w := newStream()
	if r.initial || r.from == 0 {
		for _, o := range r.store.sorted() {
			if r.selects(o) {
				w.event(watch.Added, o.raw)
			}
		}
	} else {
		for _, c := range r.store.history {
			if c.version > r.from {
				w.show(r, c)
			}
		}
	}
	if r.initial {
		mark, err := json.Marshal(map[string]any{
			"apiVersion": r.store.kind.GroupVersion().String(), "kind": r.store.kind.kind, "metadata": map[string]any{
				"resourceVersion": format(s.version), "annotations": map[string]string{metav1.InitialEventsAnnotationKey: "true"},
			},
		})
		if err != nil {
			return nil, err
		}
		w.event(watch.Bookmark, mark)
	}
	r.store.watchers[w] = r
	context.AfterFunc(r.Context(), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(r.store.watchers, w)
		w.end()
	})
	return respond(r.Request, http.StatusOK, w), nil
}

// stream is the body of a watch: what was not read yet is kept.
type stream struct {
	mu    sync.Mutex
	more  *sync.Cond
	bytes bytes.Buffer
	ended bool
}

func newStream() *stream {
	w := &stream{}
	w.more = sync.NewCond(&w.mu)
	return w
}

// show tells of a change as a watch with these selectors sees it.
func (w *stream) show(r *request, c change) {
	before, after := c.before != nil && r.selects(c.before), c.after != nil && r.selects(c.after)
	switch {
	case after && before:
		w.event(watch.Modified, c.after.raw)
	case after:
		w.event(watch.Added, c.after.raw)
	case before:
		w.event(watch.Deleted, deleted(c))
	}
}

// deleted is the object as it was last, at the version of its end.
func deleted(c change) []byte {
	content, err := decode(c.before.raw)
	if err != nil {
		panic(err) // it was marshalled here
	}
	metadata(content)["resourceVersion"] = format(c.version)
	raw, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	return raw
}

func (w *stream) event(t watch.EventType, raw []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	fmt.Fprintf(&w.bytes, `{"type":%q,"object":%s}`+"\n", t, raw)
	w.more.Broadcast()
}

func (w *stream) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.more.Broadcast()
}

// Read implements io.Reader.
func (w *stream) Read(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.bytes.Len() == 0 && !w.ended {
		w.more.Wait()
	}
	if w.ended {
		return 0, io.EOF
	}
	return w.bytes.Read(p)
}

// Close implements io.Closer.
func (w *stream) Close() error {
	w.end()
	return nil
}
