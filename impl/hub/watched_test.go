package hub

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// fakePods serves the pods of one node. What is written is shown by watches when the test says so.
type fakePods struct {
	t     *testing.T
	shown *relay.Relay

	mu      sync.Mutex
	version uint64
	pods    map[string]*corev1.Pod
	gets    map[string]int // by user
	fails   int            // code that writes are answered with, though they are done; 0: none
	brief   bool           // writes are answered with metadata, if that is asked for
}

func newFakePods(t *testing.T) *fakePods {
	res, err := relay.ParseResource("pods.v1.")
	check(t, err)
	p := &fakePods{t: t, version: 100, pods: map[string]*corev1.Pod{}, gets: map[string]int{}}
	p.shown, err = relay.New(relay.Config{Resource: res})
	check(t, err)
	check(t, p.shown.Replace(p.version, nil))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = p.shown.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return p
}

// put writes a pod, with a message in its status.
func (p *fakePods) put(name, message string) *corev1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version++
	x := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(name), ResourceVersion: strconv.FormatUint(p.version, 10),
		},
		Spec: corev1.PodSpec{NodeName: "edge-1"}, Status: corev1.PodStatus{Message: message},
	}
	p.pods[name] = x
	return x
}

// wrote takes the status of a pod, and shows it.
func (p *fakePods) wrote(name string, s corev1.PodStatus) *corev1.Pod {
	p.put(name, "")
	p.mu.Lock()
	x := p.pods[name]
	x.Status = s
	p.mu.Unlock()
	p.show(name)
	return x
}

// show lets watches see a pod as it is.
func (p *fakePods) show(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	raw, err := p.pods[name].Marshal()
	check(p.t, err)
	o, err := wire.ParseObject(wire.Protobuf, raw)
	check(p.t, err)
	frame := wire.AppendProtobufFrame(nil, wire.Modified, wire.Kind{APIVersion: "v1", Kind: "Pod"}, raw)
	check(p.t, p.shown.Apply(&wire.Event{Type: wire.Modified, Version: o.Version, Object: o, Frame: frame}))
}

func (p *fakePods) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	name := ""
	if rest, ok := strings.CutPrefix(req.URL.Path, podPath); ok {
		name, _, _ = strings.Cut(rest, "/")
	}
	if name == "" {
		(&rest.Handler{Source: p.shown}).ServeHTTP(w, req)
		return
	}
	var in struct{ Status struct{ Message string } }
	if req.Method == http.MethodPatch && !received(p.t, req, &in) {
		return
	}
	var whole corev1.Pod
	if req.Method == http.MethodPut {
		if !received(p.t, req, &whole) {
			return
		}
		p.wrote(name, whole.Status)
	}
	p.mu.Lock()
	fails, brief := p.fails, p.brief && strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadata")
	if req.Method == http.MethodGet {
		p.gets[req.Header.Get("User-Agent")]++
	}
	x := p.pods[name]
	p.mu.Unlock()
	if req.Method == http.MethodPatch {
		x = p.put(name, in.Status.Message)
		if fails != 0 {
			w.WriteHeader(fails)
			return
		}
	}
	if !strings.HasPrefix(req.Header.Get("Accept"), protobufOnly) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(x)
		return
	}
	raw, err := x.Marshal()
	check(p.t, err)
	kind := wire.Kind{APIVersion: "v1", Kind: "Pod"}
	if brief && req.Method == http.MethodPatch {
		kind = wire.Kind{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
		raw, err = (&metav1.PartialObjectMetadata{ObjectMeta: x.ObjectMeta}).Marshal()
		check(p.t, err)
	}
	w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
	_, _ = w.Write(wire.Envelope(kind, raw))
}

func (p *fakePods) failing(code int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fails = code
}

func (p *fakePods) briefly(yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.brief = yes
}

// asked is how many gets of pods have come from a client.
func (p *fakePods) asked(agent string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gets[agent]
}

const (
	protobufOnly = "application/vnd.kubernetes.protobuf"
	podsOfNode   = "/api/v1/pods?fieldSelector=spec.nodeName%3Dedge-1"
	podPath      = "/api/v1/namespaces/default/pods/"
)

