package filter

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	testkit.Until(t, 30*time.Second, what, cond)
}

// bed is filters in front of relays, behind a real server.
type bed struct {
	*Filters
	t        testing.TB
	services *relay.Relay
	slices   *relay.Relay
	version  uint64
	server   *httptest.Server
	plain    *httptest.Server // without filters
}

func newBed(t testing.TB, c Config) *bed {
	b := &bed{t: t, version: 100}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	start := func(name string) *relay.Relay {
		res, err := relay.ParseResource(name)
		check(t, err)
		r, err := relay.New(relay.Config{Resource: res, Gather: -1})
		check(t, err)
		check(t, r.Replace(b.version, nil))
		running.Go(func() { _ = r.Run(ctx) })
		return r
	}
	b.services, b.slices = start("services.v1."), start("endpointslices.v1.discovery.k8s.io")
	c.Node, c.Pool, c.Cloud = "edge-1", "pool-a", http.DefaultTransport
	c.Slices = func() (uint64, iter.Seq[*wire.Object]) { return b.slices.Status().Version, b.slices.Objects() }
	var err error
	b.Filters, err = New(c)
	check(t, err)
	answer := func(w http.ResponseWriter, req *http.Request) {
		mux := http.NewServeMux()
		mux.Handle("/api/", &rest.Handler{Source: b.services})
		mux.Handle("/apis/", &rest.Handler{Source: b.slices})
		mux.ServeHTTP(w, req)
	}
	b.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		b.Serve(w, req, request.Parse(req), answer)
	}))
	b.plain = httptest.NewServer(http.HandlerFunc(answer))
	t.Cleanup(func() {
		for _, s := range []*httptest.Server{b.server, b.plain} {
			s.CloseClientConnections()
			s.Close()
		}
		cancel()
		running.Wait()
	})
	return b
}

// message is a built-in type.
type message interface {
	metav1.Object
	Marshal() ([]byte, error)
}

// put changes an object, as the cloud would.
func (b *bed) put(typ string, o message) {
	b.t.Helper()
	b.version++
	o.SetResourceVersion(wire.FormatVersion(b.version))
	if o.GetUID() == "" {
		o.SetUID(types.UID("uid-" + o.GetName()))
	}
	raw, err := o.Marshal()
	check(b.t, err)
	parsed, err := wire.ParseObject(wire.Protobuf, raw)
	check(b.t, err)
	kind, r := kindOf(services), b.services
	if _, ok := o.(*discoveryv1.EndpointSlice); ok {
		kind, r = kindOf(slicesOf), b.slices
	}
	frame := wire.AppendProtobufFrame(nil, typ, kind, raw)
	check(b.t, r.Apply(&wire.Event{Type: typ, Kind: kind, Version: b.version, Object: parsed, Frame: frame}))
}

func service(name string, change func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.96.0.1", ClusterIPs: []string{"10.96.0.1"},
		},
	}
	if change != nil {
		change(s)
	}
	return s
}

// slice is one of a Service, with an endpoint on each node.
func slice(service string, labels map[string]string, nodes ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: service + "-x", Labels: map[string]string{serviceLabel: service},
		},
		AddressType: "IPv4",
	}
	for k, v := range labels {
		s.Labels[k] = v
	}
	for i, n := range nodes {
		e := discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.0.0.%d", i)}}
		if n != "" {
			e.NodeName = &n
		}
		s.Endpoints = append(s.Endpoints, e)
	}
	return s
}

const (
	servicesPath = "/api/v1/services"
	slicesPath   = "/apis/discovery.k8s.io/v1/endpointslices"
)

// get reads a path as a component.
func (b *bed) get(ctx context.Context, server *httptest.Server, component, path string, enc wire.Encoding) (
	*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", component+"/v1.37.1 (linux/amd64)")
	req.Header.Set("Accept", "application/json")
	if enc == wire.Protobuf {
		req.Header.Set("Accept", "application/vnd.kubernetes.protobuf")
	}
	return server.Client().Do(req)
}

