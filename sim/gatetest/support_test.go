package gatetest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/gate"
	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/impl/testkit"
	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/cloud/cloudtest"
	"github.com/weir-edge/weir/sim/testca"
)

const (
	gateUser = "weir:gate" // at kubelets
	patience = 2 * time.Minute
	// within has to outlast the time between two signs of a quiet kube-apiserver.
	within = 20 * time.Second
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("k8s.io/apimachinery/pkg/util/wait.Forever"), // it logs for ever
		// Controllers of k8s.io/apiserver's certificates never shut their queues down, and close what watches their files
		// when they please, with what reads them.
		goleak.IgnoreAnyFunction("github.com/fsnotify/fsnotify.(*inotify).Close"),
		goleak.IgnoreAnyFunction("github.com/fsnotify/fsnotify.(*inotify).readEvents"),
		goleak.IgnoreTopFunction("k8s.io/client-go/util/workqueue.(*delayingType[...]).waitingLoop"),
		goleak.IgnoreTopFunction("k8s.io/client-go/util/workqueue.(*Typed[...]).updateUnfinishedWorkLoop"),
		goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"),
		goleak.IgnoreAnyFunction("go.opencensus.io/stats/view.(*worker).start"))
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is a cloud with a gate.
type world struct {
	t     *testing.T
	cloud *cloud.Cloud
	kube  kubernetes.Interface // as an administrator
	at    string               // URL of the gate
	roots []byte               // of its certificate
}

// newWorld starts a kube-apiserver with a gate beside it. They end with the test.
func newWorld(t *testing.T) *world {
	t.Helper()
	c, _ := cloudtest.Start(t)
	check(t, c.Apply(t.Context(), []byte(manifests.GateAccess())))
	check(t, c.Apply(t.Context(), []byte(manifests.GatePods())))
	check(t, c.GrantHubs(t.Context(), "harbour", "edge-1"))
	authority, err := testca.NewAuthority("weir-gate")
	check(t, err)
	w := &world{t: t, cloud: c, kube: c.Client(), roots: authority.CertPEM()}
	dir := t.TempDir()
	token, err := c.ClientToken(t.Context(), "weir-gate")
	check(t, err)
	data, err := testca.Kubeconfig(c.URL(), c.CA().CertPEM(), nil, token)
	check(t, err)
	kubeconfig, err := testca.WriteFile(dir, "kubeconfig", data)
	check(t, err)
	pair, err := authority.Issue(testca.Request{CommonName: "weir-gate", Hosts: []string{"127.0.0.1"}})
	check(t, err)
	serving, err := testca.WriteBoth(dir, "serving.pem", pair)
	check(t, err)
	pair, err = c.CA().Issue(testca.Request{CommonName: gateUser, Client: true})
	check(t, err)
	kubelets, err := testca.WriteBoth(dir, "kubelets.pem", pair)
	check(t, err)
	g, err := gate.New(gate.Config{
		Kubeconfig: kubeconfig, BindAddress: "127.0.0.1", TLSCertFile: filepath.Clean(serving), TLSPrivateKeyFile: serving,
		PoolScopeResources: directory.DefaultScope(), Linger: time.Hour, FreshWithin: within, WayIn: true,
		Pods: true, KubeletClientCertificate: kubelets, KubeletClientKey: kubelets,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	check(t, err)
	w.at = "https://" + g.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	anybody := w.caller(nil, "")
	testkit.Until(t, patience, "the gate to be ready", func() bool {
		code, _, err := anybody.try(http.MethodGet, "/readyz", "")
		return err == nil && code == http.StatusOK
	})
	return w
}

// caller is somebody who calls the gate, and the same at kube-apiserver.
type caller struct {
	w      *world
	client *http.Client
	config *rest.Config // of the gate
	token  string
	header http.Header
}

// caller is one with a certificate or a token, or neither.
func (w *world) caller(pair *testca.Pair, token string) *caller {
	w.t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.roots)
	roots.AppendCertsFromPEM(w.cloud.CA().CertPEM())
	c := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}
	config := &rest.Config{
		Host: w.at, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: w.roots},
		ContentConfig: rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf"},
	}
	if pair != nil {
		own, err := pair.TLS()
		check(w.t, err)
		c.Certificates = []tls.Certificate{own}
		config.CertData, config.KeyData = pair.CertPEM, pair.KeyPEM
	}
	tr := &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true}
	w.t.Cleanup(tr.CloseIdleConnections)
	return &caller{w: w, client: &http.Client{Transport: tr}, config: config, token: token, header: http.Header{}}
}

