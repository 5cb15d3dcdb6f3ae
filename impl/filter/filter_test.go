package filter

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
)

var everything = Config{
	Enabled: []string{MasterService, DiscardService, ServiceTopology}, MasterService: "169.254.2.1:10268",
}

func encodings(t *testing.T, f func(*testing.T, wire.Encoding)) {
	for _, enc := range []wire.Encoding{wire.Protobuf, wire.JSON} {
		t.Run(enc.String(), func(t *testing.T) { f(t, enc) })
	}
}

// find reads an object as a component.
func (b *bed) find(component string, res request.Resource, name string, enc wire.Encoding) (code int, raw string) {
	path := "/api/v1/namespaces/default/services/" + name
	if res == slicesOf {
		path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/" + name
	}
	code, body := b.body(b.server, component, path, enc)
	if enc == wire.Protobuf && code == http.StatusOK {
		_, bare, err := wire.SplitEnvelope([]byte(body))
		check(b.t, err)
		body = string(bare)
	}
	return code, body
}

func (b *bed) names(component string, enc wire.Encoding) string {
	i := b.informer(component, services, enc, false)
	i.list(b.t.Context())
	return fmt.Sprint(len(i.objects), i.strange)
}

func TestMasterService(t *testing.T) {
	b := newBed(t, everything)
	https := corev1.ServicePort{Name: "https", Protocol: "TCP", Port: 443}
	master := service("kubernetes", func(s *corev1.Service) {
		s.Spec.Type, s.Spec.Ports = "ClusterIP", []corev1.ServicePort{https, {Name: "other", Port: 80}}
	})
	b.put(wire.Added, master)
	b.put(wire.Added, service("web", func(s *corev1.Service) { s.Spec.Ports = []corev1.ServicePort{https} }))
	want := master.DeepCopy()
	want.Spec.ClusterIP, want.Spec.ClusterIPs, want.Spec.Ports[0].Port = "169.254.2.1", []string{"169.254.2.1"}, 10268
	encodings(t, func(t *testing.T, enc wire.Encoding) {
		for component, expected := range map[string]*corev1.Service{
			"kubelet": want, "kube-proxy": master, "kubectl": master,
		} {
			_, raw := b.find(component, services, "kubernetes", enc)
			b, err := json.Marshal(expected)
			check(t, err)
			if got := content(enc, services, []byte(raw)); got != string(b) {
				t.Errorf("%s sees  %s\nwant %s", component, got, b)
			}
		}
		_, seen := b.find("kubelet", services, "web", enc)
		if _, is := b.find("kubectl", services, "web", enc); seen != is {
			t.Errorf("another Service is %q, was %q", seen, is)
		}
	})
}

func TestDiscardService(t *testing.T) {
	b := newBed(t, everything)
	marked := func(s *corev1.Service) { s.Annotations = map[string]string{contract.DiscardService: "true"} }
	b.put(wire.Added, service("web", nil))
	b.put(wire.Added, service("cloud", marked))
	b.put(wire.Added, service("inner", func(s *corev1.Service) { marked(s); s.Spec.Type = "ClusterIP" }))
	b.put(wire.Added, service("not", func(s *corev1.Service) {
		s.Annotations = map[string]string{contract.DiscardService: "false"}
	}))
	encodings(t, func(t *testing.T, enc wire.Encoding) {
		for component, want := range map[string]int{"kube-proxy": 3, "coredns": 4, "kubelet": 4} {
			if got := b.names(component, enc); got != fmt.Sprint(want, " []") {
				t.Errorf("%s sees %s", component, got)
			}
		}
		if code, body := b.find("kube-proxy", services, "cloud", enc); code != http.StatusNotFound ||
			!strings.Contains(body, `"reason":"NotFound"`) {
			t.Errorf("a get: %d %s", code, body)
		}
		if code, _ := b.find("coredns", services, "cloud", enc); code != http.StatusOK {
			t.Errorf("a get by another: %d", code)
		}
	})
}

func nodesOf(t *testing.T, enc wire.Encoding, raw string) string {
	t.Helper()
	var s discoveryv1.EndpointSlice
	check(t, json.Unmarshal([]byte(content(enc, slicesOf, []byte(raw))), &s))
	var nodes []string
	for _, e := range s.Endpoints {
		nodes = append(nodes, ptr.Deref(e.NodeName, "-"))
	}
	return strings.Join(nodes, " ")
}

