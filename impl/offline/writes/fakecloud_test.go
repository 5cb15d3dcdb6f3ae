package writes

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weir-edge/weir/impl/request"
)

// fakeCloud is as much of a kube-apiserver as a queue is pushed to, with the rights of a node: it may not get events,
// nor a pod that is not there.
type fakeCloud struct {
	t      testing.TB
	server *httptest.Server

	mu      sync.Mutex
	version int
	objects map[string]document // by path
	history map[string][]string // of status.message, or of the count of an Event
	creates map[string]int
	writes  []string                                          // paths
	fault   func(method, path string, before bool) (cut bool) // called before and after a request is carried out
	refuse  map[string]*apierrors.StatusError                 // writes of a path
	issued  int                                               // tokens
	expired bool                                              // the certificate of the node: all is answered 401
	ends    time.Time                                         // of tokens
}

func newFakeCloud(t testing.TB) *fakeCloud {
	c := &fakeCloud{
		t: t, version: 100, objects: map[string]document{}, history: map[string][]string{}, creates: map[string]int{},
		fault: func(string, string, bool) bool { return false }, refuse: map[string]*apierrors.StatusError{},
		ends: time.Now().Add(time.Hour),
	}
	c.server = httptest.NewServer(c)
	t.Cleanup(c.server.Close)
	return c
}

// door sends requests there, whatever their host.
func (c *fakeCloud) door() http.RoundTripper {
	u, err := url.Parse(c.server.URL)
	check(c.t, err)
	tr := &http.Transport{}
	c.t.Cleanup(tr.CloseIdleConnections)
	return doorTo{u.Host, tr}
}

type doorTo struct {
	host string
	rt   http.RoundTripper
}

func (d doorTo) RoundTrip(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	out.URL.Scheme, out.URL.Host, out.Host = "http", d.host, ""
	out.RequestURI = ""
	return d.rt.RoundTrip(out)
}

func pathFor(d document) string {
	m := d.in("metadata")
	switch d.text("kind") {
	case "Node":
		return "/api/v1/nodes/" + m.text("name")
	case "Pod":
		return "/api/v1/namespaces/" + m.text("namespace") + "/pods/" + m.text("name")
	}
	prefix := "/api/v1"
	if d.text("apiVersion") != "v1" {
		prefix = "/apis/" + d.text("apiVersion")
	}
	return prefix + "/namespaces/" + m.text("namespace") + "/events/" + m.text("name")
}

func kindAt(path string) kind {
	switch {
	case strings.HasPrefix(path, "/apis/events.k8s.io/"):
		return groupEventKind()
	case strings.Contains(path, "/events"):
		return eventKind()
	case strings.Contains(path, "/pods/"):
		return podKind()
	}
	return nodeKind()
}

// add puts an object there and gives it as it is then.
func (c *fakeCloud) add(object runtime.Object) []byte {
	c.t.Helper()
	b, err := json.Marshal(object)
	check(c.t, err)
	k := nodeKind()
	if _, ok := object.(*corev1.Pod); ok {
		k = podKind()
	}
	b, err = k.declared(b)
	check(c.t, err)
	d, err := parse(b)
	check(c.t, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.set(pathFor(d), d)
}

// set gives an object a new version. mu must be held.
func (c *fakeCloud) set(path string, d document) []byte {
	c.version++
	m := d.in("metadata")
	m.set("resourceVersion", strconv.Itoa(c.version))
	if m.text("uid") == "" {
		m.set("uid", fmt.Sprint("uid-", c.version))
	}
	meta, err := m.bytes()
	check(c.t, err)
	d["metadata"] = meta
	c.objects[path] = d
	b, err := d.bytes()
	check(c.t, err)
	return b
}

// change lets somebody else change a part of an object.
func (c *fakeCloud) change(path string, change func(d document)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d, ok := c.objects[path]; ok {
		d = maps.Clone(d)
		change(d)
		c.set(path, d)
	}
}

func (c *fakeCloud) delete(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.objects, path)
}

func (c *fakeCloud) get(path string) document {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.objects[path])
}

func (c *fakeCloud) written() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.writes...)
}

func (c *fakeCloud) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault(req.Method, req.URL.Path, true) {
		panic(http.ErrAbortHandler)
	}
	rec := httptest.NewRecorder()
	c.serve(rec, req, body)
	if c.fault(req.Method, req.URL.Path, false) {
		panic(http.ErrAbortHandler)
	}
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

