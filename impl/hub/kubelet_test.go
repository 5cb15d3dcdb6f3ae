package hub

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/weir-edge/weir/impl/limit"
)

const (
	logOfWeb  = podPath + "web/log"
	execInWeb = podPath + "web/exec?command=cat&stdin=true&stdout=true"
)

// kubeletBed is a hub with a kubelet, behind a link. The kubelet's pods are web, of one container, and two, of two; far
// is on another node. Users of the cloud may do what their names say.
func kubeletBed(t *testing.T) (*bed, *cut, *fakeKubelet) {
	t.Helper()
	b, link := offlineBed(t)
	pods := newFakePods(t)
	for name, containers := range map[string][]string{"web": {"app"}, "two": {"app", "side"}, "far": {"app"}} {
		pod := pods.put(name, "")
		for _, c := range containers {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: c})
		}
		if name == "far" {
			pod.Spec.NodeName = "edge-2"
		}
		pods.show(name)
	}
	b.clouds[0].set(func() {
		b.clouds[0].pods = pods
		b.clouds[0].allow = func(user string, a *authorizationv1.ResourceAttributes) bool {
			switch {
			case a.Resource != "pods" || a.Subresource == "":
				return true
			case user == "reader":
				return a.Subresource == "log"
			case user == "getter":
				return a.Verb == "get"
			case user == "one":
				return a.Name == "web"
			}
			return user != "denied"
		}
	})
	port, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	b.config.kubelet = port.Addr().String()
	check(t, port.Close())
	b.start()
	b.here()
	k := newFakeKubelet(t, b, b.ca.pool(), b.config.kubelet)
	cert := b.ca.tls("system:node:edge-1", "system:nodes")
	for path, header := range map[string][]string{
		podsOfNode:     {"User-Agent", "kubelet/v1", "Accept", protobufOnly},
		"/api/v1/pods": {"User-Agent", "agent/v1"},
	} {
		if resp, body := get(t, b.client(&cert), b.url()+path, header...); resp.StatusCode != http.StatusOK {
			t.Fatal(resp.Status, body)
		}
	}
	b.kept(2)
	return b, link, k
}

// uses has a caller do what a request is about, with the cloud.
func (b *bed) uses(token, method, path string) (code int) {
	b.t.Helper()
	if method == http.MethodGet && strings.Contains(path, "/log") {
		resp, _ := get(b.t, b.client(nil), b.url()+path, "Authorization", "Bearer "+token)
		return resp.StatusCode
	}
	conn, resp := b.upgrades(token, method, path)
	check(b.t, conn.Close())
	return resp.StatusCode
}

// upgrades asks for another protocol.
func (b *bed) upgrades(token, method, path string, header ...string) (net.Conn, *http.Response) {
	b.t.Helper()
	conn, err := tls.Dial("tcp", b.hub.Addr().String(), &tls.Config{RootCAs: b.local.pool()})
	check(b.t, err)
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: hub\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"+
		"X-Stream-Protocol-Version: v4.channel.k8s.io\r\nAuthorization: Bearer %s\r\n", method, path, token)
	for i := 0; i < len(header); i += 2 {
		fmt.Fprintf(conn, "%s: %s\r\n", header[i], header[i+1])
	}
	fmt.Fprint(conn, "\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	check(b.t, err)
	return conn, resp
}

// learnt waits until the hub has asked the cloud all of these, as fakeCloud notes them.
func (b *bed) learnt(questions ...string) {
	b.t.Helper()
	eventually(b.t, "the hub to ask who may do that", func() bool {
		asked := strings.Join(b.clouds[0].reviewed(), "\n")
		for _, q := range questions {
			if !strings.Contains(asked, q) {
				return false
			}
		}
		return true
	})
	eventually(b.t, "the answers", func() bool { return b.hub.door.Authorizer.Size() >= len(questions) })
}

// cut takes the cloud away.
func (b *bed) cut(link *cut) {
	b.t.Helper()
	link.set(true)
	b.away()
	eventually(b.t, "the cloud to be away", func() bool { away, _ := b.hub.cloud.IsAway(); return away })
}

// status is that of an answer.
func status(t *testing.T, body string) (s metav1.Status) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &s); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return s
}

