package oracle

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
)

// Request is one generated request.
type Request struct {
	Path    string
	Query   url.Values
	Accept  string
	Gzip    bool // the client takes gzip
	Custom  bool // for a custom resource
	Refused bool // both sides must refuse it, with the same code and reason
}

// Watch reports whether it is a watch.
func (r Request) Watch() bool { return r.Query.Get("watch") != "" }

// initial reports whether a watch begins with the objects that there are: also one without a version, or with 0.
func (r Request) initial() bool {
	v := r.Query.Get("resourceVersion")
	return r.Query.Get("sendInitialEvents") == "true" || v == "" || v == "0"
}

func (r Request) String() string {
	gzip := ""
	if r.Gzip {
		gzip = ", gzip"
	}
	return fmt.Sprintf("GET %s?%s (Accept: %s%s)", r.Path, r.Query.Encode(), r.Accept, gzip)
}

// Resource is where requests go.
type Resource struct {
	Root       string // "/apis/discovery.k8s.io/v1"
	Plural     string
	Namespaces []string // none: the resource is not namespaced
	Names      []string // "namespace/name" of objects that are likely to exist, or "name"
	Labels     []string // label selectors worth asking for
	Fields     []string // field selectors beyond those of every resource
	Custom     bool     // a custom resource: there is no protobuf
}

// Media types asked for, by weight.
var accepts = []string{
	"application/vnd.kubernetes.protobuf",
	"application/vnd.kubernetes.protobuf,application/json",
	"application/json",
	"",
	"*/*",
	"application/json;q=0.5,application/vnd.kubernetes.protobuf",
}

var (
	metaList = []string{
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
		"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
	}
	metaSingle = []string{
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
		"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
	}
	tableKinds = []string{
		"application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
		"application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
	}
)

func pick[T any](rnd *rand.Rand, of []T) T { return of[rnd.IntN(len(of))] }

func chance(rnd *rand.Rand, p float64) bool { return rnd.Float64() < p }

// accept picks a media type that the resource has.
func (s Resource) accept(rnd *rand.Rand) string {
	if s.Custom {
		return pick(rnd, accepts[1:])
	}
	return pick(rnd, accepts)
}

// collection picks all namespaces or one.
func (s Resource) collection(rnd *rand.Rand) string {
	if len(s.Namespaces) > 0 && chance(rnd, 0.4) {
		return s.Root + "/namespaces/" + pick(rnd, s.Namespaces) + "/" + s.Plural
	}
	return s.Root + "/" + s.Plural
}

func (s Resource) selectors(rnd *rand.Rand, q url.Values) {
	if chance(rnd, 0.5) {
		q.Set("labelSelector", pick(rnd, s.Labels))
	}
	if chance(rnd, 0.25) {
		ns, name := split(pick(rnd, s.Names))
		of := append([]string{"metadata.name=" + name, "metadata.name!=" + name}, s.Fields...)
		if ns != "" {
			of = append(of, "metadata.namespace="+ns, "metadata.namespace!="+ns, "metadata.name="+name+",metadata.namespace="+ns)
		}
		q.Set("fieldSelector", pick(rnd, of))
	}
}

func split(key string) (ns, name string) {
	for i := range key {
		if key[i] == '/' {
			return key[:i], key[i+1:]
		}
	}
	return "", key
}

// List generates a list; version is one that both sides can still show.
func (s Resource) List(rnd *rand.Rand, version uint64) Request {
	q := url.Values{}
	r := Request{Path: s.collection(rnd), Query: q, Accept: s.accept(rnd), Custom: s.Custom, Gzip: chance(rnd, 0.3)}
	s.selectors(rnd, q)
	// kube-apiserver 1.37 loses the rest of a chunked list of all namespaces that selects one by metadata.namespace: it
	// makes the token relative to that namespace and reads it relative to all of them. A relay lists it in full; so this
	// is not asked for.
	if !strings.Contains(q.Get("fieldSelector"), "metadata.namespace=") && chance(rnd, 0.4) {
		q.Set("limit", strconv.Itoa(1+rnd.IntN(7)))
	}
	v := strconv.FormatUint(version, 10)
	switch rnd.IntN(6) {
	case 0: // unset
	case 1:
		q.Set("resourceVersion", "0")
		if chance(rnd, 0.5) {
			q.Set("resourceVersionMatch", "NotOlderThan")
		}
	case 2:
		q.Set("resourceVersion", v)
		q.Set("resourceVersionMatch", "NotOlderThan")
	case 3:
		q.Set("resourceVersion", v)
	default:
		q.Set("resourceVersion", v)
		q.Set("resourceVersionMatch", "Exact")
	}
	switch rnd.IntN(6) {
	case 0:
		r.Accept = pick(rnd, metaList)
	case 1:
		r.Accept = pick(rnd, tableKinds)
		if chance(rnd, 0.5) {
			q.Set("includeObject", pick(rnd, []string{"None", "Metadata", "Object"}))
		}
	}
	return r
}

