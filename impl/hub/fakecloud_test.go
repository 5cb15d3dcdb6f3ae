package hub

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-edge/weir/impl/documents"
	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/hub/relayed"
	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/scope"
)

// fakeCloud is as much of a kube-apiserver as a hub sees, behind real TLS: authentication by certificate or token,
// access reviews, Endpoints and EndpointSlices (from relays that the test feeds), and some paths that show what came
// through.
type fakeCloud struct {
	signs  *authority // what it tells a pool about itself; nil: nobody does
	t      testing.TB
	server *httptest.Server
	relays map[string]*relay.Relay // by resource
	stop   context.CancelFunc
	leases *leaseLog
	signer *fakeSigner
	held   *held

	mu      sync.Mutex
	version uint64
	ready   int                                                           // status of /readyz, or hangs
	broken  int                                                           // status of everything, 0: none
	allow   func(user string, a *authorizationv1.ResourceAttributes) bool // verdicts
	reviews []string                                                      // "user verb resource namespace name"
	lists   map[string]int                                                // lists of pool-scope resources by user
	// code that answers all about a pool-scope resource, 0: none.
	denies  func(user, resource string) int
	seen    []seen
	removed map[string]int    // how often an object was, by its name
	node    corev1.Node       // the only one
	docs    map[string]string // what documents.Shared are, by path
	refused map[string]int    // what tokens are answered, whatever is asked for
	pods    *fakePods         // nil: they are not served
}

// seen is one request that arrived.
type seen struct {
	user, path    string
	cert          bool
	method, query string
}

// echo is the answer of /echo.
type echo struct {
	User, Proto, Method, URI, Body string
	Cert                           bool // the connection has a client certificate
	Header                         http.Header
}

// twoResources are what pools of these tests share.
var twoResources = []string{"endpoints.v1.", "endpointslices.v1.discovery.k8s.io"}

// hangs is a status of /readyz that never comes.
const hangs = -1

func newFakeCloud(t testing.TB, ca *authority) *fakeCloud {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &fakeCloud{
		t: t, relays: map[string]*relay.Relay{}, stop: cancel, version: 100, ready: http.StatusOK, lists: map[string]int{},
		removed: map[string]int{},
		allow:   func(string, *authorizationv1.ResourceAttributes) bool { return true },
		denies:  func(string, string) int { return 0 },
	}
	var running sync.WaitGroup
	for _, name := range twoResources {
		res, err := relay.ParseResource(name)
		check(t, err)
		r, err := relay.New(relay.Config{Resource: res})
		check(t, err)
		check(t, r.Replace(c.version, nil))
		c.relays[res.Resource] = r
		running.Go(func() { _ = r.Run(ctx) })
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, req *http.Request) {
		c.mu.Lock()
		code := c.ready
		c.mu.Unlock()
		if code == hangs {
			<-req.Context().Done()
			return
		}
		w.WriteHeader(code)
	})
	mux.HandleFunc("POST "+access.ReviewPath, c.review)
	c.leases = newLeaseLog("cloud", 1000)
	mux.Handle("/apis/coordination.k8s.io/v1/namespaces/", c.leases.Handler(c.user))
	c.signer = newFakeSigner(t, c.user)
	mux.Handle("/apis/certificates.k8s.io/", c.signer)
	mux.HandleFunc("/echo/", c.echo)
	mux.HandleFunc("GET /slow/", c.slow)
	mux.HandleFunc("GET /pour", func(w http.ResponseWriter, _ *http.Request) { pour(w, new(atomic.Int64)) })
	mux.HandleFunc("/upgrade", c.upgrade)
	c.held = newHeld()
	mux.Handle(heldPath, c.held)
	for _, path := range documents.Shared {
		mux.HandleFunc("GET "+path, c.document)
	}
	mux.HandleFunc("/api/v1/", c.core)
	mux.HandleFunc("/apis/discovery.k8s.io/v1/", c.pool("endpointslices"))
	mux.HandleFunc("/apis/example.com/v1", c.widgets)
	mux.HandleFunc("/apis/example.com/v1/", c.widgets)
	c.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		c.mu.Lock()
		user := c.user(req)
		c.seen = append(c.seen, seen{
			user, req.URL.Path, len(req.TLS.PeerCertificates) > 0, req.Method, req.URL.RawQuery,
		})
		refused := cmp.Or(c.broken, c.refused[user])
		if strings.HasPrefix(user, "forged") {
			refused = http.StatusUnauthorized
		}
		c.mu.Unlock()
		// as kube-apiserver, against floods.
		if req.ProtoMajor == 2 && (refused == http.StatusUnauthorized || user == "system:anonymous") {
			w.Header().Set("Connection", "close")
		}
		switch refused {
		case 0:
		case http.StatusUnauthorized:
			answer.Write(w, apierrors.NewUnauthorized("Unauthorized"))
			return
		default:
			w.WriteHeader(refused)
			return
		}
		w.Header().Set("Date", ca.now().UTC().Format(http.TimeFormat))
		mux.ServeHTTP(w, req)
	}))
	c.server.TLS = &tls.Config{
		Certificates: []tls.Certificate{ca.tls("kube-apiserver")}, ClientAuth: tls.VerifyClientCertIfGiven,
		ClientCAs: ca.pool(), Time: ca.now,
	}
	c.server.EnableHTTP2 = true
	c.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	c.server.StartTLS()
	t.Cleanup(func() {
		cancel()
		c.server.CloseClientConnections()
		c.server.Close()
		running.Wait()
	})
	return c
}

