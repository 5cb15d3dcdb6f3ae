package rest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

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

func (h *Handler) list(w http.ResponseWriter, req *http.Request, q *query) error {
	p, err := h.page(req, q)
	if err != nil {
		return err
	}
	if h.Overlay != nil {
		h.overlay(p)
	}
	s := h.stream(w, req)
	defer s.Close()
	e := h.encoder(q.out)
	switch {
	case q.out.shape == table:
		body, err := e.table(p.Items, metaOf(p))
		if err != nil {
			return err
		}
		out := newBody(w, s, q.out, int64(len(body)))
		defer out.close()
		out.write(body)
		out.write([]byte{'\n'})
	case q.out.media == mediaProtobuf:
		return writeProtobufList(w, q, e, p, s)
	default:
		h.writeJSONList(w, q, e, p, s)
	}
	return nil
}

// page finds what a list answers: the state that its options name, filtered and cut to a page.
func (h *Handler) page(req *http.Request, q *query) (*relay.Page, error) {
	o := relay.PageOptions{At: q.at, Selector: q.selector, Limit: q.opts.Limit}
	if q.opts.Continue != "" {
		if v := q.opts.ResourceVersion; v != "" && v != "0" {
			return nil, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
		t, err := parseContinue(q.opts.Continue)
		if err != nil {
			return nil, err
		}
		o.Start = strings.TrimPrefix(t.Start, "/")
		if t.Version > 0 {
			o.Version, o.Exact = uint64(t.Version), true
		}
	}
	switch {
	case q.opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact:
		o.Exact = true
	case q.opts.ResourceVersionMatch == "" && o.Limit > 0 && o.Version > 0:
		o.Exact = true // the legacy meaning of a limit with a version
	}
	if q.opts.ResourceVersion == "0" && q.opts.Continue == "" {
		o.Limit = 0 // kube-apiserver's watch cache ignores it then
	}
	p, err := h.Read(req.Context(), o)
	if errors.Is(err, relay.ErrPast) {
		return nil, expiredList(q.opts.Continue)
	}
	return p, err
}

// metaOf is the metadata of a list that has one page.
func metaOf(p *relay.Page) wire.ListMeta {
	m := wire.ListMeta{Version: p.Version, Remaining: p.Remaining}
	if p.Next != "" {
		m.Continue = continueToken{tokenVersion, int64(p.Version), "/" + p.Next}.String()
	}
	return m
}

// expiredList is the 410 of a list; that of a chunked one carries a token to go on inconsistently, as kube-apiserver's
// does.
func expiredList(cont string) error {
	if cont == "" {
		return apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	}
	err := apierrors.NewResourceExpired(
		"The provided continue parameter is too old to display a consistent list result. You can start a new list without " +
			"the continue parameter, or use the continue token in this response to retrieve the remainder of the results. " +
			"Continuing with the provided " +
			"token results in an inconsistent list - objects that were created, modified, or deleted between the time the " +
			"first chunk was returned " +
			"and now may show up in the list.")
	if t, perr := parseContinue(cont); perr == nil {
		t.Version = -1
		err.ErrStatus.ListMeta.Continue = t.String()
	}
	return err
}

// writeProtobufList writes the list as a concatenation; its length is known before its first byte.
func writeProtobufList(w http.ResponseWriter, q *query, e *encoder, p *relay.Page, s *relay.Stream) error {
	var head [16]byte
	n := 0
	bodies := make([][]byte, len(p.Items))
	for i, o := range p.Items {
		b, err := e.object(o, true)
		if err != nil {
			return err
		}
		bodies[i] = b
		n += len(wire.AppendItemHead(head[:0], len(b))) + len(b)
	}
	start := wire.AppendListHead(nil, e.kind, metaOf(p), n)
	out := newBody(w, s, q.out, int64(len(start)+n+len(wire.EnvelopeTail())))
	defer out.close()
	out.write(start)
	for _, b := range bodies {
		out.write(wire.AppendItemHead(head[:0], len(b)))
		if !out.write(b) {
			return nil
		}
	}
	out.write(wire.EnvelopeTail())
	return nil
}

// unstructuredListMeta is metav1.ListMeta as kube-apiserver writes it with custom resources: by name, and with continue
// in any case.
type unstructuredListMeta struct {
	Continue           string `json:"continue"`
	RemainingItemCount *int64 `json:"remainingItemCount,omitempty"`
	ResourceVersion    string `json:"resourceVersion"`
}

func (h *Handler) writeJSONList(w http.ResponseWriter, q *query, e *encoder, p *relay.Page, s *relay.Stream) {
	var size int64
	for _, o := range p.Items {
		size += int64(len(o.Raw)) // protobuf is smaller than JSON: a lower bound is all that gzip asks for
	}
	k, listKind := e.kind, e.kind.Kind+"List"
	if q.out.shape == whole {
		listKind = e.res.KindOfList()
	}
	out := newBody(w, s, q.out, -size)
	defer out.close()
	m := metaOf(p)
	meta := metav1.ListMeta{
		ResourceVersion: wire.FormatVersion(m.Version), Continue: m.Continue, RemainingItemCount: m.Remaining,
	}
	metaJSON, _ := json.Marshal(meta)
	unstructured := !e.res.Known() && q.out.shape == whole
	switch {
	case unstructured: // fields in the order of their names
		metaJSON, _ = json.Marshal(unstructuredListMeta{meta.Continue, meta.RemainingItemCount, meta.ResourceVersion})
		out.write(fmt.Appendf(nil, `{"apiVersion":%q,"items":[`, k.APIVersion))
	case len(p.Items) == 0 && q.out.shape == metadataOnly: // a quirk of kube-apiserver
		out.write(fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":null}`+"\n", listKind, k.APIVersion,
			metaJSON))
		return
	default:
		out.write(fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":[`, listKind, k.APIVersion, metaJSON))
	}
	for i, o := range p.Items {
		if i > 0 {
			out.write([]byte{','})
		}
		body, err := e.object(o, true)
		if err != nil {
			h.logger().Error("cannot encode an object; the list is cut off", "object", o.Key, "err", err)
			panic(http.ErrAbortHandler) // a truncated list must not look complete
		}
		if !out.write(body) {
			return
		}
	}
	if unstructured {
		out.write(fmt.Appendf(nil, `],"kind":%q,"metadata":%s}`+"\n", listKind, metaJSON))
	} else {
		out.write([]byte("]}\n"))
	}
}
