package offlinetest

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

var apiserverKills = flag.Int("apiserver-kills", 3, "how often TestRefusalsOfAStart kills kube-apiserver")

const (
	manyApps    = 10
	filesOfPods = 4
	goesOn      = 3 * time.Second // a kube-apiserver that is killed lives at most so much longer than a start takes
)

// read is something that a caller was allowed, and whose answer the hub keeps.
type read struct {
	as     string // "": the kubelet
	path   string
	one    bool // an object, by its own path
	client *http.Client
}

// app is a caller with informers, and all that it reads.
type app struct {
	name      string
	informers []cache.SharedIndexInformer
}

// heard counts what callers are answered.
type heard struct{ unauthorized, forbidden atomic.Int64 }

func (h *heard) sum() int64 { return h.unauthorized.Load() + h.forbidden.Load() }

func (h *heard) wrap(rt http.RoundTripper) http.RoundTripper {
	return tripper(func(req *http.Request) (*http.Response, error) {
		resp, err := rt.RoundTrip(req)
		if err == nil {
			switch resp.StatusCode {
			case http.StatusUnauthorized:
				h.unauthorized.Add(1)
			case http.StatusForbidden:
				h.forbidden.Add(1)
			}
		}
		return resp, err
	})
}

// app makes a caller of a service account and five informers, of which the hub answers two from a relay.
func (b *bed) app(name string, h *heard) (*app, []read) {
	b.t.Helper()
	config := &rest.Config{
		Host: b.url, UserAgent: name + "/v1", BearerToken: b.account(name), QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: b.ca}, WrapTransport: h.wrap,
	}
	client, err := kubernetes.NewForConfig(config)
	check(b.t, err)
	core, slices := client.CoreV1().RESTClient(), client.DiscoveryV1().RESTClient()
	own, err := rest.HTTPClientFor(config)
	check(b.t, err)
	a := &app{name: name}
	var reads []read
	add := func(c cache.Getter, prefix, resource, namespace, object string, o runtime.Object) {
		sel, query := fields.Everything(), ""
		if object != "" {
			sel, query = fields.OneTermEqualSelector("metadata.name", object), "?fieldSelector=metadata.name%3D"+object
		}
		lw := cache.ToListWatcherWithWatchListSemantics(cache.NewListWatchFromClient(c, resource, namespace, sel), client)
		a.informers = append(a.informers, cache.NewSharedIndexInformer(lw, o, 0, cache.Indexers{}))
		if namespace != "" {
			prefix += "/namespaces/" + namespace
		}
		reads = append(reads, read{name, prefix + "/" + resource + query, false, own})
		if object != "" {
			reads = append(reads, read{name, prefix + "/" + resource + "/" + object, true, own})
		}
	}
	const apis = "/apis/discovery.k8s.io/v1"
	add(core, "/api/v1", "configmaps", "", "", &corev1.ConfigMap{})
	add(core, "/api/v1", "configmaps", "default", "", &corev1.ConfigMap{})
	add(core, "/api/v1", "configmaps", "default", "file-001", &corev1.ConfigMap{})
	add(slices, apis, "endpointslices", "", "", &discoveryv1.EndpointSlice{})
	add(slices, apis, "endpointslices", "default", "", &discoveryv1.EndpointSlice{})
	return a, reads
}