func (c *fakeCloud) url() string { return c.server.URL }

// user is who a request is from: as kube-apiserver, certificates are looked at first.
func (c *fakeCloud) user(req *http.Request) string {
	if certs := req.TLS.PeerCertificates; len(certs) > 0 {
		return certs[0].Subject.CommonName
	}
	if token, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer "); ok {
		return token
	}
	return "system:anonymous"
}

func (c *fakeCloud) echo(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(echo{
		User: c.user(req), Proto: req.Proto, Method: req.Method, URI: req.RequestURI, Body: string(body),
		Cert: len(req.TLS.PeerCertificates) > 0, Header: req.Header,
	})
}

// document answers as kube-apiserver does who was asked for JSON.
func (c *fakeCloud) document(w http.ResponseWriter, req *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	body, ok := c.docs[req.URL.Path]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	if slices.Contains(documents.Paths, req.URL.Path) {
		etag := documents.ETagOf([]byte(body))
		w.Header().Set("Etag", etag)
		if req.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	_, _ = io.WriteString(w, body)
}

// slow sends the last part of its path, and then nothing more until the client leaves.
func (c *fakeCloud) slow(w http.ResponseWriter, req *http.Request) {
	fmt.Fprintln(w, strings.TrimPrefix(req.URL.Path, "/slow/"))
	w.(http.Flusher).Flush()
	<-req.Context().Done()
}

// upgrade switches to a protocol that sends back what it gets, line by line, in capitals.
func (c *fakeCloud) upgrade(w http.ResponseWriter, req *http.Request) {
	if req.ProtoMajor != 1 || req.Header.Get("Upgrade") == "" {
		http.Error(w, "no upgrade arrived, but "+req.Proto, http.StatusBadRequest)
		return
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer conn.Close()
	fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\nX-User: %s\r\n\r\n",
		req.Header.Get("Upgrade"), c.user(req))
	_ = rw.Flush()
	in := bufio.NewScanner(rw)
	for in.Scan() {
		fmt.Fprintln(rw, strings.ToUpper(in.Text()))
		_ = rw.Flush()
	}
}

// connect answers what leads to a kubelet, to whom verdicts allow it: a word of the log, or an upgrade. Other
// subresources are of pods.
func (c *fakeCloud) connect(w http.ResponseWriter, req *http.Request, a *authorizationv1.ResourceAttributes) {
	if !slices.Contains([]string{"log", "exec", "attach", "portforward"}, a.Subresource) {
		c.pods.ServeHTTP(w, req)
		return
	}
	if a.Verb = "get"; req.Method == http.MethodPost {
		a.Verb = "create"
	}
	c.mu.Lock()
	allowed := c.allow(c.user(req), a)
	c.mu.Unlock()
	switch {
	case !allowed:
		answer.Write(w, answer.Forbidden(c.user(req), identity.Attributes{
			Verb: a.Verb, Version: "v1", Resource: a.Resource, Subresource: a.Subresource, Namespace: a.Namespace, Name: a.Name,
		}, ""))
	case c.user(req) == "unlucky": // the cloud does not reach the kubelet
		w.WriteHeader(http.StatusBadGateway)
	case a.Subresource == "log":
		_, _ = io.WriteString(w, "by the cloud\n")
	default:
		c.upgrade(w, req)
	}
}

func (c *fakeCloud) review(w http.ResponseWriter, req *http.Request) {
	user := c.user(req)
	if u := req.Header.Get("Impersonate-User"); u != "" {
		if user != "admin" {
			answer.Write(w, answer.Forbidden(user, identity.Attributes{Verb: "impersonate", Resource: "users", Name: u}, ""))
			return
		}
		user = u
	}
	switch user {
	case "expired":
		answer.Write(w, apierrors.NewUnauthorized("Unauthorized"))
		return
	case "system:anonymous":
		answer.Write(w, answer.Forbidden(user, identity.Attributes{
			Verb: "create", Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews",
		}, ""))
		return
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the hub has left
	}
	var r authorizationv1.SelfSubjectAccessReview
	_, raw, err := wire.SplitEnvelope(body)
	if err == nil {
		err = r.Unmarshal(raw)
	}
	if err != nil {
		c.t.Errorf("access review: %v", err)
	}
	a := r.Spec.ResourceAttributes
	c.mu.Lock()
	if r.Status.Allowed = a == nil; a != nil { // a path is everybody's
		c.reviews = append(c.reviews,
			strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", user, a.Verb, a.Resource, a.Namespace, a.Name)))
		r.Status.Allowed = c.allow(user, a)
	}
	c.mu.Unlock()
	raw, _ = r.Marshal()
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(wire.Envelope(access.ReviewKind, raw))
}

func (c *fakeCloud) pool(resource string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		c.mu.Lock()
		code, r := c.denies(c.user(req), resource), c.relays[resource]
		c.mu.Unlock()
		if code != 0 {
			answer.Write(w, apierrors.NewGenericServerResponse(code, "get", schema.GroupResource{Resource: resource}, "",
				"denied by the test", 0, true))
			return
		}
		if user, q := c.user(req), req.URL.Query(); q.Get("watch") != "" && !strings.HasPrefix(user, "weir:hub:") &&
			!strings.HasPrefix(user, "system:node:") && !c.mayWatch(w, req, user) {
			return
		}
		if req.URL.Query().Get("resourceVersion") == "4611686018427387904" { // a question about a caller: nothing ever comes
			w.Header().Set("Content-Type", runtime.ContentTypeProtobuf+";stream=watch")
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-req.Context().Done()
			return
		}
		if q := req.URL.Query(); q.Get("fieldSelector") == "" &&
			(q.Get("watch") == "" && q.Get("limit") == "" || q.Get("sendInitialEvents") != "") {
			c.mu.Lock()
			c.lists[c.user(req)]++
			c.mu.Unlock()
		}
		if req.URL.Query().Get("watch") != "" && req.Header.Get("Accept-Encoding") == "gzip" {
			p := &packing{ResponseWriter: w}
			defer p.end()
			w = p
		}
		(&rest.Handler{Source: r}).ServeHTTP(w, req)
	}
}

// packing compresses a watch, as kube-apiserver does when it is asked to.
type packing struct {
	http.ResponseWriter
	z *gzip.Writer
}

func (p *packing) WriteHeader(code int) {
	if code == http.StatusOK {
		p.Header().Set("Content-Encoding", "gzip")
		p.z = gzip.NewWriter(p.ResponseWriter)
	}
	p.ResponseWriter.WriteHeader(code)
}

func (p *packing) Write(b []byte) (int, error) {
	if p.z == nil {
		return p.ResponseWriter.Write(b)
	}
	return p.z.Write(b)
}

func (p *packing) Flush() {
	if p.z != nil {
		_ = p.z.Flush()
	}
	_ = http.NewResponseController(p.ResponseWriter).Flush()
}

func (p *packing) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p *packing) end() {
	if p.z != nil {
		_ = p.z.Close()
	}
}

