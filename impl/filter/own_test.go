package filter

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
)

// root is a certificate as far as a filter looks at it.
func root(name string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: certificateType, Bytes: []byte(name)}))
}

const (
	mapsPath   = "/api/v1/configmaps"
	rootsPath  = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt"
	ofRoots    = "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name%3Dkube-root-ca.crt"
	kubeconfig = `apiVersion: v1
kind: Config
clusters:
- cluster:
    certificate-authority: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
    server: https://10.0.0.1:6443
  name: default
users:
- name: default
  user: {tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token}
`
)

// ownBed is an Own in front of a relay of ConfigMaps, behind a real server.
type ownBed struct {
	*Own
	t         testing.TB
	relay     *relay.Relay
	version   uint64
	server    *httptest.Server
	mu        sync.Mutex
	untouched []string
}

func newOwnBed(t testing.TB) *ownBed {
	t.Helper()
	b := &ownBed{t: t, version: 100}
	b.Own = NewOwn(OwnConfig{
		Node: "edge-1", Roots: []byte(root("node")), KubeProxy: "kube-system/kube-proxy",
		Server: func() string { return "https://127.0.0.1:10261" },
		Untouched: func(name string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.untouched = append(b.untouched, name)
		},
	})
	b.relay, b.server = behind(t, b.Own, "configmaps.v1.=ConfigMap", b.version)
	return b
}

// behind serves a relay of a resource, from a version on, behind what a kubelet reads through.
func behind(t testing.TB, own *Own, resource string, version uint64) (*relay.Relay, *httptest.Server) {
	t.Helper()
	res, err := relay.ParseResource(resource)
	check(t, err)
	r, err := relay.New(relay.Config{Resource: res, Gather: -1})
	check(t, err)
	check(t, r.Replace(version, nil))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = r.Run(ctx) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		own.Serve(w, req, request.Parse(req), (&rest.Handler{Source: r}).ServeHTTP)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		cancel()
		running.Wait()
	})
	return r, server
}

func (b *ownBed) put(typ, namespace, name string, data map[string]string) {
	b.t.Helper()
	b.version++
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: "uid", ResourceVersion: wire.FormatVersion(b.version),
		Annotations: map[string]string{"a": "<b>"},
	}, Data: data, BinaryData: map[string][]byte{"ca.crt": {1}}}
	raw, err := c.Marshal()
	check(b.t, err)
	o, err := wire.ParseObject(wire.Protobuf, raw)
	check(b.t, err)
	kind := kindOf(configMaps)
	check(b.t, b.relay.Apply(&wire.Event{
		Type: typ, Kind: kind, Version: b.version, Object: o, Frame: wire.AppendProtobufFrame(nil, typ, kind, raw),
	}))
}

// ask sends a request; the body of a watch ends with the test.
func (b *ownBed) ask(path string, protobuf bool) *http.Response {
	b.t.Helper()
	// an event that does not come is an error, and not the end of the run.
	ctx, cancel := context.WithTimeout(b.t.Context(), 20*time.Second)
	b.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.server.URL+path, nil)
	check(b.t, err)
	req.Header.Set("Accept", map[bool]string{
		true: "application/vnd.kubernetes.protobuf", false: "application/json",
	}[protobuf])
	resp, err := http.DefaultClient.Do(req)
	check(b.t, err)
	b.t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		b.t.Fatalf("GET %s: %s", path, resp.Status)
	}
	return resp
}

func (b *ownBed) get(path string, protobuf bool) *corev1.ConfigMap {
	b.t.Helper()
	body, err := io.ReadAll(b.ask(path, protobuf).Body)
	check(b.t, err)
	c := &corev1.ConfigMap{}
	if !protobuf {
		check(b.t, json.Unmarshal(body, c))
		return c
	}
	_, raw, err := wire.SplitEnvelope(body)
	check(b.t, err)
	check(b.t, c.Unmarshal(raw))
	return c
}

func (b *ownBed) list(path string, protobuf bool) (items []corev1.ConfigMap) {
	b.t.Helper()
	body, err := io.ReadAll(b.ask(path, protobuf).Body)
	check(b.t, err)
	l := &corev1.ConfigMapList{}
	if !protobuf {
		check(b.t, json.Unmarshal(body, l))
		return l.Items
	}
	_, raw, err := wire.SplitEnvelope(body)
	check(b.t, err)
	check(b.t, l.Unmarshal(raw))
	return l.Items
}