// user is a caller whom the cluster's authority has signed for.
func (w *world) user(name string, groups ...string) *caller {
	w.t.Helper()
	pair, err := w.cloud.CA().Issue(testca.Request{CommonName: name, Organizations: groups, Client: true})
	check(w.t, err)
	return w.caller(pair, "")
}

// hub is the user of the hub that has been granted its pool's resources.
func (w *world) hub() *caller {
	w.t.Helper()
	pair, err := w.cloud.HubCertificate("harbour", "edge-1", 0)
	check(w.t, err)
	return w.caller(pair, "")
}

func (w *world) admin() *caller { return w.user("somebody", "system:masters") }

// all are those who may read much, little and nothing.
func (w *world) all() map[string]*caller {
	w.t.Helper()
	return map[string]*caller{"the hub": w.hub(), "an administrator": w.admin(), "nobody": w.caller(nil, "")}
}

// open sends a request to a server; the caller closes the body.
func (c *caller) open(ctx context.Context, method, url, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, values := range c.header {
		req.Header[name] = values
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	return c.client.Do(req)
}

// sent is the answer of a server, whole.
func (c *caller) sent(method, url, body string) (code int, text string, err error) {
	ctx, cancel := context.WithTimeout(c.w.t.Context(), time.Minute)
	defer cancel()
	resp, err := c.open(ctx, method, url, body)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// try asks the gate.
func (c *caller) try(method, path, body string) (code int, text string, err error) {
	return c.sent(method, c.w.at+path, body)
}

// ask asks the gate, which has to answer.
func (c *caller) ask(method, path, body string) (code int, text string) {
	c.w.t.Helper()
	code, text, err := c.try(method, path, body)
	if err != nil {
		c.w.t.Errorf("%s %s: %v", method, path, err)
	}
	return code, text
}

// typed is a client of the gate as components have it.
func (c *caller) typed(t *testing.T) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.config)
	check(t, err)
	return client
}

// slice is an EndpointSlice of some kilobytes.
func slice(namespace, name string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: "s"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for i := range 60 {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.1.%d.7", i)}})
	}
	return s
}

// change writes to a slice.
func (w *world) change(t *testing.T, namespace, name, word string) *discoveryv1.EndpointSlice {
	t.Helper()
	all := w.kube.DiscoveryV1().EndpointSlices(namespace)
	s, err := all.Get(t.Context(), name, metav1.GetOptions{})
	check(t, err)
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, "word", word)
	s, err = all.Update(t.Context(), s, metav1.UpdateOptions{})
	check(t, err)
	return s
}

// metric is the value of one of the gate's own counters.
func (c *caller) metric(t *testing.T, line string) string {
	t.Helper()
	_, text := c.ask(http.MethodGet, "/metrics", "")
	for got := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(got, line+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// stream is an answer that is read as it comes.
type stream struct {
	code  int
	kind  string // its Content-Type
	over  chan struct{}
	close func()

	mu   sync.Mutex
	text []byte
}

// watch opens an answer, and reads it until it ends.
func (c *caller) watch(t *testing.T, path string) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	resp, err := c.open(ctx, http.MethodGet, c.w.at+path, "")
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	s := &stream{code: resp.StatusCode, kind: resp.Header.Get("Content-Type"), over: make(chan struct{})}
	go func() {
		defer close(s.over)
		defer resp.Body.Close()
		for buffer := make([]byte, 4<<10); ; {
			n, err := resp.Body.Read(buffer)
			s.mu.Lock()
			s.text = append(s.text, buffer[:n]...)
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	s.close = func() { cancel(); <-s.over }
	t.Cleanup(s.close)
	return s
}

func (s *stream) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.text)
}
