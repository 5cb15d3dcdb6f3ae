package offlinetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// agent is as much of a kubelet as reads: informers of its pods, of its Node, of Services, and of each Secret and
// ConfigMap by name.
type agent struct {
	t         testing.TB
	informers map[string]cache.SharedIndexInformer
	stop      func()
}

func (b *bed) startAgent(name, contentType string, files int) *agent {
	b.t.Helper()
	client, err := kubernetes.NewForConfig(b.kubelet(name+"/v1.37", contentType))
	check(b.t, err)
	a := &agent{t: b.t, informers: map[string]cache.SharedIndexInformer{}}
	core := client.CoreV1().RESTClient()
	add := func(resource, namespace string, sel fields.Selector, o runtime.Object) {
		lw := cache.NewListWatchFromClient(core, resource, namespace, sel)
		a.informers[resource+" "+sel.String()] = cache.NewSharedIndexInformer(
			cache.ToListWatcherWithWatchListSemantics(lw, client), o, 0, cache.Indexers{})
	}
	add("pods", "", fields.OneTermEqualSelector("spec.nodeName", edge), &corev1.Pod{})
	add("nodes", "", fields.OneTermEqualSelector("metadata.name", edge), &corev1.Node{})
	add("services", "", fields.Everything(), &corev1.Service{})
	for i := range files {
		sel := fields.OneTermEqualSelector("metadata.name", fmt.Sprintf("file-%03d", i))
		if i%2 == 0 {
			add("secrets", "default", sel, &corev1.Secret{})
		} else {
			add("configmaps", "default", sel, &corev1.ConfigMap{})
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, i := range a.informers {
		wg.Go(func() { i.RunWithContext(ctx) })
	}
	a.stop = func() { cancel(); wg.Wait() }
	b.t.Cleanup(a.stop)
	return a
}

// synced waits until all informers have their first state.
func (a *agent) synced() {
	a.t.Helper()
	for name, i := range a.informers {
		eventually(a.t, name+" to sync", i.HasSynced)
	}
}

// same tells how two agents differ, "" if they do not.
func (a *agent) same(as *agent) string {
	for name, i := range a.informers {
		want, got := i.GetStore(), as.informers[name].GetStore()
		if w, g := len(want.ListKeys()), len(got.ListKeys()); w != g {
			return fmt.Sprintf("%s: %d objects, want %d", name, g, w)
		}
		for _, key := range want.ListKeys() {
			w, _, _ := want.GetByKey(key)
			g, ok, _ := got.GetByKey(key)
			if !ok || !equality.Semantic.DeepEqual(untyped(w), untyped(g)) {
				return fmt.Sprintf("%s: %s differs: %v, want %v", name, key, g, w)
			}
		}
	}
	return ""
}

// untyped is an object without its kind: events of a JSON watch tell it, items of a list do not.
func untyped(o any) runtime.Object {
	c := o.(runtime.Object).DeepCopyObject()
	c.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return c
}

// TestAgents: a kubelet's informers that restart at a hub that was killed while the cloud is away see what those of
// before saw; and both go on from its version when it is back, without a list.
func TestAgents(t *testing.T) {
	for name, watchList := range map[string]bool{"streaming lists": true, "list and watch": false} {
		t.Run(name, func(t *testing.T) {
			clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, watchList)
			testAgents(t)
		})
	}
}

func testAgents(t *testing.T) {
	const files = 12
	b := newBed(t, nil)
	b.fill(3, files)
	before := map[string]*agent{
		"kubelet": b.startAgent("kubelet", runtime.ContentTypeProtobuf, files),
		"other":   b.startAgent("other", runtime.ContentTypeJSON, files),
	}
	for _, a := range before {
		a.synced()
	}
	b.kept(2 * (2 + files))
	b.cut()
	b.restart()

	after := map[string]*agent{}
	for name := range before {
		contentType := runtime.ContentTypeProtobuf
		if name == "other" {
			contentType = runtime.ContentTypeJSON
		}
		after[name] = b.startAgent(name, contentType, files)
	}
	for name, a := range after {
		a.synced()
		if diff := before[name].same(a); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	pod, err := b.admin.CoreV1().Pods("default").Get(t.Context(), "pod-00", metav1.GetOptions{})
	check(t, err)
	pod.Labels["changed"] = "while-away"
	_, err = b.admin.CoreV1().Pods("default").Update(t.Context(), pod, metav1.UpdateOptions{})
	check(t, err)
	check(t, b.admin.CoreV1().ConfigMaps("default").Delete(t.Context(), "file-001", metav1.DeleteOptions{}))
	listed, caughtUp := b.lists(), b.metric(catchUps)
	b.heal()
	for _, group := range []map[string]*agent{before, after} {
		for name, a := range group {
			eventually(t, name+" to see what changed", func() bool {
				o, ok, _ := a.informers["pods spec.nodeName="+edge].GetStore().GetByKey("default/pod-00")
				return ok && o.(*corev1.Pod).Labels["changed"] == "while-away" &&
					len(a.informers["configmaps metadata.name=file-001"].GetStore().ListKeys()) == 0
			})
		}
	}
	// The hub itself asks once where a client had seen a bookmark that the killed hub had not written.
	own := int(b.metric(catchUps) - caughtUp)
	if more := b.lists() - listed - own; more > 0 || own > 2*(3+files) {
		t.Errorf("the cloud was asked for %d lists by clients, and %d by the hub", more, own)
	}
	eventually(t, "the store to have it", func() bool {
		out, err := b.run("get", "--raw", "/api/v1/namespaces/default/pods/pod-00")
		return err == nil && strings.Contains(out, "while-away")
	})
}

const catchUps = "weir_offline_catch_up_lists_total"

// lists counts the lists of clients of the node that the cloud answered, also streaming ones.
func (b *bed) lists() (n int) {
	b.t.Helper()
	raw, err := b.admin.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(b.t.Context())
	check(b.t, err)
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "apiserver_request_total{") && strings.Contains(line, `verb="LIST"`) &&
			(strings.Contains(line, `resource="pods"`) || strings.Contains(line, `resource="secrets"`) ||
				strings.Contains(line, `resource="configmaps"`)) {
			var v float64
			_, err := fmt.Sscan(line[strings.LastIndex(line, " ")+1:], &v)
			check(b.t, err)
			n += int(v)
		}
	}
	return n
}