func TestServiceTopology(t *testing.T) {
	b := newBed(t, everything)
	all := []string{"edge-1", "edge-2", "cloud-1", ""}
	annotated := func(name, keys string) {
		b.put(wire.Added, service(name, func(s *corev1.Service) {
			s.Annotations = map[string]string{contract.TopologyKeys: keys}
		}))
		b.put(wire.Added, slice(name, nil, all...))
	}
	annotated("node", contract.HostnameTopology)
	annotated("pool", contract.PoolTopology)
	annotated("zone", contract.ZoneTopology)
	annotated("else", "topology.kubernetes.io/region")
	for _, label := range []string{"node", "pool", "region"} {
		b.put(wire.Added, slice("label-"+label, map[string]string{contract.TopologyLabel: label}, all...))
	}
	b.put(wire.Added, slice("plain", nil, all...))
	b.put(wire.Added, slice("far", map[string]string{contract.TopologyLabel: "node"}, "cloud-1"))
	expect := func(when string, want map[string]string) {
		t.Helper()
		for name, nodes := range want {
			for _, enc := range []wire.Encoding{wire.Protobuf, wire.JSON} {
				for component, want := range map[string]string{
					"kube-proxy": nodes, "coredns": nodes, "kubectl": "edge-1 edge-2 cloud-1 -",
				} {
					if name == "far" && component == "kubectl" {
						want = "cloud-1"
					}
					if _, raw := b.find(component, slicesOf, name+"-x", enc); nodesOf(t, enc, raw) != want {
						t.Errorf("%s: %s sees %s at %q, want %q (%v)", when, component, name, nodesOf(t, enc, raw), want, enc)
					}
				}
			}
		}
	}
	const everywhere, here, pool = "edge-1 edge-2 cloud-1 -", "edge-1", "edge-1 edge-2"
	expect("nothing is known", map[string]string{
		"node": everywhere, "pool": everywhere, "label-node": here, "label-pool": everywhere, "label-region": everywhere,
		"plain": everywhere, "far": "",
	})
	b.names("kube-proxy", wire.Protobuf) // which teaches
	b.setMembers([]string{"edge-2"})
	expect("all is known", map[string]string{
		"node": here, "pool": pool, "zone": pool, "else": everywhere, "label-node": here, "label-pool": pool,
		"label-region": everywhere, "plain": everywhere, "far": "",
	})
	b.setMembers(nil)
	expect("a pool of one", map[string]string{"pool": here, "plain": everywhere})
}

// TestUntouched: what no filter alters is the bytes that came, and for others nothing is decoded.
func TestUntouched(t *testing.T) {
	b := newBed(t, everything)
	b.put(wire.Added, service("web", nil))
	b.put(wire.Added, slice("web", nil, "edge-1", "edge-2"))
	encodings(t, func(t *testing.T, enc wire.Encoding) {
		for _, component := range []string{"kube-proxy", "kubelet", "coredns", "kubectl", ""} {
			var all sync.WaitGroup
			for _, path := range []string{
				servicesPath, slicesPath, "/api/v1/namespaces/default/services/web", "/api/v1/namespaces/default/services/none",
				servicesPath + "?limit=1", servicesPath + "?watch=1&resourceVersion=0&timeoutSeconds=1",
				servicesPath + "?labelSelector=%21%21",
				servicesPath + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&" +
					"timeoutSeconds=1",
			} {
				all.Go(func() {
					wantCode, want := b.body(b.plain, component, path, enc)
					code, got := b.body(b.server, component, path, enc)
					if code != wantCode || got != want {
						t.Errorf("%s GET %s: %d %q\nwant %d %q", component, path, code, got, wantCode, want)
					}
				})
			}
			all.Wait()
		}
	})
}