func (b *bed) body(server *httptest.Server, component, path string, enc wire.Encoding) (int, string) {
	b.t.Helper()
	resp, err := b.get(b.t.Context(), server, component, path, enc)
	check(b.t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	check(b.t, err)
	return resp.StatusCode, string(raw)
}

// content is what of an object a test looks at, in JSON.
func content(enc wire.Encoding, res request.Resource, raw []byte) string {
	var into message = &corev1.Service{}
	if res == slicesOf {
		into = &discoveryv1.EndpointSlice{}
	}
	var err error
	if enc == wire.Protobuf {
		err = into.(interface{ Unmarshal([]byte) error }).Unmarshal(raw)
	} else {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		return "malformed: " + err.Error()
	}
	switch o := into.(type) {
	case *corev1.Service:
		o.TypeMeta = metav1.TypeMeta{}
	case *discoveryv1.EndpointSlice:
		o.TypeMeta = metav1.TypeMeta{}
		if len(o.Endpoints) == 0 {
			o.Endpoints = nil
		}
	}
	b, err := json.Marshal(into)
	if err != nil {
		return "malformed: " + err.Error()
	}
	return string(b)
}

// informer is a client that lists and watches as client-go's do: whom it tells sees no change of an object that keeps
// its version.
type informer struct {
	b         *bed
	component string
	res       request.Resource
	enc       wire.Encoding
	streaming bool // begins with a streaming list

	mu               sync.Mutex
	version          uint64
	highest          uint64
	whole            bool              // all that is there has been shown
	objects          map[string]string // content, by key
	versions         map[string]string // resourceVersion in that
	expired          int
	resumed          int
	strange          []string
	cut              context.CancelFunc
	old, oldVersions map[string]string
	cutAfter         int                                             // events; 0: never
	look             func(version uint64, objects map[string]string) // after each event
}

func (b *bed) informer(component string, res request.Resource, enc wire.Encoding, streaming bool) *informer {
	return &informer{
		b: b, component: component, res: res, enc: enc, streaming: streaming, objects: map[string]string{},
		versions: map[string]string{},
	}
}

func (i *informer) path() string {
	if i.res == services {
		return servicesPath
	}
	return slicesPath
}

// run lists and watches until ctx ends.
func (i *informer) run(ctx context.Context) {
	for ctx.Err() == nil {
		i.mu.Lock()
		version := i.version
		i.mu.Unlock()
		q := url.Values{"watch": {"1"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {wire.FormatVersion(version)}}
		switch {
		case version == 0 && i.streaming:
			q = url.Values{
				"watch": {"1"}, "allowWatchBookmarks": {"true"}, "sendInitialEvents": {"true"},
				"resourceVersionMatch": {"NotOlderThan"},
			}
			i.begin()
		case version == 0:
			i.list(ctx)
			continue
		}
		i.watch(ctx, i.path()+"?"+q.Encode())
	}
}

func (i *informer) list(ctx context.Context) {
	resp, err := i.b.get(ctx, i.b.server, i.component, i.path(), i.enc)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	found := map[string]*wire.Object{}
	meta, err := wire.ReadList(bufio.NewReader(resp.Body), i.enc, kindOf(i.res), func(o *wire.Object) error {
		found[o.Key] = o
		return nil
	})
	if err != nil {
		i.odd("list: " + err.Error())
		return
	}
	i.replace(meta.Version, found)
}

// replace takes the place of all objects. What keeps its version is not looked at.
func (i *informer) replace(version uint64, found map[string]*wire.Object) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for key := range i.objects {
		if found[key] == nil {
			delete(i.objects, key)
			delete(i.versions, key)
		}
	}
	for key, o := range found {
		i.take(key, o)
	}
	i.version, i.whole = version, true
}

// begin takes what comes in place of all objects.
func (i *informer) begin() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.whole = false
	i.old = i.objects
	i.oldVersions = i.versions
	i.objects, i.versions = map[string]string{}, map[string]string{}
}

func (i *informer) take(key string, o *wire.Object) {
	v := wire.FormatVersion(o.Version)
	if i.oldVersions[key] == v { // in place of all: no notice is taken of it
		i.objects[key], i.versions[key] = i.old[key], v
	}
	if i.versions[key] != v {
		i.objects[key], i.versions[key] = content(i.enc, i.res, o.Raw), v
	}
}

func (i *informer) watch(ctx context.Context, path string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	i.mu.Lock()
	i.cut = cancel
	i.resumed++
	i.mu.Unlock()
	defer func() { // one that breaks before it has shown all begins again
		i.mu.Lock()
		defer i.mu.Unlock()
		if !i.whole && i.old != nil {
			i.version, i.objects, i.versions = 0, i.old, i.oldVersions
		}
	}()
	resp, err := i.b.get(ctx, i.b.server, i.component, path, i.enc)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		i.mu.Lock()
		i.version = 0
		i.mu.Unlock()
		return
	}
	events := wire.NewEventReader(resp.Body, i.enc, kindOf(i.res))
	for n := 1; ; n++ {
		ev, err := events.Next()
		if err != nil {
			return
		}
		if !i.event(ev) {
			return
		}
		i.mu.Lock()
		stop := i.cutAfter > 0 && n >= i.cutAfter
		if stop {
			i.cutAfter = 0
		}
		i.mu.Unlock()
		if stop {
			return
		}
	}
}

func (i *informer) event(ev *wire.Event) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if ev.Type == wire.Error {
		i.expired++
		i.version = 0
		i.old, i.oldVersions = nil, nil
		clear(i.objects) // who is told to list begins again here: see the package comment
		clear(i.versions)
		return false
	}
	if ev.Object != nil {
		key := ev.Object.Key
		_, have := i.objects[key]
		if ev.Type == wire.Added && have && i.versions[key] == wire.FormatVersion(ev.Version) {
			i.strange = append(i.strange, fmt.Sprintf("%s of %s, which is there at that version", ev.Type, key))
		}
		if ev.Type == wire.Deleted {
			delete(i.objects, key)
			delete(i.versions, key)
		} else {
			i.take(key, ev.Object)
		}
	}
	i.version = ev.Version
	if ev.InitialEnd {
		i.whole = true
		i.old, i.oldVersions = nil, nil
	}
	if i.look != nil && i.whole && ev.Version > i.highest { // older ones tell again what is known
		i.look(ev.Version, i.objects)
	}
	i.highest = max(i.highest, ev.Version)
	return true
}

func (i *informer) odd(what string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.strange = append(i.strange, what)
}
