package podstest

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clientrest "k8s.io/client-go/rest"

	"github.com/weir-edge/weir/impl/gate"
	"github.com/weir-edge/weir/impl/pki"
)

// KubeletAddress is where the Node edge-1 says that its kubelet is.
const KubeletAddress = "10.0.0.7:10250"

// World is a gate, the kubelet of the node edge-1, and some pods.
//
// A caller is who his bearer token says, without a check. He may all but what Deny names. In namespace a there are the
// pods one (container main, and an init container early), two (main and side), waiting (without a node), cloud (on
// control-1, which is of no pool) and gone (on gone-1, which has no Node).
type World struct {
	URL     string // of the gate
	CA      []byte // of its certificate
	Handler *gate.PodsHandler
	Kubelet *Kubelet

	// Files of the gate's client certificate, and of the authority of the kubelet.
	CertFile, KeyFile, CAFile string

	mu     sync.Mutex
	denied map[string]bool
	asked  []string
	found  map[string]*corev1.Pod
	nodes  map[string]*corev1.Node
	wrong  error // of kube-apiserver
}

// New starts one. change may change the configuration of the Handler.
func New(t testing.TB, change func(*World, *gate.PodsConfig)) *World {
	t.Helper()
	authority, err := pki.NewAuthority("cluster", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	w := &World{denied: map[string]bool{}, found: map[string]*corev1.Pod{}, nodes: map[string]*corev1.Node{}}
	dir := t.TempDir()
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	issue := func(p pki.Template) *pki.Pair {
		p.NotBefore, p.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
		pair, err := authority.Issue(p)
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	host, _, _ := net.SplitHostPort(KubeletAddress)
	serving, err := issue(pki.Template{CommonName: "system:node:edge-1", Server: true, Hosts: []string{host}}).TLS()
	if err != nil {
		t.Fatal(err)
	}
	w.Kubelet = newKubelet(t, authority, serving)
	client := issue(pki.Template{CommonName: "weir:gate", Client: true})
	w.CertFile, w.KeyFile = file("client.crt", client.CertPEM), file("client.key", client.KeyPEM)
	w.CAFile = file("ca.crt", authority.CertPEM())
	w.fill(host)
	c := gate.PodsConfig{
		Authorizer: w.authorizer(), Cluster: cluster{w}, Dial: w.Dial, CertFile: w.CertFile, KeyFile: w.KeyFile,
		CAFile: w.CAFile, Logger: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(w, &c)
	}
	if w.Handler, err = gate.NewPods(c); err != nil {
		t.Fatal(err)
	}
	w.serve(t, issue(pki.Template{CommonName: "weir-gate", Server: true, Hosts: []string{"127.0.0.1"}}))
	w.CA = authority.CertPEM()
	return w
}

// Dial is the Config.Dial of the World.
func (w *World) Dial(ctx context.Context, node *corev1.Node, address string) (net.Conn, error) {
	if node.Name != "edge-1" {
		return nil, gate.ErrNoPool
	}
	if address != KubeletAddress {
		return nil, &net.AddrError{Err: "nothing is there", Addr: address}
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", w.Kubelet.Addr())
}

func (w *World) fill(host string) {
	for name, address := range map[string]string{"edge-1": host, "control-1": "192.0.2.1"} {
		w.nodes[name] = &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: address},
			}},
		}
	}
	for name, p := range map[string]struct {
		node       string
		containers []string
	}{
		"one": {"edge-1", []string{"main"}}, "two": {"edge-1", []string{"main", "side"}}, "waiting": {"", []string{"main"}},
		"cloud": {"control-1", []string{"main"}}, "gone": {"gone-1", []string{"main"}},
	} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}, Spec: corev1.PodSpec{NodeName: p.node},
		}
		pod.Spec.InitContainers = []corev1.Container{{Name: "early"}}
		for _, c := range p.containers {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: c})
		}
		w.found[name] = pod
	}
}