// TestKubectl: kubectl works on a node that is cut off, as far as anybody there has asked before.
func TestKubectl(t *testing.T) {
	b := newBed(t, nil)
	b.fill(3, 4)
	a := b.startAgent("kubelet", runtime.ContentTypeProtobuf, 4)
	a.synced()
	for _, args := range [][]string{{"version"}, {"api-resources"}, {"explain", "pods"}} {
		if out, err := b.run(args...); err != nil {
			t.Fatalf("kubectl %v: %v: %s", args, err, out)
		}
	}
	server, err := b.admin.Discovery().ServerVersion()
	check(t, err)
	b.kept(2 + 4)
	b.cut()
	b.restart()
	for _, test := range []struct {
		args []string
		fail bool
		want []string
	}{
		{args: []string{"version"}, want: []string{"Server Version: " + server.GitVersion}},
		{args: []string{"api-resources"}, want: []string{"pods", "deployments"}},
		{args: []string{"explain", "pods"}, want: []string{"DESCRIPTION"}},
		{
			args: []string{"get", "pods", "-A", "--field-selector=spec.nodeName=" + edge},
			want: []string{"pod-00", "pod-01", "pod-02"},
		},
		{
			args: []string{"get", "pods", "-A", "-l", "parity=0", "--field-selector=spec.nodeName=" + edge}, fail: true,
			want: []string{"the cloud is away"},
		},
		{
			args: []string{"get", "pod", "-n", "default", "pod-01", "-o", "yaml"},
			want: []string{"nodeName: edge-1", "name: file-001"},
		},
		{args: []string{"get", "node", edge, "-o", "jsonpath={.metadata.labels}"}, want: []string{"pool-a"}},
		{
			args: []string{"get", "secret", "-n", "default", "file-000", "-o", "jsonpath={.data.key}"},
			want: []string{"MDEyMzQ1Njc4OWFiY2RlZ"},
		},
		{args: []string{"get", "services", "-A", "-l", "component=apiserver"}, want: []string{"kubernetes"}},
		{args: []string{"get", "services", "-A", "-l", "component=none"}, want: []string{"No resources found"}},
		{args: []string{"get", "service", "-n", "default", "none"}, fail: true, want: []string{`services "none" not found`}},
		{args: []string{"get", "deployments", "-A"}, fail: true, want: []string{"the cloud is away"}},
		{args: []string{"get", "configmap", "-n", "default", "unseen"}, fail: true, want: []string{"the cloud is away"}},
		{args: []string{"logs", "-n", "default", "pod-00"}, fail: true, want: []string{"the cloud is away"}},
	} {
		out, err := b.run(test.args...)
		if (err != nil) != test.fail {
			t.Errorf("kubectl %v: %v: %s", test.args, err, out)
		}
		for _, want := range test.want {
			if !strings.Contains(out, want) {
				t.Errorf("kubectl %v does not say %q: %s", test.args, want, out)
			}
		}
	}
}