// watch gives the events of a watch: the type, and of an object ca.crt.
func (b *ownBed) watch(path string, protobuf bool) (next func() (typ, roots string)) {
	b.t.Helper()
	resp := b.ask(path, protobuf)
	enc := map[bool]wire.Encoding{true: wire.Protobuf, false: wire.JSON}[protobuf]
	events := wire.NewEventReader(resp.Body, enc, kindOf(configMaps))
	return func() (string, string) {
		b.t.Helper()
		ev, err := events.Next()
		check(b.t, err)
		if ev.Object == nil {
			return ev.Type, ""
		}
		c := &corev1.ConfigMap{}
		if protobuf {
			check(b.t, c.Unmarshal(ev.Object.Raw))
		} else {
			check(b.t, json.Unmarshal(ev.Object.Raw, c))
		}
		return ev.Type, c.Data["ca.crt"]
	}
}

// TestOwnRoots: kube-root-ca.crt of every namespace has the node's authority beside what the cloud has in it; nothing
// else of it, and no other ConfigMap, is another.
func TestOwnRoots(t *testing.T) {
	b := newOwnBed(t)
	cloud := strings.TrimSuffix(root("cloud"), "\n") // as it may stand there
	data := map[string]string{"ca.crt": cloud, "other": "<x>"}
	b.put(wire.Added, "default", "kube-root-ca.crt", data)
	b.put(wire.Added, "team", "kube-root-ca.crt", map[string]string{"ca.crt": root("cloud") + root("node")})
	b.put(wire.Added, "default", "settings", data)
	want := root("cloud") + root("node")
	for _, protobuf := range []bool{true, false} {
		t.Run(fmt.Sprintf("protobuf %v", protobuf), func(t *testing.T) {
			b.t = t
			c := b.get(rootsPath, protobuf)
			if c.Data["ca.crt"] != want || c.Data["other"] != "<x>" || c.ResourceVersion != "101" ||
				c.Annotations["a"] != "<b>" || !bytes.Equal(c.BinaryData["ca.crt"], []byte{1}) {
				t.Errorf("get: %+v", c)
			}
			items := b.list(mapsPath, protobuf)
			got := map[string]string{}
			for _, i := range items {
				got[i.Namespace+"/"+i.Name] = i.Data["ca.crt"]
			}
			if got["default/kube-root-ca.crt"] != want || got["team/kube-root-ca.crt"] != want ||
				got["default/settings"] != cloud {
				t.Errorf("list: %q", got)
			}
			if items := b.list(ofRoots, protobuf); len(items) != 1 || items[0].Data["ca.crt"] != want {
				t.Errorf("list of one: %v", items)
			}
			next := b.watch(ofRoots+"&watch=1&resourceVersion=100", protobuf)
			if typ, roots := next(); typ != wire.Added || roots != want {
				t.Errorf("watch: %s %q", typ, roots)
			}
		})
	}
	b.t = t
	next := b.watch(ofRoots+"&watch=1&resourceVersion=103", true)
	b.put(wire.Modified, "default", "kube-root-ca.crt", map[string]string{"ca.crt": root("another cloud")})
	if typ, roots := next(); typ != wire.Modified || roots != root("another cloud")+root("node") {
		t.Errorf("watch: %s %q", typ, roots)
	}
	if len(b.untouched) > 0 {
		t.Errorf("counted: %v", b.untouched)
	}
}

// TestOwnSuccessor: with another authority an open watch ends with 410, and who lists has both. A watch of before that
// comes back is told the same, once. Watches of other ConfigMaps go on.
func TestOwnSuccessor(t *testing.T) {
	b := newOwnBed(t)
	b.put(wire.Added, "default", "kube-root-ca.crt", map[string]string{"ca.crt": root("cloud")})
	b.put(wire.Added, "default", "settings", map[string]string{"ca.crt": root("cloud")})
	other := strings.Replace(ofRoots, "kube-root-ca.crt", "settings", 1)
	for _, protobuf := range []bool{true, false} {
		b.list(ofRoots, protobuf)
		open, beside := b.watch(ofRoots+"&watch=1&resourceVersion=102", protobuf),
			b.watch(other+"&watch=1&resourceVersion=102", protobuf)
		successor := root(fmt.Sprint("successor", protobuf))
		b.SetRoots([]byte(root("node") + successor))
		if typ, _ := open(); typ != wire.Error {
			t.Errorf("the open watch: %s", typ)
		}
		if typ, _ := b.watch(ofRoots+"&watch=1&resourceVersion=102", protobuf)(); typ != wire.Error {
			t.Errorf("one that comes back: %s", typ)
		}
		if items := b.list(ofRoots, protobuf); items[0].Data["ca.crt"] != root("cloud")+root("node")+successor ||
			items[0].ResourceVersion != "101" {
			t.Errorf("list: %v", items)
		}
		next := b.watch(ofRoots+"&watch=1&resourceVersion=102", protobuf)
		b.put(wire.Modified, "default", "settings", map[string]string{"ca.crt": "new"})
		if typ, text := beside(); typ != wire.Modified || text != "new" {
			t.Errorf("the watch of another: %s %q", typ, text)
		}
		b.put(wire.Deleted, "default", "settings", nil)
		b.put(wire.Added, "default", "settings", map[string]string{"ca.crt": root("cloud")})
		b.put(wire.Modified, "default", "kube-root-ca.crt", map[string]string{"ca.crt": root("cloud")})
		if typ, roots := next(); typ != wire.Modified || roots != root("cloud")+root("node")+successor {
			t.Errorf("who has listed: %s %q", typ, roots)
		}
		b.put(wire.Deleted, "default", "kube-root-ca.crt", map[string]string{"ca.crt": root("cloud")})
		b.put(wire.Added, "default", "settings", map[string]string{"ca.crt": root("cloud")})
		if protobuf { // once more, from the beginning
			b = newOwnBed(t)
			b.put(wire.Added, "default", "kube-root-ca.crt", map[string]string{"ca.crt": root("cloud")})
			b.put(wire.Added, "default", "settings", map[string]string{"ca.crt": root("cloud")})
		}
	}
}