// mayWatch judges a watch as review does, and answers if it is not allowed.
func (c *fakeCloud) mayWatch(w http.ResponseWriter, req *http.Request, user string) bool {
	c.mu.Lock()
	relays := slices.Collect(maps.Values(c.relays))
	c.mu.Unlock()
	a := relayed.Router(scope.NewSet(relays...).All).Route(request.Parse(req)).Rights
	c.mu.Lock()
	c.reviews = append(
		c.reviews, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", user, a.Verb, a.Resource, a.Namespace, a.Name)))
	allowed := c.allow(user, &authorizationv1.ResourceAttributes{
		Verb: a.Verb, Group: a.Group, Version: a.Version, Resource: a.Resource, Namespace: a.Namespace, Name: a.Name,
	})
	c.mu.Unlock()
	switch {
	case user == "expired":
		answer.Write(w, apierrors.NewUnauthorized("Unauthorized"))
	case !allowed:
		answer.Write(w, answer.Forbidden(user, a, ""))
	default:
		return true
	}
	return false
}

// widgets serves a custom resource once it is there.
func (c *fakeCloud) widgets(w http.ResponseWriter, req *http.Request) {
	c.mu.Lock()
	there := c.relays["widgets"] != nil
	c.mu.Unlock()
	switch {
	case !there:
		answer.Write(w, apierrors.NewGenericServerResponse(http.StatusNotFound, "get",
			schema.GroupResource{Group: "example.com", Resource: "widgets"}, "", "", 0, true))
	case strings.HasSuffix(req.URL.Path, "/v1"):
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		_, _ = io.WriteString(w,
			`{"kind":"APIResourceList","groupVersion":"example.com/v1","resources":[{"name":"widgets","kind":"Widget",`+
				`"namespaced":true}]}`)
	default:
		c.pool("widgets")(w, req)
	}
}

// install makes the custom resource be there, with some objects.
func (c *fakeCloud) install(names ...string) {
	res, err := relay.ParseResource("widgets.v1.example.com=Widget")
	check(c.t, err)
	r, err := relay.New(relay.Config{Resource: res})
	check(c.t, err)
	var items []*wire.Object
	for _, name := range names {
		o, err := wire.ParseObject(wire.JSON,
			[]byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"namespace":"default","name":"`+name+`","uid":"`+
				name+`","resourceVersion":"50"}}`))
		check(c.t, err)
		items = append(items, o)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	check(c.t, r.Replace(c.version, items))
	c.relays["widgets"] = r
}

// core serves Endpoints, and takes writes of them.
func (c *fakeCloud) core(w http.ResponseWriter, req *http.Request) {
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/") // api v1 namespaces NS endpoints NAME
	if req.Method != http.MethodGet && len(parts) >= 5 && parts[4] == "endpoints" {
		c.write(w, req, parts[3], parts[5:])
		return
	}
	if parts[2] == "nodes" {
		c.nodes(w, req)
		return
	}
	if len(parts) == 7 && parts[4] == "pods" {
		c.connect(w, req, &authorizationv1.ResourceAttributes{
			Namespace: parts[3], Resource: "pods", Name: parts[5], Subresource: parts[6],
		})
		return
	}
	if c.pods != nil && slices.Contains(parts, "pods") {
		c.pods.ServeHTTP(w, req)
		return
	}
	if parts[2] == "namespaces" && len(parts) == 3 {
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		_, _ = io.WriteString(w,
			`{"kind":"NamespaceList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a",`+
				`"uid":"u","resourceVersion":"5"}}]}`)
		return
	}
	if len(parts) > 5 && (parts[4] == "secrets" || parts[4] == "serviceaccounts") {
		canary(w, req, parts[4])
		return
	}
	if len(parts) > 5 && parts[4] == "configmaps" {
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		_ = json.NewEncoder(w).Encode(&corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{Namespace: parts[3], Name: parts[5], ResourceVersion: "7"},
			Data:       map[string]string{"ca.crt": rootsOfCloud},
		})
		return
	}
	c.pool("endpoints")(w, req)
}