// TestOwnKubelet: without the cloud, the kubelet answers to whom the cloud has allowed it, and the answers to others
// say why not.
func TestOwnKubelet(t *testing.T) {
	b, link, k := kubeletBed(t)
	for _, x := range []struct {
		token, method, path string
		want                int
	}{
		{"alice", http.MethodGet, logOfWeb, 200}, {"alice", http.MethodPost, execInWeb, 101},
		{"reader", http.MethodGet, logOfWeb, 200}, {"reader", http.MethodPost, execInWeb, 403},
		{"denied", http.MethodGet, logOfWeb, 403}, {"getter", http.MethodGet, execInWeb, 101},
		{"unlucky", http.MethodGet, logOfWeb, 502}, {"one", http.MethodGet, logOfWeb, 200},
		{"one", http.MethodPost, execInWeb, 101},
	} {
		if code := b.uses(x.token, x.method, x.path); code != x.want {
			t.Fatalf("%s %s %s: %d with the cloud", x.token, x.method, x.path, code)
		}
	}
	b.learnt("alice get pods default", "alice create pods default", "reader get pods default", "getter get pods default",
		"getter create pods default", "one get pods default", "one create pods default", "unlucky get pods default")
	if n := len(k.asked()); n != 0 {
		t.Fatalf("the kubelet was asked %d times beside the cloud", n)
	}
	b.cut(link)
	for _, x := range []struct {
		name, token, method, path string
		code                      int
		says                      string
	}{
		{"who may", "alice", http.MethodGet, logOfWeb, 200, "by the kubelet"},
		{"another pod of the namespace", "alice", http.MethodGet, podPath + "two/log?container=side", 200, "by the kubelet"},
		{"whom the cloud could not serve", "unlucky", http.MethodGet, logOfWeb, 200, "by the kubelet"},
		{"who may run commands", "alice", http.MethodPost, execInWeb, 101, ""},
		{"the same with attach", "alice", http.MethodPost, podPath + "web/attach?stdin=1&stdout=1", 503, "pods/attach"},
		{"a WebSocket needs both verbs", "alice", http.MethodGet, execInWeb, 503, "get of pods/exec"},
		{"another namespace", "alice", http.MethodGet, "/api/v1/namespaces/other/pods/web/log", 503, "in namespace other"},
		{"an unknown pod", "alice", http.MethodGet, podPath + "none/log", 404, `pods "none" not found`},
		{"a pod of another node", "alice", http.MethodGet, podPath + "far/log", 503, `is on node "edge-2"`},
		{"a container of several", "alice", http.MethodGet, podPath + "two/log", 400,
			"a container name must be specified for pod two, choose one of: [app side]"},
		{"a container that is none", "alice", http.MethodGet, logOfWeb + "?container=x", 400,
			"container x is not valid for pod web"},
		{"what the kubelet refuses", "alice", http.MethodGet, logOfWeb + "?tailLines=-1", 422, "Invalid request."},
		{"who may read logs", "reader", http.MethodGet, logOfWeb, 200, "by the kubelet"},
		{"and no more", "reader", http.MethodPost, execInWeb, 403, "the cloud denied it"},
		{"who was denied", "denied", http.MethodGet, logOfWeb, 403, "the cloud denied it"},
		{"who may only get", "getter", http.MethodGet, execInWeb, 503, "create of pods/exec"},
		{"one pod", "one", http.MethodGet, logOfWeb, 200, "by the kubelet"},
		{"one pod's commands", "one", http.MethodPost, execInWeb, 101, ""},
		{"another than the one", "one", http.MethodGet, podPath + "two/log?container=app", 503, "get of pods/log"},
		{"who never asked", "stranger", http.MethodGet, logOfWeb, 503, "cannot tell who is calling"},
		{"another subresource", "alice", http.MethodGet, podPath + "web/proxy", 503, "has not been seen to decide"},
		{"a path that is not clean", "alice", http.MethodGet, "/api/v1/namespaces/default//pods/web/log", 503, ""},
		{"a delete", "alice", http.MethodDelete, logOfWeb, 503, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			before, body := len(k.asked()), ""
			var code int
			if strings.Contains(x.path, "/log") || x.method == http.MethodDelete || strings.HasSuffix(x.path, "/proxy") {
				resp, said := do(t, b.client(nil), x.method, b.url()+x.path, nil, "Authorization", "Bearer "+x.token)
				code, body = resp.StatusCode, said
			} else {
				conn, resp := b.upgrades(x.token, x.method, x.path)
				defer conn.Close()
				if code = resp.StatusCode; code != http.StatusSwitchingProtocols {
					said, err := io.ReadAll(resp.Body)
					check(t, err)
					body = string(said)
				}
			}
			if code != x.code || !strings.Contains(body, x.says) && !strings.Contains(status(t, body).Message, x.says) {
				t.Errorf("%d %s, want %d and %s", code, body, x.code, x.says)
			}
			if reached := len(k.asked()) > before; reached != (code < 300 || code == 422) {
				t.Errorf("%d: the kubelet was asked: %t", code, reached)
			}
		})
	}
}

