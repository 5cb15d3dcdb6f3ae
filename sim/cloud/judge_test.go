package cloud

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/testkit"
)

// node is one on which callers are judged, beside the real cloud.
type node struct {
	t     *testing.T
	cloud *Cloud
	*identity.Judge
	hub, kubelet, caller http.RoundTripper // with the hub's certificate, the node's, and none

	mu   sync.Mutex
	pods map[string]identity.Pod
}

func newNode(t *testing.T, c *Cloud) *node {
	t.Helper()
	n := &node{t: t, cloud: c, pods: map[string]identity.Pod{}}
	pair, err := c.HubCertificate("pool-a", "edge-1", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.GrantHubs(t.Context(), "pool-a", "edge-1"); err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{Host: c.URL(), TLSClientConfig: rest.TLSClientConfig{CAData: c.CA().CertPEM()}}
	if n.caller, err = rest.TransportFor(config); err != nil {
		t.Fatal(err)
	}
	config.CertData, config.KeyData = pair.CertPEM, pair.KeyPEM
	if n.hub, err = rest.TransportFor(config); err != nil {
		t.Fatal(err)
	}
	if pair, err = c.KubeletCertificate("edge-1", 0); err != nil {
		t.Fatal(err)
	}
	config.CertData, config.KeyData = pair.CertPEM, pair.KeyPEM
	if n.kubelet, err = rest.TransportFor(config); err != nil {
		t.Fatal(err)
	}
	n.Judge, err = identity.New(identity.Config{
		Node: "edge-1", Cloud: toHost{n.hub, c.Addr()}, Callers: toHost{n.caller, c.Addr()},
		File: filepath.Join(t.TempDir(), "verdicts"),
		Pods: func(namespace, name string) (identity.Pod, bool) {
			n.mu.Lock()
			defer n.mu.Unlock()
			p, ok := n.pods[namespace+"/"+name]
			return p, ok
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- n.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return n
}

// toHost sends what is for "cloud" to an address.
type toHost struct {
	http.RoundTripper
	host string
}

func (h toHost) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Host = h.host
	return h.RoundTripper.RoundTrip(req)
}

// request is a read with a token, or as the node if it is empty.
func (n *node) request(token, path string) (req *http.Request, a identity.Attributes) {
	n.t.Helper()
	req, err := http.NewRequestWithContext(n.t.Context(), http.MethodGet, n.cloud.URL()+path, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	a, ok := identity.AttributesOf(request.Parse(req))
	if !ok {
		n.t.Fatal(path)
	}
	return req, a
}

// online lets a read pass, as a hub does while the cloud is there.
func (n *node) online(token, path string) int {
	n.t.Helper()
	req, a := n.request(token, path)
	via := n.caller
	if token == "" {
		via = n.kubelet
	}
	resp, err := via.RoundTrip(req)
	if err != nil {
		n.t.Fatal(err)
	}
	resp.Body.Close()
	n.Learn(req.Header, token == "", a, resp.StatusCode)
	return resp.StatusCode
}

// offline says what the same read gets while it is away: 200 or the refusal.
func (n *node) offline(token, path string) int {
	n.t.Helper()
	req, a := n.request(token, path)
	if _, refusal := n.Authorize(req.Header, token == "", a); refusal != nil {
		return int(refusal.ErrStatus.Code)
	}
	return http.StatusOK
}

// pod makes one of a service account on a node.
func (n *node) pod(name, on string) *corev1.Pod {
	n.t.Helper()
	p, err := n.cloud.Client().CoreV1().Pods(clientNamespace).Create(n.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeName: on, ServiceAccountName: "coredns", AutomountServiceAccountToken: ptr.To(false),
			Containers: []corev1.Container{{Name: "c", Image: "none"}},
			Volumes: []corev1.Volume{
				{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "of-" + on}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	if on == "edge-1" {
		n.mu.Lock()
		n.pods[clientNamespace+"/"+name] = identity.Pod{UID: string(p.UID), Node: on}
		n.mu.Unlock()
	}
	return p
}

// token asks for one that is bound to a pod, if that is not nil.
func (n *node) token(pod *corev1.Pod, audiences ...string) string {
	n.t.Helper()
	r := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](3607), Audiences: audiences},
	}
	if pod != nil {
		r.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{
			Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID,
		}
	}
	answer, err := n.cloud.Client().CoreV1().ServiceAccounts(clientNamespace).CreateToken(n.t.Context(), "coredns", r,
		metav1.CreateOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	return answer.Status.Token
}

// testJudge: with tokens, keys and decisions of a real cloud, everybody gets without it what they got from it, and
// strangers nothing.
func testJudge(t *testing.T, c *Cloud) {
	for _, name := range []string{"of-edge-1", "of-edge-2"} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := c.Client().CoreV1().Secrets(clientNamespace).Create(t.Context(), secret, metav1.CreateOptions{}); err !=
			nil {
			t.Fatal(err)
		}
	}
	n := newNode(t, c)
	own, other := n.pod("judged-own", "edge-1"), n.pod("judged-other", "edge-2")
	const (
		slices, secrets = "/apis/discovery.k8s.io/v1/endpointslices", "/api/v1/secrets"
		mine, theirs    = "/api/v1/namespaces/kube-system/secrets/of-edge-1",
			"/api/v1/namespaces/kube-system/secrets/of-edge-2"
	)
	token := n.token(own)
	if code := n.online(token, slices); code != http.StatusOK {
		t.Fatalf("a pod lists slices: %d", code)
	}
	renewed := n.token(own)
	eventually(t, "the keys to be fetched, which the grant allows", func() bool {
		n.online(token, slices)
		return n.offline(renewed, slices) == http.StatusOK
	})
	eventually(t, "the node authorizer to know the pod", func() bool { return n.online("", mine) == http.StatusOK })
	n.online(token, secrets)
	n.online("", theirs)
	unbound := n.token(nil)
	n.online(unbound, slices)
	parts := strings.Split(token, ".")
	for name, test := range map[string]struct {
		token, path string
		code        int
	}{
		"the pod, what it was allowed":      {token, slices, 200},
		"the pod, with a token that is new": {renewed, slices, 200},
		"the pod, a part of it": {
			renewed, "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/x", 200,
		},
		"the pod, what it was denied":            {renewed, secrets, 403},
		"the pod, what it never did":             {renewed, "/api/v1/configmaps", 503},
		"the node, a Secret of its pod":          {"", mine, 200},
		"the node, a Secret of another's pod":    {"", theirs, 403},
		"the node, all Secrets":                  {"", secrets, 503},
		"a pod of another node":                  {n.token(other), slices, 401},
		"a token for something else":             {n.token(own, "vault"), slices, 401},
		"a token bound to nothing, as seen":      {unbound, slices, 200},
		"another token that is bound to nothing": {n.token(nil), slices, 503},
		"a changed signature": {
			parts[0] + "." + parts[1] + "." + strings.Repeat("A", len(parts[2])), slices, 401,
		},
		"garbage": {"garbage", slices, 503},
	} {
		if code := n.offline(test.token, test.path); code != test.code {
			t.Errorf("%s gets %d, want %d", name, code, test.code)
		}
	}
	if req, a := n.request("", slices); req != nil {
		if _, refusal := n.Authorize(req.Header, false, a); refusal == nil || refusal.ErrStatus.Code != 401 {
			t.Errorf("nobody: %v", refusal)
		}
	}
	// A token that the cloud refuses, because its pod is deleted there, is ignored when the cloud is away, though its pod
	// is still here.
	if err := c.Client().CoreV1().Pods(clientNamespace).Delete(t.Context(), own.Name,
		metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the cloud to refuse the token", func() bool {
		return n.online(token, slices) == http.StatusUnauthorized
	})
	// One refusal may be that of a kube-apiserver that starts: it counts here once it was said again, ten seconds later.
	eventually(t, "the refusal to count without the cloud", func() bool {
		return n.online(token, slices) == http.StatusUnauthorized && n.offline(token, slices) == http.StatusUnauthorized
	})
}

// eventually waits until cond holds.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	testkit.Until(t, time.Minute, what, cond)
}
