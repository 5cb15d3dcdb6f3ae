package offlinetest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// podWatch is a watch of the node's own pods, as its frames come.
type podWatch struct {
	t      *testing.T
	body   io.ReadCloser
	events *wire.EventReader
	at     uint64 // version that was shown last
	bytes  int    // of what was shown
}

// watchPods opens a watch of this node's own pods.
func (b *bed) watchPods(config *rest.Config, query url.Values) *podWatch {
	t := b.t.(*testing.T)
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	check(t, err)
	t.Cleanup(client.CloseIdleConnections)
	query.Set("watch", "1")
	query.Set("fieldSelector", "spec.nodeName="+edge)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+"/api/v1/pods?"+query.Encode(), nil)
	check(t, err)
	req.Header.Set("Accept", runtime.ContentTypeProtobuf)
	resp, err := client.Do(req)
	check(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the watch is answered by %s", resp.Status)
	}
	return &podWatch{t: t, body: resp.Body, events: wire.NewEventReader(resp.Body, wire.Protobuf, wire.Kind{})}
}

// resumeAt is the query of a watch at a version, as a kubelet asks.
func resumeAt(at uint64, seconds int) url.Values {
	return url.Values{
		"resourceVersion": {wire.FormatVersion(at)}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {fmt.Sprint(seconds)},
	}
}

// next is the next event that is no bookmark; nil: the watch has ended.
func (w *podWatch) next() *wire.Event {
	w.t.Helper()
	for {
		ev, err := w.events.Next()
		if err == io.EOF { //nolint:errorlint // it is returned bare
			return nil
		}
		check(w.t, err)
		if ev.Type == wire.Error {
			w.t.Fatalf("the watch ends with %v", ev.Status)
		}
		w.at = ev.Version
		w.bytes += len(ev.Frame)
		if ev.Type != wire.Bookmark {
			return ev
		}
	}
}

// listed reads the objects that a streaming list begins with.
func (w *podWatch) listed() {
	w.t.Helper()
	for {
		ev, err := w.events.Next()
		check(w.t, err)
		w.at = ev.Version
		if ev.InitialEnd {
			return
		}
	}
}

// ends waits for the end of a watch, and returns how many events came before.
func (w *podWatch) ends() (n int) {
	w.t.Helper()
	for w.next() != nil {
		n++
	}
	check(w.t, w.body.Close())
	return n
}

// same reads what the cloud has shown, and compares.
func (w *podWatch) same(cloud *podWatch, n int) {
	w.t.Helper()
	for range n {
		want, got := cloud.next(), w.next()
		if got == nil || want == nil {
			w.t.Fatal("a watch has ended")
		}
		if want.Type != got.Type || want.Version != got.Version || !bytes.Equal(want.Object.Raw, got.Object.Raw) {
			w.t.Fatalf("the client is shown %s of %d, the cloud shows %s of %d", got.Type, got.Version, want.Type, want.Version)
		}
	}
}

// changes has somebody write statuses of a pod, as a kubelet does while it starts and ends.
func (b *bed) changes(name string, n int) {
	b.t.Helper()
	pod, err := b.admin.CoreV1().Pods("default").Get(b.t.Context(), name, metav1.GetOptions{})
	check(b.t, err)
	all := lives(pod)
	for i := range n {
		is := all[i%2]
		is.Message = fmt.Sprintf("change %d behind %s", i, pod.ResourceVersion)
		_, err = b.admin.CoreV1().Pods("default").Patch(b.t.Context(), name, types.StrategicMergePatchType,
			patchOf(b.t.(*testing.T), &corev1.Pod{}, is), metav1.PatchOptions{}, "status")
		check(b.t, err)
	}
}

// down is how many bytes came from the cloud for clients of the node.
func (b *bed) down() float64 {
	return b.metric("weir_hub_cloud_bytes_total", `class="node"`, `direction="down"`)
}

func (b *bed) ownWatches(way string) float64 {
	return b.metric("weir_hub_own_watches_total", `resource="pods"`, fmt.Sprintf("way=%q", way))
}

// TestOwnWatch: a kubelet's watch of its pods that was resumed twice, or is resumed behind a restart of the hub, costs
// at most half of what the cloud sends to one that it does not compress. The kubelet is shown what the cloud shows,
// each event once.
func TestOwnWatch(t *testing.T) {
	const n = 30
	b := newBed(t, nil)
	b.fill(2, 0)
	hub, cloud := b.kubelet("kubelet/v1.37", runtime.ContentTypeProtobuf), b.cloud.RESTConfig()
	pods, err := b.admin.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	check(t, err)

	// As it was: the cloud does not compress a watch that goes on. Without bookmarks it passes as it is.
	passed := b.watchPods(hub, url.Values{"resourceVersion": {pods.ResourceVersion}})
	before := b.down()
	b.changes("pod-00", n)
	for range n {
		passed.next()
	}
	asItWas := b.down() - before
	check(t, passed.body.Close())

	// Its time is over twice. What came meanwhile is shown when it is back.
	w := b.watchPods(hub, url.Values{
		"sendInitialEvents": {"true"}, "resourceVersionMatch": {"NotOlderThan"}, "allowWatchBookmarks": {"true"},
		"timeoutSeconds": {"2"},
	})
	w.listed()
	straight := b.watchPods(cloud, resumeAt(w.at, 3600))
	w.ends()
	b.changes("pod-00", 1)
	w = b.watchPods(hub, resumeAt(w.at, 2))
	w.same(straight, 1)
	w.ends()
	w = b.watchPods(hub, resumeAt(w.at, 3600))
	if joined, passed := b.ownWatches("joined"), b.ownWatches("passed"); joined != 2 || passed != 0 {
		t.Errorf("%v watches joined the stream and %v did not, want 2 and 0", joined, passed)
	}
	resumed := b.costs(w, straight, n)
	check(t, b.admin.CoreV1().Pods("default").Delete(t.Context(), "pod-01", metav1.DeleteOptions{
		GracePeriodSeconds: new(int64),
	}))
	w.same(straight, 1)

	// The hub was killed: it has no stream. The cloud does not compress until the hub lists.
	b.restart()
	w = b.watchPods(hub, resumeAt(w.at, 3600))
	for i := 0; b.ownWatches("moved") == 0; i++ {
		if i == 4*n {
			t.Fatal("the hub opens no stream")
		}
		b.changes("pod-00", 1)
		w.same(straight, 1)
	}
	restarted := b.costs(w, straight, n)

	t.Logf("%d changes: %.0f bytes as it was, %.0f resumed twice, %.0f behind a restart; %d bytes of frames",
		n, asItWas, resumed, restarted, w.bytes)
	if 2*resumed > asItWas || 2*restarted > asItWas {
		t.Error("what is resumed costs more than half")
	}
}

// costs is how many bytes changes of a pod cost that a watch shows.
func (b *bed) costs(w, straight *podWatch, n int) float64 {
	b.t.Helper()
	before := b.down()
	b.changes("pod-00", n)
	w.same(straight, n)
	return b.down() - before
}
