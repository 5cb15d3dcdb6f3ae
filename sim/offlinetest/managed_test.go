package offlinetest

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/sim/parts"
)

// tokenOf is a token of a pod, as its kubelet asks its hub for one.
func tokenOf(
	ctx context.Context, kubelet kubernetes.Interface, pod *corev1.Pod, audiences ...string,
) (string, error) {
	seconds := int64(3607)
	tr, err := kubelet.CoreV1().ServiceAccounts("default").CreateToken(
		ctx, pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			Audiences: audiences, ExpirationSeconds: &seconds,
			BoundObjectRef: &authenticationv1.BoundObjectReference{
				Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID,
			},
		}}, metav1.CreateOptions{},
	)
	if err != nil {
		return "", err
	}
	return tr.Status.Token, nil
}

// TestManagedCluster: a cluster as providers run it, whose tokens really end after an hour and whose API has a name of
// its own. A machine that starts without the cloud 61 minutes later hands its pods the tokens that it had, and takes
// them, also one that nobody has used before; when hubs take them no more, it hands none out.
func TestManagedCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a hub whose clock can be set")
	}
	const api = "kubernetes.svc.default"
	b := newBedWith(t, parts.Flags{"offline-token-allowance": "2h"}, parts.FindTimeless,
		"--service-account-extend-token-expiration=false", "--api-audiences="+api)
	b.account("app")
	ctx, pods := t.Context(), map[string]*corev1.Pod{}
	for _, name := range []string{"one", "two"} {
		pod, err := b.admin.CoreV1().Pods("default").Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PodSpec{
				NodeName: edge, ServiceAccountName: "app", // of which it mounts a token, so that its kubelet gets one
				Containers: []corev1.Container{{Name: "main", Image: "example.com/image:1"}},
			},
		}, metav1.CreateOptions{})
		check(t, err)
		pods[name] = pod
	}
	a := b.startAgent("kubelet", runtime.ContentTypeProtobuf, 0)
	a.synced()
	var ahead atomic.Int64 // of the machine: its hub makes certificates of then
	clients := func(certified bool) *http.Client {
		config, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: b.ca}})
		check(t, err)
		config.Time = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		if certified {
			cert, err := b.cert.TLS()
			check(t, err)
			config.Certificates = []tls.Certificate{cert}
		}
		tr := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
		t.Cleanup(tr.CloseIdleConnections)
		return &http.Client{Timeout: time.Minute, Transport: tripper(func(req *http.Request) (*http.Response, error) {
			resp, err := tr.RoundTrip(req)
			if err == nil {
				resp.Header.Del("Retry-After") // client-go would try a refusal ten times
			}
			return resp, err
		})}
	}
	kubelet, err := kubernetes.NewForConfigAndClient(
		&rest.Config{Host: b.url, UserAgent: "kubelet/v1.37", QPS: -1}, clients(true),
	)
	check(t, err)
	tokens := map[string]string{}
	for name, pod := range pods {
		eventually(t, "the kubelet to get a token", func() bool {
			if tokens[name], err = tokenOf(ctx, kubelet, pod); err != nil {
				t.Log(err)
			}
			return err == nil
		})
	}
	var claims struct {
		Exp, Iat int64
		Aud      []string
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(tokens["one"], ".")[1])
	check(t, err)
	check(t, json.Unmarshal(payload, &claims))
	if claims.Exp-claims.Iat > 3700 || len(claims.Aud) != 1 || claims.Aud[0] != api {
		t.Fatalf("not the tokens that this test is about: %s", payload)
	}
	stranger, err := tokenOf(ctx, b.admin, pods["one"], "vault")
	check(t, err)
	client := clients(false)
	reads := func(token string) int {
		code, why := ask(ctx, client, b.url+"/api/v1/namespaces/default/configmaps", "Bearer "+token)
		if why != "" {
			t.Log(why)
		}
		return code
	}
	eventually(t, "the pod to read", func() bool { return reads(tokens["one"]) == http.StatusOK })
	eventually(t, "the hub to have the keys of tokens", func() bool {
		log, err := os.ReadFile(b.hub.LogFile())
		return err == nil && strings.Contains(string(log), "keys of the cluster's service accounts have come")
	})
	if code := reads(tokens["one"]); code != http.StatusOK { // what is decided from now on counts for the account
		t.Fatalf("the pod reads: %d", code)
	}
	b.kept(3) // the informers' two, and the pod's
	b.cut()
	later := func(by time.Duration) {
		ahead.Store(int64(by))
		b.hub.Ahead(by)
		b.restart()
	}
	later(61 * time.Minute)
	for name, pod := range pods {
		token, err := tokenOf(ctx, kubelet, pod)
		if err != nil || token != tokens[name] {
			t.Errorf("the kubelet asks for the token of pod %s, 61 minutes later: %v", name, err)
		}
		if code := reads(tokens[name]); code != http.StatusOK {
			t.Errorf("pod %s reads, 61 minutes later: %d", name, code)
		}
	}
	if code := reads(stranger); code != http.StatusUnauthorized {
		t.Errorf("a token that is meant for somebody else: %d", code)
	}
	later(185 * time.Minute)
	for name, pod := range pods {
		if token, err := tokenOf(ctx, kubelet, pod); err == nil {
			t.Errorf("pod %s gets a token that no hub takes: %.20s…", name, token)
		} else if !strings.Contains(err.Error(), "expired at") {
			t.Error(err)
		}
		if code := reads(tokens[name]); code != http.StatusUnauthorized {
			t.Errorf("pod %s reads, three hours later: %d", name, code)
		}
	}
}

// tripper is a function that is an http.RoundTripper.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