// Get generates a get.
func (s Resource) Get(rnd *rand.Rand, version uint64) Request {
	ns, name := split(pick(rnd, s.Names))
	if chance(rnd, 0.1) {
		name = "there-is-none"
	}
	q := url.Values{}
	path := s.Root + "/" + s.Plural + "/" + name
	if ns != "" {
		path = s.Root + "/namespaces/" + ns + "/" + s.Plural + "/" + name
	}
	r := Request{Path: path, Query: q, Accept: s.accept(rnd), Custom: s.Custom, Gzip: chance(rnd, 0.3)}
	switch rnd.IntN(3) {
	case 0:
		q.Set("resourceVersion", "0")
	case 1:
		q.Set("resourceVersion", strconv.FormatUint(version, 10))
	}
	switch rnd.IntN(5) {
	case 0:
		r.Accept = pick(rnd, metaSingle)
	case 1:
		r.Accept = pick(rnd, tableKinds)
	}
	return r
}

// WatchRequest generates a watch that both sides end by themselves within a few seconds.
func (s Resource) WatchRequest(rnd *rand.Rand, version uint64) Request {
	q := url.Values{
		"watch": {pick(rnd, []string{"1", "true"})}, "timeoutSeconds": {strconv.Itoa(watchSeconds)},
		"allowWatchBookmarks": {"true"},
	}
	r := Request{Path: s.collection(rnd), Query: q, Accept: s.accept(rnd), Custom: s.Custom}
	s.selectors(rnd, q)
	switch rnd.IntN(7) {
	case 0: // unset
	case 1:
		q.Set("resourceVersion", "0")
	case 2, 3:
		q.Set("sendInitialEvents", "true")
		q.Set("resourceVersionMatch", "NotOlderThan")
		if chance(rnd, 0.5) {
			q.Set("resourceVersion", strconv.FormatUint(version, 10))
		}
	default:
		q.Set("resourceVersion", strconv.FormatUint(version, 10))
		if chance(rnd, 0.2) {
			q.Del("allowWatchBookmarks")
		}
	}
	if chance(rnd, 0.2) {
		r.Accept = pick(rnd, metaSingle)
	}
	return r
}

// Bad generates a request that must be refused.
func (s Resource) Bad(rnd *rand.Rand, version uint64) Request {
	v := strconv.FormatUint(version, 10)
	q := url.Values{}
	r := Request{Path: s.collection(rnd), Query: q, Accept: s.accept(rnd), Custom: s.Custom, Refused: true}
	set := func(pairs ...string) {
		for i := 0; i < len(pairs); i += 2 {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	switch rnd.IntN(16) {
	case 0:
		set("fieldSelector", "spec.nonsense=a")
	case 1:
		set("fieldSelector", "nonsense")
	case 2:
		set("labelSelector", "a in (")
	case 3:
		set("resourceVersion", "abc")
	case 4:
		set("resourceVersionMatch", "Exact")
	case 5:
		set("resourceVersion", "0", "resourceVersionMatch", "Exact")
	case 6:
		set("resourceVersion", v, "resourceVersionMatch", "Nearly")
	case 7:
		set("continue", "%%%")
	case 8:
		set("limit", "many")
	case 9:
		set("watch", "1", "sendInitialEvents", "true")
	case 10:
		set("watch", "1", "resourceVersionMatch", "NotOlderThan")
	case 11:
		set("sendInitialEvents", "true")
	case 12:
		r.Accept = "text/html"
	case 13:
		r.Accept = "application/json;as=Chair;g=meta.k8s.io;v=v1"
	case 14:
		set("continue", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MCwic3RhcnQiOiJhXHUwMDAwIn0")
	case 15:
		set("resourceVersion", strconv.FormatUint(version+1<<40, 10))
		if chance(rnd, 0.5) {
			set("resourceVersionMatch", "Exact")
		}
	}
	return r
}
