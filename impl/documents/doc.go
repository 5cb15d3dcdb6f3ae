// Package documents keeps one copy per pool of the cloud's API discovery, which every kubectl and every controller asks
// for first: /api and /apis, 27 kB of JSON in a bare cluster and more with each custom resource.
//
// A Transport sends such a request to the cloud with the copy's ETag (If-None-Match). The cloud authorizes the caller
// and answers 304 in a few bytes while the copy is current; then the caller gets the copy. So a copy is never stale,
// and never given to somebody whom the cloud refuses. A hub without a copy asks its coordinator for one, and that its
// leader.
//
// What crosses is protobuf, which is half as long. The JSON made of it has to have the digest that the ETag is; if it
// has not, because the cloud is newer than the types here, JSON is asked for instead.
//
// Beside them a pool shares /version and the keys of service accounts, which no Transport looks at: hubs need them for
// the time when the cloud is away (see Shared).
//
// A copy of API discovery from the pool is used only if its body has the digest that the ETag is; so a body that the
// cloud did not make is never shown as current. Nothing proves the ETag itself but the cloud. The other documents prove
// nothing: keys are taken by a hub only when a token proves them, see package identity. The package starts no
// goroutine.
package documents

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Bounds of a Store.
const (
	MaxBody      = 4 << 20
	MaxDocuments = 4 * perPath
	perPath      = 4 // spellings of Accept
	maxAccept    = 1024
)

// Paths are what is kept: the two roots of aggregated discovery (KEP-3352).
var Paths = []string{"/api", "/apis"}

// What a pool shares beside Paths, with any Accept.
const (
	Version = "/version"
	Keys    = "/openid/v1/jwks"
)

// Shared is all that a pool has one copy of.
var Shared = append(slices.Clone(Paths), Version, Keys)

// Accept is what kubectl and client-go 1.33 and later ask for; a leader keeps that.
const Accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"

// Kept is what a leader keeps beside keys of service accounts, a coordinator with them, and each hub on its disk: what
// every kubectl asks for first.
var Kept = [...]Key{
	{Path: "/api", Accept: Accept}, {Path: "/apis", Accept: Accept}, {Path: Version, Accept: "application/json"},
	{Path: Keys},
}

// Key names a document: the same path reads differently for different Accept headers.
type Key struct{ Path, Accept string }

// Query is the form of a Key in a URL.
func (k Key) Query() string { return url.Values{"path": {k.Path}, "accept": {k.Accept}}.Encode() }

// canonical is the same Key for all spellings of Accept that mean the same.
func (k Key) canonical() Key {
	if k.Accept = spell(k.Accept); k.Accept == spelledAccept {
		k.Accept = Accept
	}
	return k
}

var spelledAccept = spell(Accept)

// spell spells an Accept header without blanks, and the parameters of each type in order.
func spell(accept string) string {
	types := strings.Split(accept, ",")
	for i, t := range types {
		params := strings.Split(t, ";")
		for j := range params {
			params[j] = strings.TrimSpace(params[j])
		}
		params[0] = strings.ToLower(params[0])
		slices.Sort(params[1:])
		types[i] = strings.Join(params, ";")
	}
	return strings.Join(types, ",")
}

// ParseKey reads the form written by Query.
func ParseKey(q url.Values) (Key, error) {
	k := Key{q.Get("path"), q.Get("accept")}
	if !slices.Contains(Shared, k.Path) {
		return Key{}, fmt.Errorf("path %q: want one of %s", k.Path, strings.Join(Shared, ", "))
	}
	return k, nil
}

// Document is one copy. It is immutable.
type Document struct {
	ETag        string
	ContentType string
	Body        []byte
}

// Store holds documents in memory. It is safe for concurrent use.
type Store struct {
	mu   sync.Mutex
	docs map[Key]*entry
	uses uint64
}

type entry struct {
	*Document
	used uint64 // the larger the later
}

// Get returns a document, nil if there is none.
func (s *Store) Get(k Key) *Document {
	if len(k.Accept) > maxAccept {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.docs[k.canonical()]
	if e == nil {
		return nil
	}
	s.uses++
	e.used = s.uses
	return e.Document
}

// Put keeps a document. An Accept header is the caller's to choose: of each path the copy with Accept is kept, and a
// few others, those that were used last.
func (s *Store) Put(k Key, d *Document) {
	if len(k.Accept) > maxAccept || !slices.Contains(Shared, k.Path) {
		return
	}
	k = k.canonical()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.docs == nil {
		s.docs = map[Key]*entry{}
	}
	if s.docs[k] == nil {
		s.makeRoom(k.Path)
	}
	s.uses++
	s.docs[k] = &entry{d, s.uses}
}

// makeRoom drops a copy of a path if there are too many; s.mu is held.
func (s *Store) makeRoom(path string) {
	n := 0
	var oldest Key
	for k, e := range s.docs {
		if k.Path != path {
			continue
		}
		n++
		if k.Accept != Accept && (oldest.Path == "" || e.used < s.docs[oldest].used) {
			oldest = k
		}
	}
	if n >= perPath {
		delete(s.docs, oldest)
	}
}

// ServeHTTP shows documents inside a pool; who may see them is the caller's business.
func (s *Store) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	k, err := ParseKey(req.URL.Query())
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	case req.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
		return
	}
	d := s.Get(k)
	if d == nil {
		http.Error(w, "no such document yet", http.StatusNotFound)
		return
	}
	w.Header().Set("Etag", d.ETag)
	w.Header().Set("Content-Type", d.ContentType)
	_, _ = w.Write(d.Body)
}

// Read is the document of an answer.
func Read(resp *http.Response) (*Document, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxBody+1))
	switch {
	case resp.StatusCode != http.StatusOK:
		return nil, errors.New(resp.Status)
	case len(body) == 0 || len(body) > MaxBody:
		return nil, fmt.Errorf("the document has %d bytes, want 1 to %d", len(body), MaxBody)
	case err != nil:
		return nil, err
	}
	return &Document{ETag: resp.Header.Get("Etag"), ContentType: resp.Header.Get("Content-Type"), Body: body}, nil
}