// TestPodsFromTheWatch: what a kubelet's watch of its pods shows, the cloud is not asked for again. A write that passed
// the hub is seen by the next get, whether the watch has shown it or not.
func TestPodsFromTheWatch(t *testing.T) {
	b := newBed(t, 1)
	pods := newFakePods(t)
	b.clouds[0].set(func() { b.clouds[0].pods = pods })
	cert := b.ca.tls("system:node:edge-1", "system:nodes")
	kubelet := b.client(&cert)
	const agent = "kubelet/v1"
	pods.put("web", "first")
	pods.show("web")
	b.start()
	b.here()
	header := []string{"User-Agent", agent, "Accept", protobufOnly}
	read := func() string { // the message of the pod, as the kubelet reads it
		t.Helper()
		resp, body := get(t, kubelet, b.url()+podPath+"web", header...)
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("get: %s %s", resp.Status, body)
		}
		_, raw, err := wire.SplitEnvelope([]byte(body))
		check(t, err)
		var x corev1.Pod
		check(t, x.Unmarshal(raw))
		return x.Status.Message
	}
	// spared reports whether a get did without the cloud, and what it showed.
	spared := func() (string, bool) {
		before := pods.asked(agent)
		message := read()
		return message, pods.asked(agent) == before
	}
	want := func(what, message string, without bool) {
		t.Helper()
		if got, spared := spared(); got != message || spared != without {
			t.Errorf("%s: the kubelet reads %q, without the cloud: %t; want %q, %t", what, got, spared, message, without)
		}
	}
	want("no watch is open", "first", false)
	resp, _ := get(t, kubelet, b.url()+podsOfNode, header...)
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	watch := func(c *http.Client, header ...string) (end func()) {
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet,
			b.url()+podsOfNode+"&watch=1&allowWatchBookmarks=true&resourceVersion=101", nil)
		check(t, err)
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := c.Do(req)
		check(t, err)
		var reads sync.WaitGroup
		reads.Go(func() { _, _ = io.Copy(io.Discard, resp.Body) })
		return sync.OnceFunc(func() {
			cancel()
			reads.Wait()
			check(t, resp.Body.Close())
		})
	}
	end := watch(kubelet, header...)
	defer end()
	eventually(t, "the watch to be recorded", func() bool { _, spared := spared(); return spared })
	want("a watch is open", "first", true)

	pods.put("web", "second")
	want("the watch has not shown it yet", "first", true)
	pods.show("web")
	shows := func(message string) func() bool {
		return func() bool { got, spared := spared(); return got == message && spared }
	}
	eventually(t, "the watch to show it", shows("second"))

	patch := func(message string) int {
		t.Helper()
		body, err := json.Marshal(map[string]any{"status": map[string]string{"message": message}})
		check(t, err)
		resp, _ := do(t, kubelet, http.MethodPatch, b.url()+podPath+"web/status", body, append(header, "Content-Type",
			"application/strategic-merge-patch+json")...)
		return resp.StatusCode
	}
	patch("third")
	if message := read(); message != "third" {
		t.Errorf("after its write the kubelet reads %q", message)
	}
	eventually(t, "the answer to the write to be enough", shows("third"))

	// The hub makes the answer of metadata, and does not keep it as what the cloud has shown.
	pods.briefly(true)
	patch("of metadata")
	want("the answer was brief, and the watch has not shown it", "of metadata", false)
	pods.show("web")
	patch("of metadata, too")
	pods.show("web")
	eventually(t, "the watch to show it", shows("of metadata, too"))
	const two = `weir_hub_brief_answers_total{outcome="brief",resource="pods/status"} 2`
	if _, body := get(t, b.client(nil), "http://"+b.hub.HealthAddr().String()+"/metrics"); !strings.Contains(body, two) {
		t.Error("the answers were not brief")
	}
	pods.briefly(false)
	pods.failing(http.StatusInternalServerError)
	if code := patch("fourth"); code != http.StatusInternalServerError {
		t.Errorf("the write is answered %d", code)
	}
	pods.failing(0)
	want("nobody knows what became of a write", "fourth", false)
	want("the cloud has told", "fourth", true)

	// A person reads and writes as JSON, which the store has beside what the kubelet reads.
	person := []string{"User-Agent", "kubectl", "Accept", "application/json", "Authorization", "Bearer alice"}
	get(t, b.client(nil), b.url()+podPath+"web", person...)
	do(t, b.client(nil), http.MethodPatch, b.url()+podPath+"web/status", []byte(`{"status":{"message":"fifth"}}`),
		append(person, "Content-Type", "application/merge-patch+json")...)
	get(t, b.client(nil), b.url()+podPath+"web", person...)
	want("a person wrote it", "fifth", false)
	want("the cloud has told", "fifth", true)

	other := []string{"User-Agent", "other", "Accept", protobufOnly, "Authorization", "Bearer alice"}
	get(t, b.client(nil), b.url()+podsOfNode, other...)
	defer watch(b.client(nil), other...)()
	b.kept(2)
	if resp, _ := get(t, b.client(nil), b.url()+podPath+"web", other...); resp.StatusCode != http.StatusOK ||
		pods.asked("other") != 1 {
		t.Errorf("another client is answered %s, the cloud is asked %d times", resp.Status, pods.asked("other"))
	}
	before := pods.asked(agent)
	for _, form := range [][]string{
		{"User-Agent", agent, "Accept", protobufOnly + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"},
		{"User-Agent", agent, "Accept", protobufOnly, "Impersonate-User", "alice"},
	} {
		get(t, kubelet, b.url()+podPath+"web", form...)
	}
	get(t, kubelet, b.url()+podPath+"web?resourceVersion=0", header...)
	if n := pods.asked(agent) - before; n != 3 {
		t.Errorf("of three gets in another form the cloud has answered %d", n)
	}
	resp, _ = do(t, kubelet, http.MethodDelete, b.url()+podPath+"web", nil, header...)
	if resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
	want("it was deleted", "fifth", false)
	end()
	eventually(t, "the end of the watch to be seen", func() bool { _, spared := spared(); return !spared })
}