// rest is the configuration of a stock client.
func (b *bed) rest(token string) *rest.Config {
	return &rest.Config{
		Host: b.url(), APIPath: "/api", BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: b.local.pem},
	}
}

// TestOwnKubeletRunsCommands: a stock client types, and reads what comes back, over WebSockets and SPDY; to a kubelet
// that knows no WebSockets it falls back.
func TestOwnKubeletRunsCommands(t *testing.T) {
	b, link, k := kubeletBed(t)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if code := b.uses("alice", method, execInWeb); code != http.StatusSwitchingProtocols {
			t.Fatalf("%s: %d", method, code)
		}
	}
	b.learnt("alice get pods default", "alice create pods default")
	b.cut(link)
	at, err := url.Parse(b.url() + execInWeb)
	check(t, err)
	webSocket, err := remotecommand.NewWebSocketExecutor(b.rest("alice"), http.MethodGet, at.String())
	check(t, err)
	overSPDY, err := remotecommand.NewSPDYExecutor(b.rest("alice"), http.MethodPost, at)
	check(t, err)
	either, err := remotecommand.NewFallbackExecutor(webSocket, overSPDY, httpstream.IsUpgradeFailure)
	check(t, err)
	for _, x := range []struct {
		name    string
		run     remotecommand.Executor
		tunnels bool
		method  string
	}{
		{"WebSocket", webSocket, true, http.MethodGet}, {"SPDY", overSPDY, true, http.MethodPost},
		{"fallback", either, false, http.MethodPost},
	} {
		t.Run(x.name, func(t *testing.T) {
			k.tunnels = x.tunnels
			typed, keys := io.Pipe()
			shown, screen := io.Pipe()
			done := make(chan error, 1)
			go func() {
				done <- x.run.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: typed, Stdout: screen})
				screen.Close()
			}()
			in := bufio.NewReader(shown)
			for _, word := range []string{"hello", "again"} {
				fmt.Fprintln(keys, word)
				line, err := in.ReadString('\n')
				if err != nil || line != strings.ToUpper(word)+"\n" {
					t.Fatalf("typed %q, read %q: %v", word, line, err)
				}
			}
			check(t, keys.Close())
			check(t, <-done)
			all := k.asked()
			last := all[len(all)-1]
			if last.Method != x.method || last.URL.Path != "/exec/default/web/app" ||
				last.URL.RawQuery != "command=cat&input=1&output=1" {
				t.Errorf("the kubelet was asked: %s %s", last.Method, last.URL)
			}
		})
	}
}

// TestOwnKubeletFollows: a log is followed as it grows, and goes on when the cloud is back, where the next request
// goes. It ends with the token.
func TestOwnKubeletFollows(t *testing.T) {
	b, link, k := kubeletBed(t)
	b.uses("alice", http.MethodGet, logOfWeb)
	b.learnt("alice get pods default")
	b.cut(link)
	follow := func() *bufio.Reader {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			b.url()+logOfWeb+"?follow=true&tailLines=5&timestamps=true&insecureSkipTLSVerifyBackend=true&pretty=1", nil)
		check(t, err)
		req.Header.Set("Authorization", "Bearer alice")
		resp, err := b.client(nil).Do(req)
		check(t, err)
		t.Cleanup(func() { resp.Body.Close() })
		if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/plain" {
			t.Fatal(resp.Status, resp.Header)
		}
		return bufio.NewReader(resp.Body)
	}
	in := follow()
	reads := func(want string) {
		t.Helper()
		if line, err := in.ReadString('\n'); err != nil || line != want+"\n" {
			t.Fatalf("read %q, %v, want %q", line, err, want)
		}
	}
	reads("by the kubelet")
	k.lines <- "first"
	reads("first")
	if q := k.asked()[0].URL; q.Path != "/containerLogs/default/web/app" ||
		q.RawQuery != "follow=true&tailLines=5&timestamps=true" {
		t.Errorf("the kubelet was asked %s", q)
	}
	link.set(false)
	b.here()
	if _, body := get(t, b.client(nil), b.url()+logOfWeb, alice...); body != "by the cloud\n" {
		t.Errorf("the cloud is back, and the log is %q", body)
	}
	k.lines <- "second"
	reads("second")
	b.clouds[0].refuse("alice")
	if resp, _ := get(t, b.client(nil), b.url()+logOfWeb, alice...); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a token that the cloud refuses: %s", resp.Status)
	}
	if line, err := in.ReadString('\n'); err == nil {
		t.Errorf("the log goes on without a token that counts: %q", line)
	}
}

