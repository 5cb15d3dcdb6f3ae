package filter

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// maxBody bounds what is held of a list; a larger one is cut off, which its client sees.
const maxBody = 128 << 20 // 5,000 slices of 100 endpoints are 62 MB

var errTooLarge = errors.New("a list is too large to be filtered")

// writer stands between who answers and the client.
type writer struct {
	http.ResponseWriter
	f      *topology
	q      reading
	cancel context.CancelFunc

	wrote  bool
	enc    wire.Encoding
	body   *bytes.Buffer // of a list or get; nil: none is held
	stream *stream       // of a watch
	zipped *inflater     // of a compressed watch
}

// WriteHeader looks what kind of answer it is.
func (w *writer) WriteHeader(code int) {
	if w.wrote || code < 200 {
		w.ResponseWriter.WriteHeader(code)
		return
	}
	w.wrote = true
	if code == http.StatusOK && w.understood() {
		if w.q.asked.Verb == "watch" {
			w.stream = newStream(w.f, w.ResponseWriter, w.q, w.enc, w.cancel)
			if w.Header().Get("Content-Encoding") == "gzip" { // kube-apiserver does that with streaming lists
				w.Header().Del("Content-Encoding")
				w.zipped = newInflater(w.stream)
			}
		} else {
			w.body = &bytes.Buffer{}
			w.Header().Del("Content-Length")
			return // with the body
		}
	} else if code == http.StatusOK {
		w.f.Logger.Debug("an answer passes unfiltered", "component", w.q.use.component, "resource", w.q.use.resource.Name,
			"type", w.Header().Get("Content-Type"), "coding", w.Header().Get("Content-Encoding"))
	}
	w.ResponseWriter.WriteHeader(code)
	if w.stream != nil {
		w.stream.begin()
	}
}

// understood reports whether the answer is of objects in an encoding that can be altered.
func (w *writer) understood() bool {
	h := w.Header()
	media, params, _ := strings.Cut(h.Get("Content-Type"), ";")
	switch strings.TrimSpace(media) {
	case "application/json":
		w.enc = wire.JSON
	case "application/vnd.kubernetes.protobuf":
		w.enc = wire.Protobuf
	default:
		return false
	}
	coding := h.Get("Content-Encoding")
	return !strings.Contains(params, "as=") && (coding == "" || coding == "gzip")
}

// Write implements http.ResponseWriter.
func (w *writer) Write(p []byte) (int, error) {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	switch {
	case w.zipped != nil:
		return w.zipped.Write(p)
	case w.stream != nil:
		return w.stream.write(p)
	case w.body != nil:
		if w.body.Len()+len(p) > maxBody {
			return 0, errTooLarge
		}
		return w.body.Write(p)
	}
	return w.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (w *writer) Flush() {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	switch {
	case w.stream != nil:
		w.stream.flush()
	case w.body == nil:
		_ = http.NewResponseController(w.ResponseWriter).Flush()
	}
}

// Unwrap lets http.ResponseController set deadlines.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// leave ends what others know of the answer.
func (w *writer) leave() {
	if w.zipped != nil {
		w.zipped.close()
	}
	if w.stream != nil {
		w.stream.end()
	}
}

// finish writes what was held. It is not called if the answer broke off.
func (w *writer) finish() {
	if w.body == nil {
		return
	}
	body := w.body.Bytes()
	if w.Header().Get("Content-Encoding") == "gzip" {
		r, err := gzip.NewReader(bytes.NewReader(body))
		if err == nil {
			body, err = io.ReadAll(io.LimitReader(r, maxBody))
		}
		if err != nil {
			panic(http.ErrAbortHandler) // as if the cloud had broken off
		}
		w.Header().Del("Content-Encoding")
	}
	v := w.f.now()
	if w.q.asked.Name != "" {
		w.get(v, body)
		return
	}
	out, taught, err := w.q.list(v, w.enc, body)
	if err != nil { // no such list
		out = body
	}
	if w.q.learns() {
		w.f.learn(taught) // first of all: see topology.keep
	}
	w.f.listed(w.q.client, v)
	_, _ = w.ResponseWriter.Write(out)
}

func (w *writer) get(v *view, body []byte) {
	out := body
	raw, kind := body, kindOf(w.q.use.resource)
	if w.enc == wire.Protobuf {
		var err error
		if kind, raw, err = wire.SplitEnvelope(body); err != nil {
			raw = nil
		}
	}
	o, err := wire.ParseObject(w.enc, raw)
	if err == nil && kind == kindOf(w.q.use.resource) && (w.enc == wire.Protobuf || isKind(raw, kind)) {
		changed, shown := w.q.apply(v, w.enc, o)
		switch {
		case !shown:
			s := apierrors.NewNotFound(schema.GroupResource{Group: w.q.use.resource.Group, Resource: w.q.use.resource.Name},
				w.q.asked.Name).Status()
			s.Kind, s.APIVersion = "Status", "v1"
			w.Header().Set("Content-Type", "application/json")
			w.ResponseWriter.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w.ResponseWriter).Encode(s)
			return
		case w.enc == wire.JSON:
			out = changed
		default:
			out = wire.Envelope(kind, changed)
		}
	}
	_, _ = w.ResponseWriter.Write(out)
}