// Deny says what a user may not, as in "alice create pods/exec".
func (w *World) Deny(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.denied[what] = true
}

// Fail has kube-apiserver answer the gate with an error; nil: no more.
func (w *World) Fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = err
}

// Asked returns what kube-apiserver was asked about since the last call, as in "alice create pods/exec a/one".
func (w *World) Asked() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.asked
	w.asked = nil
	return all
}

// Config is a client of the gate.
func (w *World) Config(user string) *clientrest.Config {
	return &clientrest.Config{Host: w.URL, BearerToken: user, TLSClientConfig: clientrest.TLSClientConfig{CAData: w.CA}}
}

func (w *World) authorizer() authorizer.Authorizer {
	return authorizer.AuthorizerFunc(
		func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			what := a.GetUser().GetName() + " " + a.GetVerb() + " "
			if what += a.GetResource(); a.GetSubresource() != "" {
				what += "/" + a.GetSubresource()
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.asked = append(w.asked, what+" "+a.GetNamespace()+"/"+a.GetName())
			if w.denied[what] {
				return authorizer.DecisionNoOpinion, "", nil
			}
			return authorizer.DecisionAllow, "", nil
		})
}

// serve puts the Handler behind the chain that weir-gate has.
func (w *World) serve(t testing.TB, pair *pki.Pair) {
	types := runtime.NewScheme()
	metav1.AddToGroupVersion(types, schema.GroupVersion{Version: "v1"})
	cfg := genericapiserver.NewConfig(serializer.NewCodecFactory(types))
	cfg.LoopbackClientConfig = &clientrest.Config{}
	cfg.Authentication.Authenticator = authenticator.RequestFunc(
		func(req *http.Request) (*authenticator.Response, bool, error) {
			name, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
			return &authenticator.Response{User: &user.DefaultInfo{Name: name}}, ok, nil
		})
	cfg.Authorization.Authorizer = w.authorizer()
	cfg.LongRunningFunc = func(_ *http.Request, info *genericrequest.RequestInfo) bool { return info.IsResourceRequest }
	cfg.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	cfg.SkipOpenAPIInstallation, cfg.EnableDiscovery, cfg.ExternalAddress = true, false, "192.0.2.1:1"
	cfg.StorageObjectCountTracker = nil
	cfg.BuildHandlerChainFunc = func(_ http.Handler, cfg *genericapiserver.Config) http.Handler {
		return genericapiserver.DefaultBuildHandlerChain(w.Handler, cfg)
	}
	generic, err := cfg.Complete(nil).New("weir-gate", genericapiserver.NewEmptyDelegate())
	if err != nil {
		t.Fatal(err)
	}
	own, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(generic.Handler)
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own}}
	server.StartTLS()
	w.URL = server.URL
	t.Cleanup(func() {
		w.Handler.Close()
		server.Close()
		generic.Destroy()
	})
}

// cluster is kube-apiserver, as far as a Handler asks it.
type cluster struct{ w *World }

type (
	podsOf struct {
		corev1client.PodInterface
		w         *World
		namespace string
	}
	nodesOf struct {
		corev1client.NodeInterface
		w *World
	}
)

// Pods implements gate.PodsCluster.
func (c cluster) Pods(namespace string) corev1client.PodInterface {
	return podsOf{w: c.w, namespace: namespace}
}

// Nodes implements gate.PodsCluster.
func (c cluster) Nodes() corev1client.NodeInterface { return nodesOf{w: c.w} }

// Get returns a Pod.
func (p podsOf) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Pod, error) {
	return found(p.w, p.w.found, "pods", name, p.namespace == "a")
}

// Get returns a Node.
func (n nodesOf) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Node, error) {
	return found(n.w, n.w.nodes, "nodes", name, true)
}

func found[T any](w *World, all map[string]*T, resource, name string, there bool) (*T, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wrong != nil {
		return nil, w.wrong
	}
	if o := all[name]; o != nil && there {
		return o, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name)
}
