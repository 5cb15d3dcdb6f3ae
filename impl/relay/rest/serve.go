package rest

import (
	"net/http"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
)

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	h.Serve(w, req, request.Parse(req))
}

// Serve answers a request that has been parsed.
func (h *Handler) Serve(w http.ResponseWriter, req *http.Request, asked *request.Request) {
	TellHistory(w.Header(), h.Status().History)
	denied := h.Denied()
	if denied != nil && h.Fallback != nil {
		h.Fallback.ServeHTTP(w, req)
		return
	}
	if denied != nil {
		WriteError(w, req, denied)
		return
	}
	q, err := h.check(req.Header, asked)
	if err == nil && q.out.fallback {
		h.Fallback.ServeHTTP(w, req)
		return
	}
	if warning := h.Resource().Warning(); warning != "" {
		w.Header().Add("Warning", `299 - "`+warning+`"`)
	}
	if err == nil {
		switch asked.Verb {
		case "get":
			err = h.get(w, req, q)
		case "watch":
			err = h.watch(w, req, q)
		default:
			err = h.list(w, req, q)
		}
	}
	if err != nil {
		WriteError(w, req, err)
	}
}

func (h *Handler) get(w http.ResponseWriter, req *http.Request, q *query) error {
	o, err := h.Get(req.Context(), q.In(), q.Name, q.at)
	if err != nil {
		return err
	}
	if h.Overlay != nil {
		o = h.Overlay.Show(o)
	}
	e := h.encoder(q.out)
	body, err := e.object(o, false)
	if err != nil {
		return err
	}
	head, tail := []byte(nil), []byte{'\n'}
	if q.out.media == mediaProtobuf {
		head, tail = wire.AppendEnvelope(nil, e.kind, len(body)), wire.EnvelopeTail()
	}
	out := newBody(w, nil, q.out, int64(len(head)+len(body)+len(tail)))
	defer out.close()
	for _, part := range [][]byte{head, body, tail} {
		out.write(part)
	}
	return nil
}