// TestOwnKubeletAway: a kubelet that is down, or does not know the hub, is told from a cloud that is away; after a
// restart it is asked again.
func TestOwnKubeletAway(t *testing.T) {
	b, link, k := kubeletBed(t)
	b.uses("alice", http.MethodGet, logOfWeb)
	b.learnt("alice get pods default")
	b.cut(link)
	reads := func(code int, says string) {
		t.Helper()
		resp, body := get(t, b.client(nil), b.url()+logOfWeb, alice...)
		if resp.StatusCode != code || !strings.Contains(body, says) {
			t.Errorf("got %d %s, want %d, %s", resp.StatusCode, body, code, says)
		}
	}
	reads(http.StatusOK, "by the kubelet")
	k.end()
	reads(http.StatusServiceUnavailable, "systemctl status kubelet")
	k = newFakeKubelet(t, b, b.ca.pool(), b.config.kubelet)
	reads(http.StatusOK, "by the kubelet")
	k.end()
	newFakeKubelet(t, b, b.local.pool(), b.config.kubelet)
	reads(http.StatusServiceUnavailable, "authentication.x509.clientCAFile")
	reads(http.StatusServiceUnavailable, "clientCAFile") // nobody holds a place for what was refused
	if n := b.hub.door.Proxy.Kubelet.Open(); n != 0 {
		t.Errorf("%d streams are open", n)
	}
}

// TestOwnKubeletsQuestion: the hub says to the kubelet that the hub may, as long as a request of the hub waits, and
// nothing else. With the cloud it is the cloud's to say.
func TestOwnKubeletsQuestion(t *testing.T) {
	b, link, k := kubeletBed(t)
	b.uses("alice", http.MethodGet, logOfWeb)
	b.learnt("alice get pods default")
	hubUser := "weir:hub:pool-a:edge-1"
	node := b.ca.tls("system:node:edge-1", "system:nodes")
	ask := func(cert *tls.Certificate, user, verb string, header ...string) (code int, allowed bool) {
		t.Helper()
		body, err := json.Marshal(&authorizationv1.SubjectAccessReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"},
			Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: verb, Version: "v1", Resource: "nodes", Subresource: "proxy", Name: "edge-1",
			}},
		})
		check(t, err)
		resp, said := do(t, b.client(cert), http.MethodPost, b.url()+"/apis/authorization.k8s.io/v1/subjectaccessreviews",
			body, append([]string{"Content-Type", "application/json"}, header...)...)
		var r authorizationv1.SubjectAccessReview
		if resp.StatusCode == http.StatusCreated {
			check(t, json.Unmarshal([]byte(said), &r))
		}
		return resp.StatusCode, r.Status.Allowed
	}
	if code, _ := ask(&node, hubUser, "get"); code != http.StatusNotFound { // by the cloud of this test
		t.Errorf("with the cloud: %d", code)
	}
	b.cut(link)
	if code, _ := ask(&node, hubUser, "get"); code != http.StatusServiceUnavailable {
		t.Errorf("nothing waits: %d", code)
	}
	var while func()
	k.mu.Lock()
	authz := k.authz
	k.authz = before{authz, func() { while() }}
	k.mu.Unlock()
	while = func() {
		for name, x := range map[string]struct {
			cert       *tls.Certificate
			user, verb string
			header     []string
			code       int
		}{
			"the hub's request":  {&node, hubUser, "get", nil, http.StatusCreated},
			"another verb":       {&node, hubUser, "create", nil, http.StatusServiceUnavailable},
			"another user":       {&node, "mallory", "get", nil, http.StatusServiceUnavailable},
			"the node":           {&node, "system:node:edge-1", "get", nil, http.StatusServiceUnavailable},
			"another's question": {nil, hubUser, "get", alice, http.StatusServiceUnavailable},
			"in another's name": {
				&node, hubUser, "get", []string{"Impersonate-User", "mallory"}, http.StatusServiceUnavailable,
			},
		} {
			if code, allowed := ask(x.cert, x.user, x.verb, x.header...); code != x.code || allowed != (code == 201) {
				t.Errorf("%s: %d, allowed: %t, want %d", name, code, allowed, x.code)
			}
		}
	}
	if resp, body := get(t, b.client(nil), b.url()+logOfWeb, alice...); resp.StatusCode != http.StatusOK {
		t.Errorf("%s %s", resp.Status, body)
	}
	while = func() {}
	if code, _ := ask(&node, hubUser, "get"); code != http.StatusServiceUnavailable {
		t.Errorf("nothing waits any more: %d", code)
	}
}

