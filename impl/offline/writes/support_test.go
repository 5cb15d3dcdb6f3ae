package writes

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/store"
	"github.com/weir-edge/weir/impl/store/queue"
	"github.com/weir-edge/weir/impl/testkit"
)

func TestMain(m *testing.M) {
	if os.Getenv(asHub) != "" {
		runHub()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var quiet = slog.New(slog.DiscardHandler)

const nodeName = "edge-1"

// bed is a hub's writes in front of a fake cloud.
type bed struct {
	t      testing.TB
	cloud  *fakeCloud
	store  *store.Store
	writes *Writes
	reach  atomic.Uint32
	door   http.RoundTripper // to the cloud
	hub    *httptest.Server  // every request is this node's
}

// newBed makes one. change may change its configuration.
func newBed(t testing.TB, clk clock.WithTicker, change ...func(*Config)) *bed {
	t.Helper()
	b := &bed{t: t, cloud: newFakeCloud(t)}
	var err error
	b.store, err = store.Open(store.Config{
		Dir: t.TempDir(), Clock: clk, Logger: quiet, Queue: queue.Config{PushedPerSecond: 1000},
	})
	check(t, err)
	t.Cleanup(func() { b.store.Close() })
	b.door = b.cloud.door()
	b.reach.Store(uint32(member.CloudHere))
	c := Config{
		Node: nodeName, Store: b.store, Cloud: b.door, Reach: func() member.Reach { return member.Reach(b.reach.Load()) },
		Seed:  1,
		Clock: clk, Logger: quiet,
		Spread: time.Millisecond, Patience: time.Minute,
	}
	for _, f := range change {
		f(&c)
	}
	b.writes, err = New(c)
	check(t, err)
	b.hub = httptest.NewServer(hubHandler(b.writes, b.door))
	t.Cleanup(b.hub.Close)
	return b
}

// hubHandler does what the hub's front does.
func hubHandler(w *Writes, door http.RoundTripper) http.Handler {
	proxy := &httputil.ReverseProxy{
		Transport:      door,
		Rewrite:        func(*httputil.ProxyRequest) {},
		ModifyResponse: func(resp *http.Response) error { w.Observe(resp); return nil },
		ErrorHandler: func(rw http.ResponseWriter, req *http.Request, _ error) {
			if !w.Fallback(rw, req) {
				rw.WriteHeader(http.StatusBadGateway)
			}
		},
	}
	return http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		if req, taken := w.Take(rw, req, request.Parse(req), true, false); !taken {
			proxy.ServeHTTP(rw, req)
		}
	})
}

func (b *bed) set(r member.Reach) {
	b.reach.Store(uint32(r))
	b.writes.Changed()
}

// run runs it until the test ends.
func (b *bed) run() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- b.writes.Run(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		check(b.t, <-done)
	})
}

// know puts an object into the cloud, and shows it to the store in both encodings.
func (b *bed) know(k kind, r store.Resource, object runtime.Object) {
	b.t.Helper()
	shown := b.cloud.add(object)
	show(b.t, b.store, k, r, shown)
}

func show(t testing.TB, s *store.Store, k kind, r store.Resource, object []byte) {
	t.Helper()
	raw, err := k.toProtobuf(object)
	check(t, err)
	for f, raw := range map[store.Form][]byte{store.Protobuf: raw, store.JSON: object} {
		o, err := wire.ParseObject(wire.Encoding(f), raw)
		check(t, err)
		check(t, s.Got(component, r, f, k.Kind, o))
	}
}

// client is client-go as a kubelet uses it.
func (b *bed) client(contentType string) kubernetes.Interface {
	b.t.Helper()
	c, err := kubernetes.NewForConfig(&rest.Config{
		Host: b.hub.URL, UserAgent: "kubelet/v1.37.1", QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: contentType, AcceptContentTypes: contentType + ",application/json"},
	})
	check(b.t, err)
	return c
}

// send sends a request to the hub.
func (b *bed) send(method, uri string, body []byte, header ...string) (*http.Response, []byte) {
	b.t.Helper()
	return request1(b.t, method, b.hub.URL+uri, body, header...)
}

func testNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName, UID: "uid-node", Labels: map[string]string{"zone": "a"}},
		Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}, {Type: corev1.NodeHostName, Address: nodeName},
			},
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"},
				{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse},
			},
		},
	}
}

func testPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
		Spec:       corev1.PodSpec{NodeName: nodeName, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodPending,
			Conditions: []corev1.PodCondition{
				{
					Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
				}, {Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"},
			},
		},
	}
}

// eventually waits until cond holds.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	testkit.Until(t, 20*time.Second, what, cond)
}

func readAll(t testing.TB, r io.Reader) []byte {
	t.Helper()
	b, err := io.ReadAll(r)
	check(t, err)
	return b
}

// noRetry takes Retry-After from answers, so that client-go returns them at once.
func noRetry(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		rec.Header().Del("Retry-After")
		for k, v := range rec.Header() {
			w.Header()[k] = v
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes())
	})
}

func corev1Cause() metav1.StatusCause {
	return metav1.StatusCause{Type: corev1.NamespaceTerminatingCause, Message: "namespace default is being terminated"}
}
