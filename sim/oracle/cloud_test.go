package oracle

import (
	"context"
	"os/exec"
	"strings"
	"sync"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/cloud/cloudtest"
)

// testCloud starts a real control plane of its own for a test.
func testCloud(t *testing.T) *cloud.Cloud {
	t.Helper()
	c, binaries := cloudtest.Start(t, cloud.Kubectl)
	kubectl = binaries[cloud.Kubectl]
	return c
}

var kubectl string

// TestStockClients runs client-go's informers, streaming lists on and off, and kubectl against a relay under churn.
func TestStockClients(t *testing.T) {
	config := testCloud(t).RESTConfig()
	config.QPS = -1
	prepare(t, config)
	w := newChurn(t, config, subjects[0], 1)
	w.fill(t.Context(), t)
	pair, version := startRelay(t.Context(), t, config, subjects[0])

	for name, watchList := range map[string]bool{"WatchList": true, "list and watch": false} {
		t.Run(name, func(t *testing.T) {
			clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, watchList)
			testInformer(t, w, pair, version)
		})
	}
	t.Run("kubectl", func(t *testing.T) { testKubectl(t, pair) })
}

func testInformer(t *testing.T, w *churn, pair Pair, version func() uint64) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	config := &rest.Config{Host: pair.Relay.URL, Transport: pair.Relay.Client.Transport, ContentConfig: rest.ContentConfig{
		ContentType:        "application/vnd.kubernetes.protobuf",
		AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
	}}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Discovery().V1().EndpointSlices()
	var mu sync.Mutex
	events := 0
	if _, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) {
			mu.Lock()
			events++
			mu.Unlock()
		}, UpdateFunc: func(any, any) { mu.Lock(); events++; mu.Unlock() },
	}); err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced) {
		t.Fatal("the informer did not sync")
	}
	churning, stop := context.WithCancel(ctx)
	defer stop()
	var running sync.WaitGroup
	running.Go(func() { w.run(churning, t) })
	waitFor(t, "two hundred events", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return events >= 200
	})
	stop()
	running.Wait()
	stock, err := kubernetes.NewForConfig(w.config)
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the informer to hold what the cloud holds", func() bool {
		// Each time again: a write that the end of the churn cancelled may reach the cloud later.
		want, err := stock.DiscoveryV1().EndpointSlices("").List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the relay", func() bool { return version() >= parse(t, want.ResourceVersion) })
		have := informer.Informer().GetStore()
		if len(have.ListKeys()) != len(want.Items) {
			return false
		}
		for i := range want.Items {
			obj, ok, err := have.Get(&want.Items[i])
			if err != nil || !ok || obj.(*discoveryv1.EndpointSlice).ResourceVersion != want.Items[i].ResourceVersion {
				return false
			}
		}
		return true
	})
}

func testKubectl(t *testing.T, pair Pair) {
	// discovery is not a relay's business: --raw for the path, and the table as kubectl asks for it.
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), kubectl,
			append([]string{"--server", pair.Relay.URL, "--insecure-skip-tls-verify", "--token", "x"}, args...)...)
		cmd.Env = []string{"HOME=" + t.TempDir()}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("kubectl %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	out := run("get", "--raw", "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices")
	if !strings.HasPrefix(out, `{"kind":"EndpointSliceList"`) {
		t.Errorf("%.200s", out)
	}
}