// rootsOfCloud is what the cloud has in each ConfigMap.
const rootsOfCloud = "-----BEGIN CERTIFICATE-----\neA==\n-----END CERTIFICATE-----\n"

// nodes has one Node. It answers a get and a PUT of its status, and notes them in order.
func (c *fakeCloud) nodes(w http.ResponseWriter, req *http.Request) {
	var n corev1.Node
	if req.Method == http.MethodPut && !received(c.t, req, &n) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if req.Method == http.MethodPut {
		if n.ResourceVersion != c.node.ResourceVersion {
			answer.Write(w,
				apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, n.Name, errors.New("another version")))
			return
		}
		c.version++
		c.node = n
		c.node.ResourceVersion = strconv.FormatUint(c.version, 10)
	}
	raw, err := c.node.Marshal()
	check(c.t, err)
	if strings.HasPrefix(req.Header.Get("Accept"), runtime.ContentTypeProtobuf) {
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
		_, _ = w.Write(wire.Envelope(wire.Kind{APIVersion: "v1", Kind: "Node"}, raw))
		return
	}
	c.node.APIVersion, c.node.Kind = "v1", "Node"
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	_ = json.NewEncoder(w).Encode(&c.node)
}

// received decodes what a request carries; false: its sender has left.
func received(t testing.TB, req *http.Request, into any) bool {
	t.Helper()
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return false
	}
	if err := json.Unmarshal(body, into); err != nil {
		t.Errorf("%s %s: %v", req.Method, req.URL, err)
		return false
	}
	return true
}