func isKind(raw []byte, kind wire.Kind) bool {
	var k struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	return json.Unmarshal(raw, &k) == nil && wire.Kind{APIVersion: k.APIVersion, Kind: k.Kind} == kind
}

// list is a list without what is not shown, and what its Services teach.
func (q *reading) list(v *view, enc wire.Encoding, body []byte) (out []byte, taught map[string]scope, err error) {
	taught = map[string]scope{}
	item := func(raw []byte) ([]byte, bool, error) {
		o, err := wire.ParseObject(enc, raw)
		if err != nil {
			return nil, false, err
		}
		q.teach(enc, o, taught)
		raw, shown := q.apply(v, enc, o)
		return raw, shown, nil
	}
	listOf := kindOf(q.use.resource)
	listOf.Kind += "List"
	if enc == wire.JSON {
		out, err = listJSON(body, listOf, item)
		return out, taught, err
	}
	kind, msg, err := wire.SplitEnvelope(body)
	if err != nil || kind != listOf {
		return body, taught, errors.Join(err, errMalformed)
	}
	const items = 2
	msg, err = wire.Rebuild(msg, func(out []byte, num protowire.Number, v, whole []byte) ([]byte, error) {
		if num != items {
			return append(out, whole...), nil
		}
		raw, shown, err := item(v)
		if err != nil || !shown {
			return out, err
		}
		return protowire.AppendBytes(protowire.AppendTag(out, items, protowire.BytesType), raw), nil
	})
	if err != nil {
		return body, taught, err
	}
	return wire.Envelope(kind, msg), taught, nil
}

func listJSON(body []byte, kind wire.Kind, item func([]byte) ([]byte, bool, error)) ([]byte, error) {
	var list object
	if err := json.Unmarshal(body, &list); err != nil || !isKind(body, kind) {
		return body, errors.Join(err, errMalformed)
	}
	var items []json.RawMessage
	if err := json.Unmarshal(list["items"], &items); err != nil {
		return body, err
	}
	left, altered := []json.RawMessage{}, false
	for _, raw := range items {
		now, shown, err := item(raw)
		if err != nil {
			return body, err
		}
		altered = altered || !shown || !bytes.Equal(now, raw)
		if shown {
			left = append(left, now)
		}
	}
	if !altered {
		return body, nil
	}
	list.set("items", left)
	return json.Marshal(list)
}

// through lets next answer by a writer.
func through(w http.ResponseWriter, req *http.Request, f *topology, q reading,
	next func(http.ResponseWriter, *http.Request)) {
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	req = req.WithContext(ctx)
	out := &writer{ResponseWriter: w, f: f, q: q, cancel: cancel}
	defer out.leave() // also when a broken stream panics its way out
	next(out, req)
	out.finish()
}