// TestOwnAfterRestart: a hub that comes back with what it showed before ends no watch; with another authority it does.
func TestOwnAfterRestart(t *testing.T) {
	for _, another := range []bool{false, true} {
		b := newOwnBed(t)
		if another {
			b.SetRoots([]byte(root("another")))
		}
		b.put(wire.Added, "default", "kube-root-ca.crt", map[string]string{"ca.crt": root("cloud")})
		next := b.watch(ofRoots+"&watch=1&resourceVersion=100", true)
		if typ, _ := next(); (typ == wire.Error) != another {
			t.Errorf("another authority %v: %s", another, typ)
		}
	}
}

// TestOwnUntouched: what does not hold certificates passes as it is, and is counted.
func TestOwnUntouched(t *testing.T) {
	key := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("k")}))
	tests := map[string]map[string]string{
		"nothing": nil, "no such key": {"x": "y"}, "empty": {"ca.crt": ""}, "garbage": {"ca.crt": "garbage"},
		"a key": {"ca.crt": root("cloud") + key},
		"half":  {"ca.crt": root("cloud") + root("second")[:40]},
	}
	for name, data := range tests {
		t.Run(name, func(t *testing.T) {
			b := newOwnBed(t)
			b.put(wire.Added, "default", "kube-root-ca.crt", data)
			for n, protobuf := range []bool{true, false} {
				if c := b.get(rootsPath, protobuf); c.Data["ca.crt"] != data["ca.crt"] || len(c.Data) != len(data) {
					t.Errorf("protobuf %v: %q", protobuf, c.Data)
				}
				if len(b.untouched) != n+1 || b.untouched[n] != "kube-root-ca.crt" {
					t.Errorf("counted: %v", b.untouched)
				}
			}
		})
	}
}

// TestOwnKubeProxy: kube-proxy's kubeconfig leads to the hub, whose authority pods trust; who calls is what it was.
func TestOwnKubeProxy(t *testing.T) {
	b := newOwnBed(t)
	data := map[string]string{"kubeconfig.conf": kubeconfig, "config.conf": "mode: nftables"}
	insecure := strings.Replace(kubeconfig, "    server:",
		"    insecure-skip-tls-verify: true\n    certificate-authority-data: eA==\n    server:", 1)
	b.put(wire.Added, "kube-system", "kube-proxy", data)
	b.put(wire.Added, "default", "kube-proxy", data)
	const path = "/api/v1/namespaces/%s/configmaps/kube-proxy"
	for _, protobuf := range []bool{true, false} {
		b.put(wire.Modified, "kube-system", "kube-proxy", data)
		c := b.get(fmt.Sprintf(path, "kube-system"), protobuf)
		got := c.Data["kubeconfig.conf"]
		for _, want := range []string{
			"server: https://127.0.0.1:10261\n", "certificate-authority: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt\n",
			"tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token\n", "kind: Config\n",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("protobuf %v: no %q in:\n%s", protobuf, want, got)
			}
		}
		if strings.Contains(got, "10.0.0.1") || c.Data["config.conf"] != "mode: nftables" {
			t.Errorf("protobuf %v: %q", protobuf, c.Data)
		}
		if again, err := lead(got, "https://127.0.0.1:10261"); err != nil || again != got {
			t.Errorf("altered again: %v\n%s", err, again)
		}
		if c := b.get(fmt.Sprintf(path, "default"), protobuf); c.Data["kubeconfig.conf"] != kubeconfig {
			t.Errorf("one of the same name: %q", c.Data)
		}
		b.put(wire.Modified, "kube-system", "kube-proxy", map[string]string{"kubeconfig.conf": insecure})
		if got := b.get(fmt.Sprintf(path, "kube-system"), protobuf).Data["kubeconfig.conf"]; strings.Contains(
			got, "insecure") || strings.Contains(got, "-data") {
			t.Errorf("what would keep it from verifying the hub is still there:\n%s", got)
		}
	}
	for _, bad := range []string{
		"", "garbage: [", "clusters: []", "clusters: [1]", "clusters: [{name: x}]", "clusters: [{cluster: x}]", "- x",
	} {
		if text, err := lead(bad, "https://127.0.0.1:1"); err == nil {
			t.Errorf("%q became %q", bad, text)
		}
	}
	if slices.Contains(b.untouched, "kube-proxy") {
		t.Errorf("counted: %v", b.untouched)
	}
}

