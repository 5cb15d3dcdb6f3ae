package offline

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/store"
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
	testkit.Until(t, 20*time.Second, what, cond)
}

// bed is a server of ConfigMaps with the rules of kube-apiserver, and an Offline beside the way to it.
type bed struct {
	*Offline
	t      *testing.T
	store  *store.Store
	relay  *relay.Relay
	server *httptest.Server
	lists  atomic.Int32
	refuse atomic.Int32 // code for lists; 0: they are answered
}

const (
	configMaps = "/api/v1/configmaps"
	protobuf   = "application/vnd.kubernetes.protobuf"
	asMetadata = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	asTable    = "application/json;as=Table;v=v1;g=meta.k8s.io"
)

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{t: t}
	var err error
	logger := slog.New(slog.DiscardHandler)
	b.store, err = store.Open(store.Config{Dir: t.TempDir(), Logger: logger})
	check(t, err)
	t.Cleanup(b.store.Close)
	b.Offline = New(Config{Store: b.store, Logger: logger})
	t.Cleanup(b.Wait)
	res, err := relay.ParseResource("configmaps.v1.")
	check(t, err)
	b.relay, err = relay.New(relay.Config{Resource: res})
	check(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { _ = b.relay.Run(ctx); close(ended) }()
	var items []*wire.Object
	for i := range 5 {
		items = append(items, object(t, fmt.Sprintf("cm-%d", i), uint64(10+i), ""))
	}
	check(t, b.relay.Replace(100, items))
	b.server = httptest.NewServer(http.HandlerFunc(b.handle))
	t.Cleanup(func() {
		cancel()
		<-ended
		b.server.Close()
	})
	return b
}

func object(t *testing.T, name string, version uint64, data string) *wire.Object {
	t.Helper()
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: "uid", ResourceVersion: wire.FormatVersion(version),
			Labels: map[string]string{"name": name},
		},
		Data: map[string]string{"key": data},
	}
	raw, err := cm.Marshal()
	check(t, err)
	o, err := wire.ParseObject(wire.Protobuf, raw)
	check(t, err)
	return o
}

// change writes a ConfigMap in the cloud.
func (b *bed) change(name string, version uint64) {
	b.t.Helper()
	o := object(b.t, name, version, "changed")
	frame := wire.AppendProtobufFrame(nil, wire.Modified, wire.Kind{APIVersion: "v1", Kind: "ConfigMap"}, o.Raw)
	check(b.t, b.relay.Apply(&wire.Event{Type: wire.Modified, Version: version, Object: o, Frame: frame}))
}

func (b *bed) handle(w http.ResponseWriter, req *http.Request) {
	if req.URL.Query().Get("watch") == "" {
		b.lists.Add(1)
		if code := b.refuse.Load(); code != 0 {
			w.WriteHeader(int(code))
			return
		}
	}
	if strings.HasSuffix(req.URL.Path, "/cbor") {
		w.Header().Set("Content-Type", "application/cbor")
		_, _ = w.Write([]byte("\xd9\xd9\xf7\xa0"))
		return
	}
	(&rest.Handler{Source: b.relay}).ServeHTTP(w, req)
}

// ask asks the cloud past the recorder, as a hub does.
func (b *bed) ask(ctx context.Context, pathAndQuery string, header ...string) *http.Response {
	b.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.server.URL+pathAndQuery, nil)
	check(b.t, err)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	tr := &http.Transport{DisableCompression: true}
	b.t.Cleanup(tr.CloseIdleConnections)
	resp, err := tr.RoundTrip(req)
	check(b.t, err)
	b.Observe("kubelet", resp, request.Parse(req), tr)
	return resp
}

// pass asks, reads the answer and returns it.
func (b *bed) pass(pathAndQuery string, header ...string) (*http.Response, string) {
	b.t.Helper()
	resp := b.ask(b.t.Context(), pathAndQuery, header...)
	body, err := io.ReadAll(resp.Body)
	check(b.t, err)
	check(b.t, resp.Body.Close())
	return resp, string(body)
}

// offline asks the store.
func (b *bed) offline(pathAndQuery string, header ...string) *httptest.ResponseRecorder {
	b.t.Helper()
	req := httptest.NewRequest(http.MethodGet, pathAndQuery, nil)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	b.Serve(b.t.Context(), "kubelet", w, req, request.Parse(req))
	return w
}

