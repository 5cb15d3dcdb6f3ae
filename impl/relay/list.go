package relay

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// gzipFrom is the size from which kube-apiserver compresses an answer (defaultGzipThresholdBytes).
const gzipFrom = 128 << 10

// continueToken is kube-apiserver's (k8s.io/apiserver/pkg/storage/continue.go), so that a client may go on with a
// chunked list at another server.
type continueToken struct {
	APIVersion string `json:"v"`
	Version    int64  `json:"rv"` // -1: go on at whatever version there is
	Start      string `json:"start"`
}

const tokenVersion = "meta.k8s.io/v1"

func (t continueToken) String() string {
	b, _ := json.Marshal(t) // of two strings and a number
	return base64.RawURLEncoding.EncodeToString(b)
}

func parseContinue(s string) (t continueToken, err error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	switch {
	case err != nil:
	case t.APIVersion != tokenVersion:
		err = fmt.Errorf("server does not recognize this encoded version %s", t.APIVersion)
	case t.Version == 0:
		err = fmt.Errorf("incorrect continue start resourceVersion set to 0")
	case t.Start == "":
		err = fmt.Errorf("continue start key empty")
	case path.Clean("/"+strings.TrimPrefix(t.Start, "/")) != "/"+strings.TrimPrefix(t.Start, "/"):
		err = fmt.Errorf("continue key is not valid: %s", t.Start)
	}
	if err != nil {
		return t, apierrors.NewBadRequest("continue key is not valid: " + err.Error())
	}
	return t, nil
}

// page is what a list answers.
type page struct {
	meta  wire.ListMeta
	items []*wire.Object
}

func (r *Relay) serveList(w http.ResponseWriter, req *http.Request, q *request) error {
	p, err := r.list(req, q)
	if err != nil {
		return err
	}
	s := r.openStream(w, req, false, 0)
	defer r.closeStream(s)
	e := r.encoder(q.out)
	switch {
	case q.out.shape == table:
		body, err := e.table(p.items, p.meta)
		if err != nil {
			return err
		}
		out := r.newBody(w, q.out, int64(len(body)))
		out.stream = s
		defer out.close()
		out.write(body)
		out.write([]byte{'\n'})
	case q.out.media == mediaProtobuf:
		r.writeProtobufList(w, req, q, e, p, s)
	default:
		r.writeJSONList(w, q, e, p, s)
	}
	return nil
}

// list finds what a list answers: the state that its options name, filtered and cut to a page.
func (r *Relay) list(req *http.Request, q *request) (*page, error) {
	o := &q.opts
	start, exact := "", false
	if o.Continue != "" {
		if o.ResourceVersion != "" && o.ResourceVersion != "0" {
			return nil, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
		t, err := parseContinue(o.Continue)
		if err != nil {
			return nil, err
		}
		start = q.filter.prefix + strings.TrimPrefix(t.Start, "/")
		if t.Version > 0 {
			q.version, exact = uint64(t.Version), true
		}
	}
	switch {
	case o.ResourceVersionMatch == metav1.ResourceVersionMatchExact:
		exact = true
	case o.ResourceVersionMatch == "" && o.Limit > 0 && q.version > 0:
		exact = true // the legacy meaning of a limit with a version
	}
	if err := r.wait(req.Context(), q, q.version); err != nil {
		return nil, err
	}
	v := r.now()
	if exact && v.version != q.version {
		r.mu.RLock()
		lost := r.alien(q)
		r.mu.RUnlock()
		old, ok := r.at(q.version)
		if !ok || lost {
			return nil, expiredList(o.Continue)
		}
		v = old
	}
	limit := o.Limit
	if o.ResourceVersion == "0" && o.Continue == "" {
		limit = 0 // kube-apiserver's watch cache ignores it then
	}
	return r.collect(v, q, start, limit), nil
}

// expiredList is the 410 of a list; that of a chunked one carries a token to go on inconsistently, as kube-apiserver's does.
func expiredList(cont string) error {
	if cont == "" {
		return errExpired("The resourceVersion for the provided list is too old.")
	}
	err := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. You can start a new list without " +
		"the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided " +
		"token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned " +
		"and now may show up in the list.")
	if t, perr := parseContinue(cont); perr == nil {
		t.Version = -1
		err.ErrStatus.ListMeta.Continue = t.String()
	}
	return err
}