// TestOwnConcerns: nothing but what may hold an altered ConfigMap is looked at.
func TestOwnConcerns(t *testing.T) {
	b := newOwnBed(t)
	for path, want := range map[string]bool{
		rootsPath: true, ofRoots: true, ofRoots + "&watch=1": true, mapsPath: true,
		"/api/v1/namespaces/kube-system/configmaps/kube-proxy":      true,
		strings.Replace(ofRoots, "kube-root-ca.crt", "settings", 1): false,
		"/api/v1/namespaces/default/configmaps/settings":            false,
		"/api/v1/namespaces/default/secrets/kube-root-ca.crt":       false, rootsPath + "/status": false,
	} {
		if got := b.concerns(request.Parse(httptest.NewRequest(http.MethodGet, path, nil))); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if b.concerns(request.Parse(httptest.NewRequest(http.MethodPut, rootsPath, nil))) {
		t.Error("a write is looked at")
	}
}

// FuzzOwn: whatever a ConfigMap is made of, the node gets something; what it gets is the same when it is altered again,
// and nothing but the one key is another.
func FuzzOwn(f *testing.F) {
	for _, c := range []*corev1.ConfigMap{
		{
			ObjectMeta: metav1.ObjectMeta{Name: "kube-root-ca.crt", Namespace: "d", ResourceVersion: "7"},
			Data:       map[string]string{"ca.crt": root("cloud"), "x": "y"},
		},
		{
			ObjectMeta: metav1.ObjectMeta{Name: "kube-proxy", Namespace: "kube-system", ResourceVersion: "7"},
			Data:       map[string]string{"kubeconfig.conf": kubeconfig},
		},
	} {
		raw, err := c.Marshal()
		check(f, err)
		f.Add(raw, true)
		raw, err = json.Marshal(c)
		check(f, err)
		f.Add(raw, false)
	}
	o := NewOwn(OwnConfig{
		Node: "edge-1", Roots: []byte(root("node")), KubeProxy: "kube-system/kube-proxy",
		Server: func() string { return "https://127.0.0.1:1" },
	})
	q := reading{rules: o.rules}
	f.Fuzz(func(t *testing.T, raw []byte, protobuf bool) {
		enc := map[bool]wire.Encoding{true: wire.Protobuf, false: wire.JSON}[protobuf]
		at, err := wire.ParseObject(enc, raw)
		if err != nil {
			return
		}
		out, shown := q.apply(o.now(), enc, at)
		if !shown {
			t.Fatal("not shown")
		}
		now, err := wire.ParseObject(enc, out)
		if err != nil || now.Name != at.Name || now.Namespace != at.Namespace || now.Version != at.Version {
			t.Fatalf("%+v became %+v: %v", at, now, err)
		}
		if again, _ := q.apply(o.now(), enc, now); !bytes.Equal(again, out) {
			t.Errorf("altered again:\n%q\n%q", out, again)
		}
		if !protobuf {
			return
		}
		var before, after corev1.ConfigMap
		if before.Unmarshal(raw) != nil {
			return
		}
		check(t, after.Unmarshal(out))
		for _, c := range []*corev1.ConfigMap{&before, &after} {
			delete(c.Data, rootsKey)
			delete(c.Data, kubeconfigKey)
			if len(c.Data) == 0 {
				c.Data = nil
			}
		}
		if before.String() != after.String() {
			t.Errorf("%s\n%s", before.String(), after.String())
		}
	})
}