// TestRecordedForms: what passed comes back, in each form; what is in no form that is kept does not, and passes as it
// is.
func TestRecordedForms(t *testing.T) {
	for name, test := range map[string]struct {
		path, accept, gzip string
		code               int // of the same request without the cloud
	}{
		"JSON":                {configMaps, "application/json", "", 200},
		"protobuf":            {configMaps, protobuf, "", 200},
		"compressed":          {configMaps, protobuf, "gzip", 200},
		"compressed JSON":     {configMaps, "", "gzip", 200},
		"metadata":            {configMaps, "application/json" + asMetadata, "", 200},
		"metadata, protobuf":  {configMaps, protobuf + asMetadata, "", 200},
		"by label":            {configMaps + "?labelSelector=name%3Dcm-1", protobuf, "", 200},
		"by field":            {configMaps + "?fieldSelector=metadata.name%3Dcm-1", "application/json", "", 200},
		"of a namespace":      {"/api/v1/namespaces/default/configmaps", protobuf, "", 200},
		"one":                 {"/api/v1/namespaces/default/configmaps/cm-2", protobuf, "", 200},
		"one, JSON":           {"/api/v1/namespaces/default/configmaps/cm-2", "application/json", "", 200},
		"none":                {"/api/v1/namespaces/default/configmaps/none", "application/json", "", 404},
		"none, protobuf":      {"/api/v1/namespaces/default/configmaps/none", protobuf, "", 404},
		"CBOR":                {"/api/v1/namespaces/default/configmaps/cbor", "application/cbor", "", 503},
		"a table":             {configMaps, asTable, "", 503},
		"a list of no object": {"/api/v1/namespaces/default/configmaps/cm-1/status", "", "", 503},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			if strings.HasPrefix(name, "compressed") { // kube-apiserver compresses from 128 kB on
				b.change("cm-0", 101)
				big := object(t, "big", 102, strings.Repeat("abcdefgh", 32<<10))
				frame := wire.AppendProtobufFrame(nil, wire.Added, wire.Kind{APIVersion: "v1", Kind: "ConfigMap"}, big.Raw)
				check(t, b.relay.Apply(&wire.Event{Type: wire.Added, Version: 102, Object: big, Frame: frame}))
			}
			header := []string{"Accept", test.accept}
			plain, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.server.URL+test.path, nil)
			check(t, err)
			plain.Header.Set("Accept", test.accept)
			plain.Header.Set("Accept-Encoding", test.gzip)
			tr := &http.Transport{DisableCompression: true}
			defer tr.CloseIdleConnections()
			resp, err := tr.RoundTrip(plain)
			check(t, err)
			want, err := io.ReadAll(resp.Body)
			check(t, err)
			resp.Body.Close()

			if test.gzip != "" && resp.Header.Get("Content-Encoding") != "gzip" {
				t.Fatal("it is not compressed")
			}
			_, got := b.pass(test.path, append(header, "Accept-Encoding", test.gzip)...)
			if got != string(want) {
				t.Error("the client got something else than the cloud sent")
			}
			if test.gzip != "" {
				z, err := gzip.NewReader(bytes.NewReader(want))
				check(t, err)
				want, err = io.ReadAll(z)
				check(t, err)
			}
			w := b.offline(test.path, header...)
			if w.Code != test.code {
				t.Fatalf("without the cloud: %d, want %d: %s", w.Code, test.code, w.Body)
			}
			if test.code == http.StatusOK && !bytes.Equal(w.Body.Bytes(), want) && !strings.Contains(name, "JSON") &&
				name != "by field" {
				t.Errorf("without the cloud:\n%q, the cloud said\n%q", w.Body, want)
			}
			if test.code == http.StatusOK && w.Header().Get(contract.AgeHeader) == "" {
				t.Error("it does not tell its age")
			}
			if test.code == http.StatusServiceUnavailable && w.Header().Get("Retry-After") != "" {
				t.Error("it names a time to ask again, which clients wait for ten times")
			}
		})
	}
}

// TestOtherForms: what was kept in one form is given in another, if nothing is lost by that.
func TestOtherForms(t *testing.T) {
	for name, test := range map[string]struct {
		kept, asked string
		code        int
		has         string
	}{
		"protobuf as JSON":        {protobuf, "application/json", 200, `"name":"cm-3"`},
		"protobuf as metadata":    {protobuf, "application/json" + asMetadata, 200, `"kind":"PartialObjectMetadataList"`},
		"for kubectl":             {protobuf, asTable + ",application/json", 200, `"kind":"ConfigMapList"`},
		"JSON to who prefers not": {"application/json", protobuf + ",application/json", 200, `"name":"cm-3"`},
		"JSON as protobuf":        {"application/json", protobuf, 503, "is kept as json only"},
		"metadata as objects":     {protobuf + asMetadata, protobuf, 503, "no client of this node has a complete list"},
		"a table alone":           {protobuf, asTable, 503, "is kept as protobuf only"},
		"YAML":                    {protobuf, "application/yaml", 503, "is kept as protobuf only"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			b.pass(configMaps, "Accept", test.kept)
			w := b.offline(configMaps, "Accept", test.asked)
			if w.Code != test.code || !strings.Contains(w.Body.String(), test.has) {
				t.Errorf("%d %q, want %d with %q", w.Code, w.Body, test.code, test.has)
			}
		})
	}
}