// asks reads the same object from kube-apiserver itself, past the hub, as a good caller, until ctx ends. It counts what
// a kube-apiserver that starts refuses.
func (b *bed) asks(ctx context.Context, token string, h *heard) {
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: b.cloud.URL(), BearerToken: token, QPS: -1, Timeout: time.Second,
		TLSClientConfig: rest.TLSClientConfig{CAData: b.cloud.CA().CertPEM()}, WrapTransport: h.wrap,
	})
	check(b.t, err)
	for ctx.Err() == nil {
		_ = client.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/default/configmaps/file-001").Do(ctx).Error()
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// TestRefusalsOfAStart: a kube-apiserver that starts refuses good callers. It is killed (kill -9) again and again, at
// times that the seed decides, while informers of many callers run through a hub; then the link is cut, just when it
// starts once more. Nobody is refused what they were allowed before, nor by a hub that was killed meanwhile. A caller
// that asks kube-apiserver itself all the time shows that it does refuse.
func TestRefusalsOfAStart(t *testing.T) {
	seed := uint64(36)
	if v := os.Getenv("WEIR_SEED"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		check(t, err)
		seed = n
	}
	t.Logf("seed %d, another by WEIR_SEED; %d kills, more by -apiserver-kills", seed, *apiserverKills)
	rnd := rand.New(rand.NewPCG(seed, 1))
	b := newBed(t, nil)
	b.fill(2, filesOfPods)
	b.fillSlices(3, 2)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	var h heard
	var reads []read
	var apps []*app
	for i := range manyApps {
		a, own := b.app(fmt.Sprintf("app-%d", i), &h)
		reads, apps = append(reads, own...), append(apps, a)
		for _, inf := range a.informers {
			all.Go(func() { inf.RunWithContext(ctx) })
		}
	}
	kubelet := b.startAgent("kubelet", runtime.ContentTypeProtobuf, filesOfPods)
	kubelet.synced()
	for _, a := range apps {
		for i, inf := range a.informers {
			eventually(t, fmt.Sprintf("informer %d of %s to sync", i, a.name), inf.HasSynced)
		}
	}
	cert := b.httpClient()
	for i := range filesOfPods {
		kind := []string{"secrets", "configmaps"}[i%2]
		path := fmt.Sprintf("/api/v1/namespaces/default/%s/file-%03d", kind, i)
		reads = append(reads, read{path: path, one: true, client: cert})
	}
	asked := 0
	refused := func(when string) (n int) {
		t.Helper()
		for _, r := range reads {
			paths := []string{r.path}
			if !r.one {
				separator := "?"
				if strings.Contains(r.path, "?") {
					separator = "&"
				}
				paths = append(paths, r.path+separator+"watch=1&timeoutSeconds=1")
			}
			for _, path := range paths {
				asked++
				if code, said := b.answer(ctx, r, path); code != http.StatusOK {
					n++
					t.Errorf("%s: GET %s as %q: %d %s", when, path, r.as, code, said)
				}
			}
		}
		return n
	}
	if n := refused("at first"); n > 0 {
		t.Fatalf("%d reads are refused before anything happened", n)
	}
	b.kept(manyApps*3 + 2 + filesOfPods)
	began := time.Now()
	asked = 0
	var direct heard
	token := b.account("direct")
	all.Go(func() { b.asks(ctx, token, &direct) })
	starting := func() time.Duration { // how long a start takes, on this machine and now
		began := time.Now()
		b.cloud.APIServer().Kill()
		check(t, b.cloud.StartAPIServer(ctx))
		return time.Since(began)
	}()
	for range *apiserverKills - 2 {
		living, end := context.WithTimeout(ctx, time.Duration(rnd.Int64N(int64(starting+goesOn))))
		b.cloud.APIServer().Kill()
		_ = b.cloud.StartAPIServer(living) // it is killed if it is not ready by then
		<-living.Done()
		end()
	}
	before := direct.sum()
	b.cloud.APIServer().Kill()
	ready := make(chan struct{})
	all.Go(func() {
		defer close(ready)
		_ = b.cloud.StartAPIServer(ctx)
	})
	for up := false; !up && direct.sum() == before; { // cut in the middle of the refusals, if there are any
		select {
		case <-ready:
			up = true
		case <-time.After(time.Millisecond):
		}
	}
	b.cut()
	n := refused("without the cloud")
	b.written()
	b.restart()
	n += refused("after the hub was killed")
	t.Logf("%d kills in %v: kube-apiserver refused a good caller with 401 %d times, with 403 %d times; callers of the "+
		"hub heard 401 %d times, 403 %d times; %d reads; refused without the cloud = %d", *apiserverKills,
		time.Since(began).Round(time.Second), direct.unauthorized.Load(), direct.forbidden.Load(),
		h.unauthorized.Load(), h.forbidden.Load(), asked, n)
}

// answer is what a read gets.
func (b *bed) answer(ctx context.Context, r read, path string) (code int, said string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+path, nil)
	check(b.t, err)
	agent := "kubelet/v1.37"
	if r.as != "" {
		agent = r.as + "/v1"
	}
	req.Header.Set("User-Agent", agent)
	resp, err := r.client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body := make([]byte, 300)
	k, _ := resp.Body.Read(body)
	return resp.StatusCode, string(body[:k])
}
