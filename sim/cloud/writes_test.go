package cloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	nodeutil "k8s.io/component-helpers/node/util"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/offline/writes"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/store"
	"github.com/weir-edge/weir/impl/store/queue"
)

// frail is a way to the cloud that loses answers.
type frail struct {
	http.RoundTripper
	fault func() bool
}

var errLost = errors.New("the answer is lost")

func (f frail) RoundTrip(req *http.Request) (*http.Response, error) {
	if f.fault() {
		return nil, errLost
	}
	resp, err := f.RoundTripper.RoundTrip(req)
	if err == nil && f.fault() {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return nil, errLost
	}
	return resp, err
}

// keeper is what of a hub keeps writes, with a kubelet's client, beside the real cloud.
type keeper struct {
	t      *testing.T
	cloud  *Cloud
	dir    string
	door   http.RoundTripper
	fault  atomic.Bool
	random *rand.Rand // used under the lock of nobody: Run asks for one thing at a time
	reach  atomic.Uint32

	store   *store.Store
	writes  *writes.Writes
	stop    func()
	handler atomic.Pointer[http.Handler]
	kubelet kubernetes.Interface
}

func newKeeper(t *testing.T, c *Cloud, seed uint64) *keeper {
	t.Helper()
	pair, err := c.KubeletCertificate("edge-1", 0)
	if err != nil {
		t.Fatal(err)
	}
	k := &keeper{t: t, cloud: c, dir: t.TempDir(), random: rand.New(rand.NewPCG(seed, 31))}
	tr, err := rest.TransportFor(&rest.Config{
		Host: c.URL(), TLSClientConfig: rest.TLSClientConfig{
			CAData: c.CA().CertPEM(), CertData: pair.CertPEM, KeyData: pair.KeyPEM,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	k.door = toHost{tr, c.Addr()}
	k.start()
	t.Cleanup(func() { k.stop() })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		(*k.handler.Load()).ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)
	k.kubelet, err = kubernetes.NewForConfig(&rest.Config{
		Host: server.URL, UserAgent: "kubelet", QPS: -1,
		ContentConfig: rest.ContentConfig{
			ContentType: runtime.ContentTypeProtobuf, AcceptContentTypes: runtime.ContentTypeProtobuf + "," +
				runtime.ContentTypeJSON,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// start takes up what the folder has.
func (k *keeper) start() {
	k.t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	var err error
	if k.store, err = store.Open(store.Config{
		Dir: k.dir, Logger: quiet, Queue: queue.Config{PushedPerSecond: 100},
	}); err != nil {
		k.t.Fatal(err)
	}
	lossy := frail{k.door, func() bool { return k.fault.Load() && k.random.IntN(4) == 0 }}
	k.writes, err = writes.New(writes.Config{
		Node: "edge-1", Store: k.store, Cloud: lossy, Reach: func() member.Reach { return member.Reach(k.reach.Load()) },
		Spread: time.Millisecond, Logger: quiet,
	})
	if err != nil {
		k.t.Fatal(err)
	}
	w := k.writes
	proxy := &httputil.ReverseProxy{
		Transport: k.door, Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "https", "cloud", ""
		},
		ModifyResponse: func(resp *http.Response) error { w.Observe(resp); return nil },
	}
	h := http.Handler(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		if req, taken := w.Take(rw, req, request.Parse(req), true, false); !taken {
			proxy.ServeHTTP(rw, req)
		}
	}))
	k.handler.Store(&h)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	k.stop = func() {
		cancel()
		if err := <-done; err != nil {
			k.t.Error(err)
		}
		k.store.Close()
	}
}

func (k *keeper) set(r member.Reach) {
	k.reach.Store(uint32(r))
	k.writes.Changed()
}

// learn reads an object as the kubelet does, and shows it to the store.
func (k *keeper) learn(r store.Resource, path string) {
	k.t.Helper()
	req, err := http.NewRequestWithContext(k.t.Context(), http.MethodGet, "https://cloud"+path, nil)
	if err != nil {
		k.t.Fatal(err)
	}
	req.Header.Set("Accept", runtime.ContentTypeProtobuf)
	resp, err := k.door.RoundTrip(req)
	if err != nil {
		k.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		k.t.Fatal(err)
	}
	kind, raw, err := wire.SplitEnvelope(body)
	if err != nil {
		k.t.Fatalf("GET %s: %s %v", path, resp.Status, err)
	}
	o, err := wire.ParseObject(wire.Protobuf, raw)
	if err != nil {
		k.t.Fatal(err)
	}
	if err := k.store.Got("kubelet", r, store.Protobuf, kind, o); err != nil {
		k.t.Fatal(err)
	}
}

// pod makes one in the cloud.
func (k *keeper) pod(name, on string) *corev1.Pod {
	k.t.Helper()
	p, err := k.cloud.Client().CoreV1().Pods(clientNamespace).Create(k.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeName: on, ServiceAccountName: "coredns", Containers: []corev1.Container{{Name: "c", Image: "none"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	return p
}

// report is the kubelet's write of a pod's status.
func (k *keeper) report(p *corev1.Pod, n int) error {
	patch := fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"phase":"Running","message":"%d","reason":"r%d",`+
		`"conditions":[{"type":"Ready","status":"True","reason":"c%d"}]}}`, p.UID, n, n, n)
	_, err := k.kubelet.CoreV1().Pods(p.Namespace).Patch(k.t.Context(), p.Name, types.StrategicMergePatchType,
		[]byte(patch), metav1.PatchOptions{}, "status")
	return err
}

func (k *keeper) wait(what string, cond func() bool) {
	k.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(time.Minute)
	for !cond() {
		select {
		case <-tick.C:
		case <-limit:
			k.t.Fatalf("in vain waited for: %s; %d entries", what, k.store.Queue().Len())
		}
	}
}

// testWrites: what a node writes while the cloud is away arrives at a real kube-apiserver, with the rights of a node,
// once and in order, though answers get lost and the hub ends in the middle of it; what others did meanwhile stays.
func testWrites(t *testing.T, c *Cloud) {
	const seed = 20261121
	t.Logf("seed %d", seed)
	k := newKeeper(t, c, seed)
	admin := c.Client().CoreV1()
	names := []string{"written", "changed", "deleted", "replaced", "moved"}
	pods, podPath := map[string]*corev1.Pod{}, "/api/v1/namespaces/"+clientNamespace+"/pods/"
	for _, name := range names {
		pods[name] = k.pod("w-"+name, "edge-1")
		k.wait("the node authorizer to know the pod", func() bool {
			_, err := k.kubelet.CoreV1().Pods(clientNamespace).Get(t.Context(), "w-"+name, metav1.GetOptions{})
			return err == nil
		})
		k.learn(store.Resource{Version: "v1", Name: "pods"}, podPath+"w-"+name)
	}
	k.learn(store.Resource{Version: "v1", Name: "nodes"}, "/api/v1/nodes/edge-1")
	seen := k.observe()
	ask := func() (*authenticationv1.TokenRequest, error) {
		p := pods["written"]
		return k.kubelet.CoreV1().ServiceAccounts(clientNamespace).CreateToken(t.Context(), "coredns",
			&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
				ExpirationSeconds: ptr.To[int64](3607), BoundObjectRef: &authenticationv1.BoundObjectReference{
					Kind: "Pod", APIVersion: "v1", Name: p.Name, UID: p.UID,
				},
			}}, metav1.CreateOptions{})
	}
	issued, err := ask()
	if err != nil {
		t.Fatal(err)
	}
	event := k.event("w-before", 1)

	k.set(member.CloudAway)
	if again, err := ask(); err != nil || again.Status.Token != issued.Status.Token {
		t.Errorf("the token: %v", err)
	}
	if _, err := k.kubelet.CoreV1().Nodes().Create(t.Context(),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "edge-1"}}, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(
		err) {
		t.Errorf("registering: %v", err)
	}
	node, err := admin.Nodes().Get(t.Context(), "edge-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	now := node.DeepCopy()
	now.Status.Addresses[0].Address = "127.10.1.9"
	now.Status.Conditions = append(now.Status.Conditions,
		corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue, Reason: "Offline"})
	now.Annotations = map[string]string{"written": "offline"}
	if node, _, err = nodeutil.PatchNodeStatus(k.kubelet.CoreV1(), "edge-1", node, now); err != nil ||
		node.Annotations["written"] != "offline" {
		t.Fatalf("the node: %v", err)
	}
	for n := 1; n <= 3; n++ {
		for _, name := range names {
			if err := k.report(pods[name], n); err != nil {
				t.Fatal(err)
			}
		}
	}
	k.event("w-offline", 1)
	if err := k.count("w-offline", 4); err != nil {
		t.Error(err)
	}
	if err := k.count("w-before", 2); !apierrors.IsNotFound(err) {
		t.Errorf("an event that the cloud has: %v", err)
	}
	event.Count = 2
	event.ResourceVersion, event.UID, event.CreationTimestamp, event.ManagedFields = "", "", metav1.Time{}, nil
	if _, err := k.kubelet.CoreV1().Events(clientNamespace).Create(t.Context(), event, metav1.CreateOptions{}); err !=
		nil {
		t.Error(err)
	}

	// Meanwhile, in the cloud.
	for _, name := range names[2:] {
		if err := admin.Pods(clientNamespace).Delete(t.Context(), "w-"+name,
			metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
			t.Fatal(err)
		}
	}
	k.pod("w-replaced", "edge-1")
	k.pod("w-moved", "edge-2")
	gate := `{"status":{"hostIP":"10.9.9.9","conditions":[{"type":"DisruptionTarget","status":"True","reason":"theirs"}]}}`
	if _, err := admin.Pods(clientNamespace).Patch(t.Context(), "w-changed", types.StrategicMergePatchType, []byte(gate),
		metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}

	// Back, with answers that get lost, and a hub that ends in between; then for good.
	k.fault.Store(true)
	for range 5 {
		k.set(member.CloudHere)
		done := k.store.Queue().Stats()
		k.wait("something to be pushed", func() bool {
			s := k.store.Queue().Stats()
			return s.Entries == 0 || s.Pushed+s.Dropped+s.Unneeded > done.Pushed+done.Dropped+done.Unneeded
		})
		k.stop()
		k.start()
		if err := k.report(pods["written"], 4); err != nil {
			t.Log(err) // the answer of a write that went to the cloud
		}
	}
	k.fault.Store(false)
	k.set(member.CloudHere)
	k.wait("the queue to be empty", func() bool { return k.store.Queue().Len() == 0 })

	for name, want := range map[string]string{"written": "4", "changed": "3", "replaced": "", "moved": ""} {
		p, err := admin.Pods(clientNamespace).Get(t.Context(), "w-"+name, metav1.GetOptions{})
		if err != nil || p.Status.Message != want {
			t.Errorf("%s has the message %q, want %q (%v)", name, p.Status.Message, want, err)
		}
		if name == "changed" && (p.Status.HostIP != "10.9.9.9" || len(p.Status.Conditions) != 2) {
			t.Errorf("what others wrote is gone: %+v", p.Status)
		}
	}
	if n, err := admin.Nodes().Get(t.Context(), "edge-1", metav1.GetOptions{}); err != nil ||
		n.Status.Addresses[0].Address != "127.10.1.9" || n.Annotations["written"] != "offline" ||
		len(n.Status.Conditions) != 2 {
		t.Errorf("the node is %+v (%v)", n, err)
	}
	for name, want := range map[string]int32{"w-offline": 4, "w-before": 2} {
		if e, err := admin.Events(clientNamespace).Get(t.Context(), name, metav1.GetOptions{}); err != nil ||
			e.Count != want {
			t.Errorf("the event %s counts %v, want %d (%v)", name, e, want, err)
		}
	}
	for name, values := range seen() {
		last := 0
		for _, v := range values {
			n, err := strconv.Atoi(v)
			if err != nil || n <= last {
				t.Errorf("the cloud saw the messages %v of %s", values, name)
				break
			}
			last = n
		}
	}
}

// event is the kubelet's creation of one.
func (k *keeper) event(name string, count int32) *corev1.Event {
	k.t.Helper()
	e, err := k.kubelet.CoreV1().Events(clientNamespace).Create(k.t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: name, Namespace: clientNamespace},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: clientNamespace, Name: "w-written"}, Reason: "R",
		Type: "Normal", Count: count,
	}, metav1.CreateOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	return e
}

// count is the kubelet's patch of one.
func (k *keeper) count(name string, count int) error {
	_, err := k.kubelet.CoreV1().Events(clientNamespace).Patch(k.t.Context(), name, types.StrategicMergePatchType,
		fmt.Appendf(nil, `{"count":%d}`, count), metav1.PatchOptions{})
	return err
}

const lastPod = "w-last"

// observe notes the messages that each pod has in the cloud, one after the other, until the function that it returns is
// called.
func (k *keeper) observe() func() map[string][]string {
	k.t.Helper()
	w, err := k.cloud.Client().CoreV1().Pods(clientNamespace).Watch(k.t.Context(), metav1.ListOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	out := make(chan map[string][]string)
	go func() {
		seen := map[string][]string{}
		for ev := range w.ResultChan() {
			p, ok := ev.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			if p.Name == lastPod {
				break
			}
			key := p.Name + " " + string(p.UID)
			if m := p.Status.Message; m != "" && (len(seen[key]) == 0 || seen[key][len(seen[key])-1] != m) {
				seen[key] = append(seen[key], m)
			}
		}
		out <- seen
	}()
	return func() map[string][]string {
		defer w.Stop()
		k.pod(lastPod, "edge-1") // it is in the stream behind all that was written before
		return <-out
	}
}
