package offline

import (
	"io"
	"net/http"

	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/store"
)

// Observe looks at the answer to a request before its client gets it. component is who asked (see store.ComponentOf);
// via is where the hub may ask the same as the client did.
func (r *Recorder) Observe(component string, resp *http.Response, q *request.Request, via http.RoundTripper) {
	if !ofObjects(q) {
		r.document(resp, q)
		return
	}
	enc, known := encodingOf(resp.Header)
	good := resp.StatusCode >= 200 && resp.StatusCode < 300
	switch {
	case !known || resp.StatusCode == http.StatusSwitchingProtocols:
	case !q.Reads():
		if good && q.Rest == "" && (q.Subresource == "" || q.Subresource == "status") {
			r.tee(resp, verbOf(q), func(body *intake) error { return r.written(q, enc, body) })
		}
	case q.Subresource != "":
	case q.Verb == "get" && resp.StatusCode == http.StatusNotFound:
		r.tee(resp, q.Verb, func(body *intake) error { return r.notFound(component, q, resp.Request.Header, enc, body) })
	case resp.StatusCode != http.StatusOK:
	case q.Verb == "get":
		r.tee(resp, q.Verb, func(body *intake) error { return r.got(component, q, enc, body) })
	case q.Verb == "list":
		free := r.begin(shapeOf(q, component, 0))
		cont := q.Query.Get("continue")
		parse := r.parser(resp, q.Verb, func(body *intake) error { return r.list(component, q, enc, cont, body) })
		resp.Body = newTee(&r.room, resp.Body, false, parse, free)
	case q.Verb == "watch":
		r.watch(component, q, enc, resp, via)
	}
}

// document keeps the answer to a request for a document.
func (r *Recorder) document(resp *http.Response, q *request.Request) {
	path := q.Path
	if q.Verb != "get" || resp.StatusCode != http.StatusOK || !isDocument(q.Path) || resp.ContentLength > maxDocument {
		return
	}
	d := store.Document{ContentType: resp.Header.Get("Content-Type"), ETag: resp.Header.Get("Etag"), At: r.clock.Now()}
	r.tee(resp, "document", func(body *intake) error {
		raw, err := io.ReadAll(io.LimitReader(body, maxDocument+1)) // what outlives the parser does not refer to it
		switch {
		case err != nil:
			return err
		case len(raw) > maxDocument:
			return errUnkept
		}
		whole := d
		whole.Body = raw
		return r.store.PutDocument(documentName(path, typeName(d.ContentType)), whole)
	})
}

// tee has an answer parsed that is one object or document.
func (r *Recorder) tee(resp *http.Response, verb string, parse func(*intake) error) {
	resp.Body = newWholeTee(&r.room, resp.Body, r.parser(resp, verb, parse))
}
