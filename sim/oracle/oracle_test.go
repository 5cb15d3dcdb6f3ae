package oracle

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/impl/await"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source"
)

// requests is how many generated requests the test sends to both sides.
const requests = 400

func TestRelayAnswersAsKubeAPIServer(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("WEIR_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("seed %d (repeat with WEIR_SEED=%d)", seed, seed)
	config := testCloud(t).RESTConfig()
	config.QPS = -1
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	w := &churn{client: client, rnd: rand.New(rand.NewPCG(seed, 1))}
	w.fill(ctx, t)
	pair, version := startRelay(ctx, t, config)

	var wg sync.WaitGroup
	churning, stopChurn := context.WithCancel(ctx)
	wg.Go(func() { w.run(churning, t) })
	defer wg.Wait()
	defer stopChurn()

	from := version()
	waitFor(t, "some churn", func() bool { return version() > from+50 })
	rnd := rand.New(rand.NewPCG(seed, 2))
	res := w.resource()
	jobs := make(chan Request)
	for range 12 {
		wg.Go(func() {
			for r := range jobs {
				if err := pair.Compare(ctx, r); err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
			}
		})
	}
	for i := range requests {
		v := from + rand.N(version()-from)
		switch i % 5 {
		case 0, 1:
			jobs <- res.List(rnd, v)
		case 2:
			jobs <- res.Get(rnd, v)
		case 3:
			jobs <- res.WatchRequest(rnd, v)
		case 4:
			jobs <- res.Bad(rnd, v)
		}
	}
	close(jobs)
}

func parse(t *testing.T, version string) uint64 {
	t.Helper()
	v, err := wire.ParseVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	await.Until(t, time.Minute, what, ok)
}

// startRelay serves a relay of EndpointSlices that is fed from the cloud.
func startRelay(ctx context.Context, t *testing.T, config *rest.Config) (Pair, func() uint64) {
	t.Helper()
	res, err := relay.ParseResource("endpointslices.v1.discovery.k8s.io")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	r, err := relay.New(relay.Config{Resource: res, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	cloud, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	f, err := source.NewFeeder(source.Config{Relay: r, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	f.Use(&source.Upstream{Name: "cloud", URL: u, Client: cloud, Gzip: true})
	var wg sync.WaitGroup
	runCtx, stop := context.WithCancel(ctx)
	wg.Go(func() { _ = r.Run(runCtx) })
	wg.Go(func() { _ = f.Run(runCtx) })
	srv := httptest.NewUnstartedServer(r)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(func() { stop(); srv.Close(); wg.Wait() })
	waitFor(t, "the relay's first list", func() bool { return r.Status().Synced })
	tr := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}}
	t.Cleanup(tr.CloseIdleConnections)
	return Pair{
		Cloud: Side{"kube-apiserver", config.Host, cloud},
		Relay: Side{"relay", srv.URL, &http.Client{Transport: tr}},
		Kind:  res.WireKind(),
	}, func() uint64 { return r.Status().Version }
}

// churn writes EndpointSlices as long as the test runs: creates, updates, label changes and deletions.
type churn struct {
	client *kubernetes.Clientset
	rnd    *rand.Rand
}

// namespaces are chosen so that the order of keys is not that of names alone ('-' sorts before '/').
var namespaces = []string{"shop", "shop-a", "shop-b"}

const slices = 30

func name(i int) string { return fmt.Sprintf("web-%02d-x%d", i%10, i) }

func (c *churn) resource() Resource {
	r := Resource{
		Root: "/apis/discovery.k8s.io/v1", Plural: "endpointslices", Namespaces: namespaces,
		Labels: []string{"tier=front", "tier!=front", "tier in (front,back)", "!tier", "kubernetes.io/service-name", "canary=yes,tier=back", "nobody=has-it"},
	}
	for i := range slices {
		r.Names = append(r.Names, namespaces[i%3]+"/"+name(i))
	}
	return r
}

func (c *churn) slice(i int) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespaces[i%3], Name: name(i),
			Labels:      map[string]string{discoveryv1.LabelServiceName: fmt.Sprintf("web-%02d", i%10)},
			Annotations: map[string]string{"note": "<&> ünïcödé \u2028"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	if c.rnd.IntN(2) == 0 {
		s.Labels["tier"] = []string{"front", "back"}[c.rnd.IntN(2)]
	}
	if c.rnd.IntN(3) == 0 {
		s.Labels["canary"] = "yes"
	}
	for k := range c.rnd.IntN(5) {
		port, proto, name := int32(8080+k), corev1.ProtocolTCP, fmt.Sprintf("http%d", k)
		s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: &name, Port: &port, Protocol: &proto})
	}
	for k := range c.rnd.IntN(8) {
		ready := c.rnd.IntN(2) == 0
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.0.%d.%d", i, k+1)}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: fmt.Sprintf("pod-%d", k), Namespace: s.Namespace},
		})
	}
	return s
}

func (c *churn) fill(ctx context.Context, t *testing.T) {
	for _, ns := range namespaces {
		if _, err := c.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{}); err != nil {
			t.Log(err)
		}
	}
	for i := range slices {
		c.step(ctx, t, i)
	}
}

func (c *churn) run(ctx context.Context, t *testing.T) {
	tick := time.NewTicker(15 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.step(ctx, t, c.rnd.IntN(slices))
		}
	}
}

func (c *churn) step(ctx context.Context, t *testing.T, i int) {
	api := c.client.DiscoveryV1().EndpointSlices(namespaces[i%3])
	var err error
	if c.rnd.IntN(5) == 0 {
		err = api.Delete(ctx, name(i), metav1.DeleteOptions{})
	} else {
		s := c.slice(i)
		if _, err = api.Update(ctx, s, metav1.UpdateOptions{}); err != nil {
			_, err = api.Create(ctx, s, metav1.CreateOptions{})
		}
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, context.Canceled) {
		var status interface{ Status() metav1.Status }
		if !errors.As(err, &status) || status.Status().Code != http.StatusNotFound {
			t.Errorf("churn: %v", err)
		}
	}
}