// TestOwnKubeletIsShownNoCredential: what says who calls, or who is meant, ends at the hub.
func TestOwnKubeletIsShownNoCredential(t *testing.T) {
	b, link, k := kubeletBed(t)
	b.uses("alice", http.MethodPost, execInWeb)
	b.learnt("alice create pods default")
	b.cut(link)
	conn, resp := b.upgrades("alice", http.MethodPost, execInWeb+"&container=app&uid=x&path=../../run/default/far/app",
		"Cookie", "a=b", "X-Remote-User", "system:masters", "X-Forwarded-For", "10.0.0.1", "X-Evil", "1",
		"Proxy-Authorization", "Basic eDp4", "Content-Type", "text/x")
	defer conn.Close()
	if resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(resp.Status)
	}
	got := k.asked()[0]
	if got.URL.String() != "/exec/default/web/app?command=cat&input=1&output=1" {
		t.Errorf("the kubelet was asked %s", got.URL)
	}
	want := http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"SPDY/3.1"}, "X-Stream-Protocol-Version": {"v4.channel.k8s.io"},
		"Content-Length": {"0"},
	}
	for name, values := range got.Header {
		if strings.Join(values, "") != strings.Join(want[name], "") {
			t.Errorf("the kubelet is shown %s: %q", name, values)
		}
	}
	if got.TLS.PeerCertificates[0].Subject.CommonName != "weir:hub:pool-a:edge-1" {
		t.Errorf("it is shown %s", got.TLS.PeerCertificates[0].Subject)
	}
}

// TestOwnKubeletIsBounded: one caller cannot take all streams, and gives back what has ended. The hub ends with them.
func TestOwnKubeletIsBounded(t *testing.T) {
	b, link, _ := kubeletBed(t)
	b.uses("alice", http.MethodPost, execInWeb)
	b.uses("reader", http.MethodGet, logOfWeb)
	b.learnt("alice create pods default", "reader get pods default")
	b.cut(link)
	var all []net.Conn
	open := func() int {
		conn, resp := b.upgrades("alice", http.MethodPost, execInWeb)
		t.Cleanup(func() { conn.Close() })
		all = append(all, conn)
		return resp.StatusCode
	}
	for range limit.MaxKubeletCaller {
		if code := open(); code != http.StatusSwitchingProtocols {
			t.Fatal(code)
		}
	}
	if code := open(); code != http.StatusTooManyRequests {
		t.Errorf("one more: %d", code)
	}
	if resp, _ := get(t, b.client(nil), b.url()+logOfWeb, "Authorization", "Bearer reader"); resp.StatusCode !=
		http.StatusOK {
		t.Errorf("another caller: %s", resp.Status)
	}
	check(t, all[0].Close())
	eventually(t, "the place to be free", func() bool {
		return b.hub.door.Proxy.Kubelet.Open() < limit.MaxKubeletCaller
	})
	if code := open(); code != http.StatusSwitchingProtocols {
		t.Errorf("after one has ended: %d", code)
	}
	b.stop()
	if _, err := all[len(all)-1].Read(make([]byte, 1)); err == nil {
		t.Error("a stream outlives its hub")
	}
	if logged := b.log.String(); !strings.Contains(logged, "what=exec") || !strings.Contains(logged, "pod=default/web") ||
		!strings.Contains(logged, "took=") {
		t.Error("it is not in the log")
	}
}