func (c *fakeCloud) serve(w http.ResponseWriter, req *http.Request, body []byte) {
	accept := req.Header.Values("Accept")
	path, status := strings.CutSuffix(req.URL.Path, "/status")
	t := targetOf(request.Parse(req))
	k := kindAt(path)
	event := t.Resource == events() || t.Resource == groupEvents()
	fail := func(e *apierrors.StatusError) { writeStatus(w, accept, e) }
	old, there := c.objects[path]
	if c.expired {
		fail(apierrors.NewUnauthorized("Unauthorized"))
		return
	}
	if e := c.refuse[path]; e != nil && req.Method != http.MethodGet {
		fail(e)
		return
	}
	switch {
	case t.sub == "token":
		c.token(w, req, body)
	case req.Method == http.MethodGet && t.Resource == pods() && t.name == "":
		c.listPods(w, t, req.URL.Query().Get("fieldSelector"))
	case req.Method == http.MethodGet && event:
		fail(forbidden(t, "a node may not get events"))
	case req.Method == http.MethodPost && event:
		object, e := decode(k, req.Header.Get("Content-Type"), body)
		if e != nil {
			fail(e)
			return
		}
		d, err := parse(object)
		check(c.t, err)
		path = pathFor(d)
		switch _, exists := c.objects[path]; {
		case d.in("metadata").text("resourceVersion") != "":
			fail(apierrors.NewBadRequest("resourceVersion should not be set on objects to be created"))
			return
		case exists:
			t.name = d.in("metadata").text("name")
			fail(apierrors.NewAlreadyExists(groupResource(t), t.name))
			return
		}
		c.creates[path]++
		c.store(w, accept, path, d, http.StatusCreated)
	case !there && t.Resource == pods():
		fail(forbidden(t, "no relationship found"))
	case !there:
		fail(notFound(t))
	case req.Method == http.MethodGet:
		b, _ := old.bytes()
		answer{http.StatusOK, k, b}.write(w, accept)
	case req.Method == http.MethodPut || req.Method == http.MethodPatch:
		c.update(w, req, t, k, old, body, status || event)
	default:
		fail(apierrors.NewMethodNotSupported(groupResource(t), req.Method))
	}
}

func (c *fakeCloud) update(w http.ResponseWriter, req *http.Request, t target, k kind, old document, body []byte,
	allowed bool) {
	accept, path := req.Header.Values("Accept"), strings.TrimSuffix(req.URL.Path, "/status")
	if !allowed {
		writeStatus(w, accept, forbidden(t, "a node may write the status"))
		return
	}
	b, err := old.bytes()
	check(c.t, err)
	var object []byte
	var e *apierrors.StatusError
	if req.Method == http.MethodPatch {
		object, e = apply(k, b, req.Header.Get("Content-Type"), body)
	} else {
		object, e = decode(k, req.Header.Get("Content-Type"), body)
	}
	if e != nil {
		writeStatus(w, accept, e)
		return
	}
	d, err := parse(object)
	check(c.t, err)
	before, after := old.in("metadata"), d.in("metadata")
	for _, field := range []string{"uid", "resourceVersion"} {
		if v := after.text(field); v != "" && v != before.text(field) {
			writeStatus(w, accept, conflict(t, field))
			return
		}
	}
	if t.sub == "status" {
		meta, err := before.with("labels", after["labels"]).with("annotations", after["annotations"]).bytes()
		check(c.t, err)
		d = old.with("status", d.status()).with("metadata", meta)
	}
	if now, err := d.bytes(); err == nil && same(b, now) {
		answer{http.StatusOK, k, b}.write(w, accept)
		return
	}
	c.store(w, accept, path, d, http.StatusOK)
}

// store notes a write, and answers with the object.
func (c *fakeCloud) store(w http.ResponseWriter, accept []string, path string, d document, code int) {
	b := c.set(path, d)
	c.writes = append(c.writes, path)
	message := d.in("status").text("message") + d.in("status").in("nodeInfo").text("bootID")
	if strings.Contains(path, "/events/") {
		message = string(d["count"]) + string(d.in("series")["count"])
	}
	if h := c.history[path]; message != "" && (len(h) == 0 || h[len(h)-1] != message) {
		c.history[path] = append(h, message)
	}
	answer{code, kindAt(path), b}.write(w, accept)
}

func (c *fakeCloud) listPods(w http.ResponseWriter, t target, selector string) {
	if !strings.Contains(selector, "spec.nodeName="+nodeName) {
		writeStatus(w, nil, forbidden(t, "can only list pods with spec.nodeName field selector"))
		return
	}
	items := []json.RawMessage{}
	for path, d := range c.objects {
		m := d.in("metadata")
		if kindAt(path).Kind.Kind == "Pod" && m.text("namespace") == t.namespace &&
			strings.Contains(selector, "metadata.name="+m.text("name")+",") &&
			d.in("spec").text("nodeName") == nodeName {
			b, _ := d.with("kind", nil).with("apiVersion", nil).bytes()
			items = append(items, b)
		}
	}
	b, _ := json.Marshal(map[string]any{"kind": "PodList", "apiVersion": "v1", "items": items})
	send(w, http.StatusOK, mediaJSON, b)
}

func (c *fakeCloud) token(w http.ResponseWriter, req *http.Request, body []byte) {
	object, e := decode(tokenKind(), req.Header.Get("Content-Type"), body)
	if e != nil {
		writeStatus(w, nil, e)
		return
	}
	var tr authenticationv1.TokenRequest
	check(c.t, json.Unmarshal(object, &tr))
	c.issued++
	claims := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d,"n":%d}`, c.ends.Unix(), c.issued))
	tr.Status.Token = "eyJh." + claims + ".secret-signature"
	tr.Status.ExpirationTimestamp.Time = c.ends
	b, err := json.Marshal(&tr)
	check(c.t, err)
	answer{http.StatusCreated, tokenKind(), b}.write(w, req.Header.Values("Accept"))
}

// request1 sends one request.
func request1(t testing.TB, method, uri string, body []byte, header ...string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, uri, bytes.NewReader(body))
	check(t, err)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	check(t, err)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	defer resp.Body.Close()
	return resp, readAll(t, resp.Body)
}

func podPath(name string) string { return "/api/v1/namespaces/default/pods/" + name }

func (b *bed) knowPod(name string) { b.know(podKind(), pods(), testPod(name)) }
func (b *bed) knowNode()           { b.know(nodeKind(), nodes(), testNode()) }