func (r *Relay) collect(v view, q *request, start string, limit int64) *page {
	p := &page{meta: wire.ListMeta{Version: v.version}}
	if q.filter.key == "" && q.filter.prefix == "" {
		p.items = make([]*wire.Object, 0, v.tree.Len())
	}
	more := false
	visit := func(o *wire.Object) bool {
		if !strings.HasPrefix(o.Key, q.filter.prefix) {
			return false
		}
		if limit > 0 && int64(len(p.items)) == limit {
			more = true // whether it matches or not: kube-apiserver does not look further either
			return false
		}
		if q.filter.matches(o) {
			p.items = append(p.items, o)
		}
		return true
	}
	from := max(start, q.filter.prefix)
	if q.filter.key != "" {
		if o, ok := v.tree.Get(&wire.Object{Key: q.filter.key}); ok && o.Key >= from {
			visit(o)
		}
	} else {
		v.tree.AscendGreaterOrEqual(&wire.Object{Key: from}, visit)
	}
	if more {
		last := p.items[len(p.items)-1].Key
		p.meta.Continue = continueToken{tokenVersion, int64(v.version), "/" + strings.TrimPrefix(last, q.filter.prefix) + "\x00"}.String()
		if q.filter.all() {
			left := int64(0)
			v.tree.AscendGreaterOrEqual(&wire.Object{Key: last + "\x00"}, func(o *wire.Object) bool {
				if !strings.HasPrefix(o.Key, q.filter.prefix) {
					return false
				}
				left++
				return true
			})
			p.meta.Remaining = &left
		}
	}
	return p
}

// writeProtobufList writes the list as a concatenation; its length is known before its first byte.
func (r *Relay) writeProtobufList(w http.ResponseWriter, req *http.Request, q *request, e *encoder, p *page, s *stream) {
	var head [16]byte
	n := 0
	bodies := make([][]byte, len(p.items))
	for i, o := range p.items {
		b, err := e.object(o, true)
		if err != nil {
			WriteError(w, req, err)
			return
		}
		bodies[i] = b
		n += len(wire.AppendItemHead(head[:0], len(b))) + len(b)
	}
	start := wire.AppendListHead(nil, e.kind(), p.meta, n)
	out := r.newBody(w, q.out, int64(len(start)+n+len(wire.EnvelopeTail())))
	out.stream = s
	defer out.close()
	out.write(start)
	for _, b := range bodies {
		out.write(wire.AppendItemHead(head[:0], len(b)))
		if !out.write(b) {
			return
		}
	}
	out.write(wire.EnvelopeTail())
}

// unstructuredListMeta is metav1.ListMeta as kube-apiserver writes it with custom resources: by name, and with continue in any case.
type unstructuredListMeta struct {
	Continue           string `json:"continue"`
	RemainingItemCount *int64 `json:"remainingItemCount,omitempty"`
	ResourceVersion    string `json:"resourceVersion"`
}