// TestPages: a list in pages counts when its last page has come.
func TestPages(t *testing.T) {
	b := newBed(t)
	path, pages := configMaps+"?limit=2", 0
	for token := ""; pages == 0 || token != ""; pages++ {
		if w := b.offline(configMaps); w.Code != http.StatusServiceUnavailable {
			t.Fatalf("after %d pages: %d", pages, w.Code)
		}
		_, body := b.pass(path+"&continue="+token, "Accept", protobuf)
		_, meta, err := wire.ReadAnyList(strings.NewReader(body), wire.Protobuf,
			func(wire.Kind, *wire.Object) error { return nil })
		check(t, err)
		if pages == 1 { // a client may ask for a page twice
			b.pass(path+"&continue="+token, "Accept", protobuf)
		}
		token = meta.Continue
	}
	if pages != 3 {
		t.Fatalf("%d pages", pages)
	}
	w := b.offline(configMaps, "Accept", "application/json")
	if n := strings.Count(w.Body.String(), `"uid":"uid"`); w.Code != http.StatusOK || n != 5 {
		t.Errorf("%d with %d items", w.Code, n)
	}
	first := b.offline(configMaps+"?limit=3", "Accept", protobuf)
	_, meta, err := wire.ReadAnyList(first.Body, wire.Protobuf, func(wire.Kind, *wire.Object) error { return nil })
	check(t, err)
	second := b.offline(configMaps+"?limit=3&continue="+meta.Continue, "Accept", "application/json")
	if n := strings.Count(second.Body.String(), `"uid":"uid"`); n != 2 {
		t.Errorf("the second page without the cloud has %d items: %s", n, second.Body)
	}
}

// TestBrokenAnswers: what breaks off counts for nothing.
func TestBrokenAnswers(t *testing.T) {
	b := newBed(t)
	resp := b.ask(t.Context(), configMaps, "Accept", protobuf)
	_, err := io.ReadFull(resp.Body, make([]byte, 200))
	check(t, err)
	check(t, resp.Body.Close())
	if w := b.offline(configMaps, "Accept", protobuf); w.Code != http.StatusServiceUnavailable {
		t.Errorf("half a list is answered: %d", w.Code)
	}
}

// TestWatches: a watch that goes on from what is kept keeps it current; one that does not has the hub ask for the list
// once.
func TestWatches(t *testing.T) {
	for name, test := range map[string]struct {
		before bool // a list passed before
		query  string
		lists  int32 // asked for by the hub
		kept   bool
	}{
		"after a list": {true, "resourceVersion=100", 0, true},
		"with a list": {
			false, "resourceVersion=100&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", 0,
			true,
		},
		"after nothing":             {false, "resourceVersion=100", 1, true},
		"from an unknown beginning": {false, "resourceVersion=", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			if test.before {
				b.pass(configMaps, "Accept", protobuf)
			}
			lists := b.lists.Load()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			resp := b.ask(ctx, configMaps+"?watch=1&"+test.query, "Accept", protobuf)
			read := make(chan struct{})
			go func() { _, _ = io.Copy(io.Discard, resp.Body); close(read) }()
			b.change("cm-1", 101)
			get := func() string {
				return b.offline("/api/v1/namespaces/default/configmaps/cm-1", "Accept", "application/json").Body.String()
			}
			if test.kept {
				eventually(t, "the change to be kept", func() bool { return strings.Contains(get(), `"resourceVersion":"101"`) })
				eventually(t, "the list to be", func() bool { return b.offline(configMaps).Code == http.StatusOK })
			}
			cancel()
			<-read
			check(t, resp.Body.Close())
			if n := b.lists.Load() - lists; n != test.lists {
				t.Errorf("the hub asked for %d lists, want %d", n, test.lists)
			}
			if !test.kept && !strings.Contains(get(), "has not said anything") {
				t.Errorf("it is kept: %s", get())
			}
		})
	}
}

// TestClientLeavesEarly: a watch whose client leaves while the hub asks for the list opens nothing afterwards, which
// nobody would close.
func TestClientLeavesEarly(t *testing.T) {
	opened, done := 0, 0
	body := newTee(&room{max: 1 << 20}, io.NopCloser(strings.NewReader("")), true, func(io.Reader, *intake) {},
		func() { done++ })
	check(t, body.Close())
	body.begin(func() error { opened++; return nil })
	if opened != 0 || done != 1 {
		t.Errorf("opened %d times, ended %d times", opened, done)
	}
	body = newTee(&room{max: 1 << 20}, io.NopCloser(strings.NewReader("")), true, func(io.Reader, *intake) {},
		func() { done++ })
	body.begin(func() error { opened++; return nil })
	check(t, body.Close())
	if opened != 1 || done != 2 {
		t.Errorf("opened %d times, ended %d times", opened, done)
	}
}