// TestOtherAnswers: what is no object of the resource passes.
func TestOtherAnswers(t *testing.T) {
	b := newBed(t, everything)
	answers := map[string]struct {
		contentType, body string
		code              int
	}{
		"a table": {"application/json;as=Table;g=meta.k8s.io;v=v1", `{"kind":"Table"}`, 200},
		"metadata": {
			"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", "k8s\x00...", 200,
		},
		"a status":    {"application/json", `{"kind":"Status","apiVersion":"v1","code":200}`, 200},
		"no JSON":     {"application/json", `nothing`, 200},
		"no protobuf": {"application/vnd.kubernetes.protobuf", "k8s\x00\xff\xff", 200},
		"an error":    {"application/json", `{"kind":"ServiceList"}`, 500},
		"text":        {"text/plain", "ok", 200},
		"another list": {
			"application/json", `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"x"}}]}`, 200,
		},
		"nameless items": {"application/json", `{"kind":"ServiceList","apiVersion":"v1","items":[{"metadata":{}}]}`, 200},
		"no list":        {"application/json", `{"kind":"ServiceList","apiVersion":"v1","items":7}`, 200},
	}
	for name, a := range answers {
		for _, path := range []string{servicesPath, servicesPath + "?watch=1", "/api/v1/namespaces/default/services/x"} {
			rec := httptest.NewRecorder()
			req := httptest.NewRequest(http.MethodGet, path, nil)
			req.Header.Set("User-Agent", "kube-proxy")
			b.Serve(rec, req, request.Parse(req), func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", a.contentType)
				w.WriteHeader(a.code)
				for _, c := range []byte(a.body) { // in as many writes as there may be
					_, err := w.Write([]byte{c})
					check(t, err)
				}
			})
			got := rec.Body.String()
			if strings.Contains(path, "watch") && strings.HasPrefix(a.body, got) {
				continue // a frame that is not whole is not passed
			}
			if rec.Code != a.code || got != a.body {
				t.Errorf("%s at %s: %d %q", name, path, rec.Code, got)
			}
		}
	}
}

func TestConfig(t *testing.T) {
	for name, c := range map[string]Config{
		"unknown":       {Enabled: []string{"x"}},
		"twice":         {Enabled: []string{DiscardService, DiscardService}},
		"no component":  {Enabled: []string{DiscardService + "="}},
		"no address":    {Enabled: []string{MasterService}},
		"a name":        {Enabled: []string{MasterService}, MasterService: "hub:1"},
		"no port":       {Enabled: []string{MasterService}, MasterService: "1.2.3.4"},
		"another port":  {Enabled: []string{MasterService}, MasterService: "1.2.3.4:0"},
		"a large port":  {Enabled: []string{MasterService}, MasterService: "1.2.3.4:70000"},
		"an empty name": {Enabled: []string{"=kube-proxy"}},
	} {
		if err := c.Validate(); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	for _, c := range []Config{{}, everything, {Enabled: []string{DiscardService + "=kube-proxy,cilium-agent"}}} {
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
	}
	var off *Filters // is no filter
	called := false
	off.Serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, servicesPath, nil), nil,
		func(http.ResponseWriter, *http.Request) { called = true })
	if !called {
		t.Error("without filters nothing is answered")
	}
}

// TestCompressed: a list and a watch that come compressed are filtered as well, and events are not held back.
func TestCompressed(t *testing.T) {
	b := newBed(t, everything)
	b.put(wire.Added, service("web", nil))
	b.put(wire.Added, service("cloud", func(s *corev1.Service) {
		s.Annotations = map[string]string{contract.DiscardService: "true"}
	}))
	squeeze := func(w http.ResponseWriter, req *http.Request) {
		z := gzip.NewWriter(w)
		w.Header().Set("Content-Encoding", "gzip")
		(&rest.Handler{Source: b.services}).ServeHTTP(zipped{w, z}, req)
		check(t, z.Close())
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		b.Serve(w, req, request.Parse(req), squeeze)
	}))
	defer server.Close()
	encodings(t, func(t *testing.T, enc wire.Encoding) {
		_, list := b.body(server, "kube-proxy", servicesPath, enc)
		if !strings.Contains(list, "web") || strings.Contains(list, "cloud") {
			t.Errorf("a list is %q", list)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		resp, err := b.get(ctx, server, "kube-proxy", servicesPath+"?watch=1&resourceVersion=100", enc)
		check(t, err)
		defer resp.Body.Close()
		events := wire.NewEventReader(resp.Body, enc, kindOf(services))
		for _, name := range []string{"web", "late-" + enc.String()} {
			ev, err := events.Next()
			check(t, err)
			if ev.Type == wire.Deleted || ev.Object.Name != name && !strings.HasPrefix(ev.Object.Name, "late") {
				t.Errorf("%s of %s, want %s", ev.Type, ev.Object.Name, name)
			}
			b.put(wire.Added, service("late-"+enc.String(), nil))
		}
	})
}

// zipped compresses what is written.
type zipped struct {
	http.ResponseWriter
	z *gzip.Writer
}

func (z zipped) Write(p []byte) (int, error) { return z.z.Write(p) }

func (z zipped) Flush() {
	_ = z.z.Flush()
	_ = http.NewResponseController(z.ResponseWriter).Flush()
}

func (z zipped) Unwrap() http.ResponseWriter { return z.ResponseWriter }