func (r *Relay) writeJSONList(w http.ResponseWriter, q *request, e *encoder, p *page, s *stream) {
	var size int64
	for _, o := range p.items {
		size += int64(len(o.Raw)) // protobuf is smaller than JSON: a lower bound is all that gzip asks for
	}
	k := e.kind()
	out := r.newBody(w, q.out, -size)
	out.stream = s
	defer out.close()
	meta := metav1.ListMeta{ResourceVersion: wire.FormatVersion(p.meta.Version), Continue: p.meta.Continue, RemainingItemCount: p.meta.Remaining}
	metaJSON, _ := json.Marshal(meta)
	unstructured := r.cfg.Resource.builtin == nil && q.out.shape == whole
	switch {
	case unstructured: // fields in the order of their names
		metaJSON, _ = json.Marshal(unstructuredListMeta{meta.Continue, meta.RemainingItemCount, meta.ResourceVersion})
		out.write(fmt.Appendf(nil, `{"apiVersion":%q,"items":[`, k.APIVersion))
	case len(p.items) == 0 && q.out.shape == metadataOnly: // a quirk of kube-apiserver
		out.write(fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":null}`+"\n", k.Kind+"List", k.APIVersion, metaJSON))
		return
	default:
		out.write(fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":[`, k.Kind+"List", k.APIVersion, metaJSON))
	}
	for i, o := range p.items {
		if i > 0 {
			out.write([]byte{','})
		}
		body, err := e.object(o, true)
		if err != nil {
			r.cfg.Logger.Error("cannot encode an object; the list is cut off", "object", o.Key, "err", err)
			panic(http.ErrAbortHandler) // a truncated list must not look complete
		}
		if !out.write(body) {
			return
		}
	}
	if unstructured {
		out.write(fmt.Appendf(nil, `],"kind":%q,"metadata":%s}`+"\n", k.Kind+"List", metaJSON))
	} else {
		out.write([]byte("]}\n"))
	}
}

// chunk is how much of an answer is gathered before it is written: few and large writes are what TLS and HTTP/2 like.
const chunk = 64 << 10

var (
	chunks = sync.Pool{New: func() any { b := make([]byte, 0, chunk); return &b }}
	gzips  = sync.Pool{New: func() any { w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed); return w }}
)

// body writes an answer in large pieces, compressed if that was asked for and is worth it.
type body struct {
	r      *Relay
	w      io.Writer
	gz     *gzip.Writer
	buf    *[]byte
	stream *stream
	err    error
}

// newBody sends the header. size is the length of the body, or minus a lower bound of it.
func (r *Relay) newBody(w http.ResponseWriter, o output, size int64) *body {
	b := &body{r: r, w: w, buf: chunks.Get().(*[]byte)}
	h := w.Header()
	h.Set("Content-Type", o.media)
	h.Set("Cache-Control", "no-cache, private")
	switch {
	case o.gzip && max(size, -size) >= gzipFrom:
		h.Set("Content-Encoding", "gzip")
		h.Add("Vary", "Accept-Encoding")
		b.gz = gzips.Get().(*gzip.Writer)
		b.gz.Reset(w)
		b.w = b.gz
	case size > 0 && o.media == mediaProtobuf:
		h.Set("Content-Length", strconv.FormatInt(size, 10))
	}
	w.WriteHeader(http.StatusOK)
	return b
}

// write appends to the body; false: the client is gone.
func (b *body) write(p []byte) bool {
	for len(p) > 0 && b.err == nil {
		n := copy((*b.buf)[len(*b.buf):cap(*b.buf)], p)
		*b.buf = (*b.buf)[:len(*b.buf)+n]
		p = p[n:]
		if len(*b.buf) == cap(*b.buf) {
			b.flush()
		}
	}
	return b.err == nil
}

func (b *body) flush() {
	if b.err != nil || len(*b.buf) == 0 {
		return
	}
	if b.stream != nil {
		b.stream.started.Store(b.r.cfg.Clock.Now().UnixNano())
		defer b.stream.started.Store(0)
	}
	_, b.err = b.w.Write(*b.buf)
	*b.buf = (*b.buf)[:0]
}

func (b *body) close() {
	b.flush()
	if b.gz != nil {
		if b.err == nil {
			b.err = b.gz.Close()
		}
		b.gz.Reset(nil)
		gzips.Put(b.gz)
	}
	*b.buf = (*b.buf)[:0]
	chunks.Put(b.buf)
}
