package offline

import (
	"net/http"
	"slices"
	"strings"

	"github.com/weir-edge/weir/impl/store"
)

// isDocument reports whether a path is one of those that answer the same to everybody who may read them: what kubectl
// and client-go ask before anything else.
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

// documentName is what a document is kept under: its path, and its type, since the same path reads differently for
// different Accept headers. Queries make no difference: ?timeout is none of the document, ?hash names the version that
// a client knows of.
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
	// kube-apiserver answers with a dot to the one that asks with an at sign.
	return strings.Join(append([]string{strings.ReplaceAll(strings.TrimSpace(parts[0]), "@", ".")}, kept...), ";")
}

// findDocument finds a kept document in a form that the client takes.
func findDocument(s *store.Store, header http.Header, path string) (store.Document, bool) {
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
			if d, ok := s.Document(documentName(path, name)); ok {
				return d, true
			}
		}
	}
	return store.Document{}, false
}