// put changes an Endpoints object and returns it.
func (c *fakeCloud) put(namespace, name string) *corev1.Endpoints {
	c.mu.Lock()
	c.version++
	v := c.version
	c.mu.Unlock()
	e := c.object(namespace, name, v)
	raw, err := e.Marshal()
	check(c.t, err)
	o, err := wire.ParseObject(wire.Protobuf, raw)
	check(c.t, err)
	frame := wire.AppendProtobufFrame(nil, wire.Modified, wire.Kind{APIVersion: "v1", Kind: "Endpoints"}, raw)
	check(c.t, c.relays["endpoints"].Apply(&wire.Event{Type: wire.Modified, Version: v, Object: o, Frame: frame}))
	return e
}

// restore goes on as after a restore from a backup: at an earlier version, and without what was written since.
// Connections break.
func (c *fakeCloud) restore(version uint64) {
	c.server.CloseClientConnections()
	c.set(func() { c.version = version })
	for _, r := range c.relays {
		var items []*wire.Object
		for o := range r.Objects() {
			if o.Version <= version {
				items = append(items, o)
			}
		}
		check(c.t, relay.NewIntake(r).Yield(relay.History{}, &wire.Event{Version: version}, items))
	}
}

func (c *fakeCloud) reviewed() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.reviews...)
}

// refuse makes tokens are no longer valid.
func (c *fakeCloud) refuse(tokens ...string) { c.answers(http.StatusUnauthorized, tokens...) }

func (c *fakeCloud) answers(code int, tokens ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused == nil {
		c.refused = map[string]int{}
	}
	for _, t := range tokens {
		c.refused[t] = code
	}
}

func (c *fakeCloud) set(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// cut is a TCP proxy in front of an address that can be cut off.
type cut struct {
	l      net.Listener
	target string
	mu     sync.Mutex
	down   bool
	conns  map[net.Conn]struct{}
	wg     sync.WaitGroup
}

func newCut(t testing.TB, target string) *cut {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	c := &cut{l: l, target: target, conns: map[net.Conn]struct{}{}}
	c.wg.Go(c.accept)
	t.Cleanup(func() {
		_ = l.Close()
		c.set(true)
		c.wg.Wait()
	})
	return c
}

func (c *cut) accept() {
	for {
		near, err := c.l.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", c.target)
		if err != nil || !c.add(near, far) {
			_ = near.Close()
			if far != nil {
				_ = far.Close()
			}
			continue
		}
		for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
			c.wg.Go(func() {
				_, _ = io.Copy(pair[0], pair[1])
				_ = pair[0].Close()
				_ = pair[1].Close()
			})
		}
	}
}

func (c *cut) add(conns ...net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range conns {
		c.conns[conn] = struct{}{}
	}
	return !c.down
}

func (c *cut) set(down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = down
	if down {
		for conn := range c.conns {
			_ = conn.Close()
		}
		clear(c.conns)
	}
}

func (c *cut) url() string { return "https://" + c.l.Addr().String() }

// newHole returns the URL of a server that takes connections and says nothing.
func newHole(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { _, _ = io.Copy(io.Discard, conn); _ = conn.Close() })
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return "https://" + l.Addr().String()
}