// TestCatchUpFails: a watch for which the hub gets no list reaches its client all the same, and what was kept stays.
func TestCatchUpFails(t *testing.T) {
	b := newBed(t)
	b.pass(configMaps, "Accept", protobuf)
	b.change("cm-1", 101)
	b.refuse.Store(http.StatusForbidden)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	resp := b.ask(ctx, configMaps+"?watch=1&resourceVersion=101", "Accept", protobuf)
	b.change("cm-2", 102)
	ev, err := wire.NewEventReader(resp.Body, wire.Protobuf, wire.Kind{}).Next()
	if err != nil || ev.Version != 102 || ev.Kind.Kind != "ConfigMap" {
		t.Errorf("the client gets %v, %v", ev, err)
	}
	cancel()
	check(t, resp.Body.Close())
	w := b.offline(configMaps, "Accept", "application/json")
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"metadata":{"resourceVersion":"100"}`) {
		t.Errorf("%d: %.100s", w.Code, w.Body)
	}
}

// TestWatchesWithoutCloud: they begin where kube-apiserver's would, are silent, and end when the hub says so.
func TestWatchesWithoutCloud(t *testing.T) {
	b := newBed(t)
	b.pass(configMaps, "Accept", protobuf)
	for query, want := range map[string]string{
		"resourceVersion=100": "", "resourceVersion=105": "", // the client saw more than was kept
		"resourceVersion=50": "ERROR too old resource version: 50 (100)",
		"resourceVersion=100&allowWatchBookmarks=true&timeoutSeconds=3": "BOOKMARK@100",
		"resourceVersion=100&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&" +
			"labelSelector=name!=cm-1": "ADDED@10 ADDED@12 ADDED@13 ADDED@14 BOOKMARK@100 end",
	} {
		t.Run(query, func(t *testing.T) {
			here, back := context.WithCancel(t.Context())
			defer back()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				b.Serve(here, "kubelet", w, req, request.Parse(req))
			}))
			defer server.Close()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+configMaps+"?watch=1&"+query, nil)
			check(t, err)
			req.Header.Set("Accept", protobuf)
			resp, err := server.Client().Do(req)
			check(t, err)
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Fatal(resp.Status)
			}
			if want == "" {
				back()
			}
			events := wire.NewEventReader(resp.Body, wire.Protobuf, wire.Kind{})
			var got []string
			for n := max(strings.Count(want, "@"), 1); n >= 0; n-- {
				ev, err := events.Next()
				if err != nil {
					if n > 0 && want != "" && !strings.HasPrefix(want, "ERROR") {
						t.Errorf("after %v: %v", got, err)
					}
					break
				}
				switch {
				case ev.Status != nil:
					got = append(got, "ERROR "+ev.Status.Message)
				case ev.InitialEnd:
					got = append(got, fmt.Sprintf("%s@%d end", ev.Type, ev.Version))
				default:
					got = append(got, fmt.Sprintf("%s@%d", ev.Type, ev.Version))
				}
				if strings.Join(got, " ") == want {
					back()
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// passing is an overlay from which a write goes into the store after the store was read.
type passing struct {
	left atomic.Uint64
	move func()
}

func (p *passing) Left() uint64 { return p.left.Load() }

func (p *passing) Overlay(_ store.Resource, _ store.Form, o *wire.Object) *wire.Object {
	if p.left.Load() == 0 {
		p.move()
		p.left.Add(1)
	}
	return o
}

// TestWriteOnItsWay: a write that the cloud takes while the store is read is in what is read.
func TestWriteOnItsWay(t *testing.T) {
	for name, path := range map[string]string{"get": "/api/v1/namespaces/default/configmaps/cm-0", "list": configMaps} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			b.pass(configMaps, "Accept", protobuf)
			b.overlay = &passing{move: func() {
				b.store.Written(store.Resource{Version: "v1", Name: "configmaps"}, store.Protobuf,
					wire.Kind{APIVersion: "v1", Kind: "ConfigMap"}, object(t, "cm-0", 101, "written"))
			}}
			if w := b.offline(path, "Accept", "application/json"); w.Code != http.StatusOK ||
				!strings.Contains(w.Body.String(), `"key":"written"`) {
				t.Errorf("%d without what was written: %s", w.Code, w.Body)
			}
		})
	}
}
