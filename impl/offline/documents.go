package offline

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/store"
)

// maxDocument is the longest document that is kept: store.PutDocument takes no longer one.
const maxDocument = 8 << 20

// isDocument tells whether a path is one of those that answer the same to everybody who may read them: what kubectl and client-go ask
// before anything else.
func isDocument(path string) bool {
	p := strings.Split(strings.Trim(path, "/"), "/")
	switch p[0] {
	case "version":
		return len(p) == 1
	case "api":
		return len(p) <= 2
	case "apis":
		return len(p) <= 3
	case "openapi":
		return len(p) == 2 && p[1] == "v2" || len(p) >= 2 && p[1] == "v3"
	}
	return false
}

// documentName is what a document is kept under: its path, and its type, since the same path reads differently for different Accept headers.
// Queries make no difference: ?timeout is none of the document, ?hash names the version that a client knows of.
func documentName(path, contentType string) string {
	return "doc\n" + strings.TrimRight(path, "/") + "\n" + contentType
}

// typeName is a media range in one spelling. It is no mime.ParseMediaType: "openapi.spec.v2@v1.0" is no token.
func typeName(s string) string {
	parts := strings.Split(strings.ToLower(s), ";")
	kept := parts[1:1]
	for _, p := range parts[1:] {
		if p = strings.TrimSpace(p); p != "" && !strings.HasPrefix(p, "q=") && !strings.HasPrefix(p, "charset=") {
			kept = append(kept, p)
		}
	}
	slices.Sort(kept)
	// kube-apiserver answers with a dot to who asks with an at sign.
	return strings.Join(append([]string{strings.ReplaceAll(strings.TrimSpace(parts[0]), "@", ".")}, kept...), ";")
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

// document finds a kept document in a form that the client takes.
func (s *Server) document(req *http.Request, q *request.Request) (answer, *apierrors.StatusError) {
	d, ok := s.findDocument(req.Header, q.Path)
	if !ok {
		return nil, unknown("the cloud is away, and no client on this node has asked for " + q.Path + " in this form while it was there")
	}
	return func(w http.ResponseWriter, req *http.Request) {
		h := w.Header()
		setAge(h, s.clock.Now(), d.At)
		h.Set("Cache-Control", "no-cache, private")
		h.Set("Vary", "Accept")
		if d.ETag != "" {
			h.Set("Etag", d.ETag)
			if slices.Contains(req.Header.Values("If-None-Match"), d.ETag) {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
		h.Set("Content-Type", d.ContentType)
		h.Set("Content-Length", strconv.Itoa(len(d.Body)))
		_, _ = w.Write(d.Body)
	}, nil
}

func (s *Server) findDocument(header http.Header, path string) (store.Document, bool) {
	accept := strings.Join(header.Values("Accept"), ",")
	if strings.TrimSpace(accept) == "" {
		accept = mediaJSON
	}
	for _, c := range strings.Split(accept, ",") {
		names := []string{typeName(c)}
		if strings.HasSuffix(names[0], "/*") {
			names = []string{mediaJSON, "text/plain"} // as kube-apiserver declares the JSON of /openapi/v3
		}
		for _, name := range names {
			if d, ok := s.store.Document(documentName(path, name)); ok {
				return d, true
			}
		}
	}
	return store.Document{}, false
}
