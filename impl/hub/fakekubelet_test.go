package hub

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	translator "k8s.io/apiserver/pkg/util/proxy"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// fakeKubelet is as much of a kubelet as a hub sees at its port, of the same code: it authenticates a client by its
// certificate, asks its API server, which is a hub, what that client may do, and passes streams on to a runtime.
type fakeKubelet struct {
	t       *testing.T
	server  *httptest.Server
	runtime *httptest.Server
	authn   authenticator.Request
	authz   authorizer.Authorizer
	lines   chan string // of the log that is followed
	tunnels bool        // it knows WebSockets, as from 1.36 on

	mu   sync.Mutex
	seen []*http.Request
}

// newFakeKubelet starts one at an address, "" for any.
func newFakeKubelet(t *testing.T, b *bed, clients *x509.CertPool, at string) *fakeKubelet {
	t.Helper()
	k := &fakeKubelet{t: t, lines: make(chan string), tunnels: true}
	k.authn = x509request.New(x509.VerifyOptions{Roots: clients, KeyUsages: []x509.ExtKeyUsage{
		x509.ExtKeyUsageClientAuth,
	}}, x509request.CommonNameUserConversion)
	cert, key := b.ca.issue("system:node:edge-1", "system:nodes")
	client, err := authorizationclient.NewForConfig(&rest.Config{
		Host: b.url(), TLSClientConfig: rest.TLSClientConfig{CAData: b.local.pem, CertData: cert, KeyData: key},
		ContentConfig: rest.ContentConfig{
			ContentType: runtime.ContentTypeProtobuf, AcceptContentTypes: runtime.ContentTypeProtobuf + ",application/json",
		},
	})
	check(t, err)
	t.Cleanup(client.RESTClient().(*rest.RESTClient).Client.CloseIdleConnections)
	k.authz, err = authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client, AllowCacheTTL: time.Millisecond, DenyCacheTTL: time.Millisecond,
		WebhookRetryBackoff: &wait.Backoff{Duration: 10 * time.Millisecond, Steps: 2},
	}.New()
	check(t, err)
	k.runtime = httptest.NewServer(http.HandlerFunc(k.stream))
	k.server = httptest.NewUnstartedServer(http.HandlerFunc(k.serve))
	if at != "" {
		_ = k.server.Listener.Close()
		k.server.Listener, err = net.Listen("tcp", at)
		check(t, err)
	}
	own := newAuthority(t, "kubelet") // which nobody knows
	k.server.TLS = &tls.Config{
		Certificates: []tls.Certificate{own.tls("edge-1@1")}, ClientAuth: tls.RequestClientCert,
	}
	k.server.EnableHTTP2 = true
	k.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	k.server.StartTLS()
	t.Cleanup(k.end)
	return k
}

func (k *fakeKubelet) end() {
	for _, s := range []*httptest.Server{k.server, k.runtime} {
		s.CloseClientConnections()
		s.Close()
	}
}

// asked are the requests that came to where who asks is known.
func (k *fakeKubelet) asked() []*http.Request {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.seen)
}

// serve is InstallAuthFilter of pkg/kubelet/server/server.go, and what is behind it.
func (k *fakeKubelet) serve(w http.ResponseWriter, req *http.Request) {
	who, ok, err := k.authn.AuthenticateRequest(req)
	if err != nil || !ok {
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return
	}
	k.mu.Lock()
	k.seen = append(k.seen, req.Clone(context.Background()))
	k.mu.Unlock()
	verb := map[string]string{http.MethodGet: "get", http.MethodPost: "create"}[req.Method]
	k.mu.Lock()
	authz := k.authz
	k.mu.Unlock()
	decision, _, err := authz.Authorize(req.Context(), authorizer.AttributesRecord{
		User: who.User, Verb: verb, APIVersion: "v1", Resource: "nodes", Subresource: "proxy", Name: "edge-1",
		ResourceRequest: true, Path: req.URL.Path,
	})
	switch {
	case err != nil:
		http.Error(w, fmt.Sprintf("Authorization error (user=%s, verb=%s)", who.User.GetName(), verb),
			http.StatusInternalServerError)
		return
	case decision != authorizer.DecisionAllow:
		http.Error(w, "Forbidden", http.StatusForbidden)
		return
	}
	switch parts := strings.Split(req.URL.Path, "/"); {
	case parts[1] == "containerLogs" && len(parts) == 5:
		k.log(w, req)
	case parts[1] == "exec" && len(parts) == 5, parts[1] == "attach" && len(parts) == 5,
		parts[1] == "portForward" && len(parts) == 4:
		k.connect(w, req)
	default:
		http.NotFound(w, req)
	}
}

func (k *fakeKubelet) log(w http.ResponseWriter, req *http.Request) {
	if req.URL.Query().Get("tailLines") == "-1" {
		http.Error(w, `{"message": "Invalid request."}`, http.StatusUnprocessableEntity)
		return
	}
	fmt.Fprintln(w, "by the kubelet")
	w.(http.Flusher).Flush()
	for req.URL.Query().Get("follow") == "true" {
		select {
		case line, ok := <-k.lines:
			if !ok {
				return
			}
			fmt.Fprintln(w, line)
			w.(http.Flusher).Flush()
		case <-req.Context().Done():
			return
		}
	}
}

// connect is getExec.
func (k *fakeKubelet) connect(w http.ResponseWriter, req *http.Request) {
	at, err := url.Parse(k.runtime.URL + req.URL.Path + "?" + req.URL.RawQuery)
	check(k.t, err)
	if k.tunnels && wsstream.IsWebSocketRequestWithStreamCloseProtocol(req) {
		of := func(name string) bool { return req.URL.Query().Get(name) == "1" }
		translator.NewStreamTranslatorHandler(at, nil, 0, translator.Options{
			Stdin: of(corev1.ExecStdinParam), Stdout: of(corev1.ExecStdoutParam), Stderr: of(corev1.ExecStderrParam),
		}).ServeHTTP(w, req)
		return
	}
	if wsstream.IsWebSocketRequest(req) {
		http.Error(w, "unable to upgrade", http.StatusForbidden)
		return
	}
	proxy.NewUpgradeAwareHandler(at, nil, false, true, errorResponder{}).ServeHTTP(w, req)
}

type errorResponder struct{}

func (errorResponder) Error(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, err.Error(), http.StatusInternalServerError)
}

// stream is a runtime in which each command sends back what it reads, line by line, in capitals.
func (k *fakeKubelet) stream(w http.ResponseWriter, req *http.Request) {
	versions := []string{"v4.channel.k8s.io", "portforward.k8s.io"}
	if _, err := httpstream.Handshake(req, w, versions); err != nil {
		return
	}
	wants := 1
	for _, name := range []string{corev1.ExecStdinParam, corev1.ExecStdoutParam, corev1.ExecStderrParam} {
		if req.URL.Query().Get(name) == "1" {
			wants++
		}
	}
	came := make(chan httpstream.Stream, 5)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, req, func(s httpstream.Stream, _ <-chan struct{}) error {
		came <- s
		return nil
	})
	if conn == nil {
		return
	}
	defer conn.Close()
	streams := map[string]httpstream.Stream{}
	for len(streams) < wants {
		select {
		case s := <-came:
			streams[s.Headers().Get(corev1.StreamType)] = s
		case <-conn.CloseChan():
			return
		}
	}
	if in := streams[corev1.StreamTypeStdin]; in != nil {
		for lines := bufio.NewScanner(in); lines.Scan(); {
			fmt.Fprintln(streams[corev1.StreamTypeStdout], strings.ToUpper(lines.Text()))
		}
	}
	said, _ := json.Marshal(metav1.Status{Status: metav1.StatusSuccess})
	_, _ = bytes.NewReader(said).WriteTo(streams[corev1.StreamTypeError])
}

// before does something, and asks then.
type before struct {
	authorizer.Authorizer
	do func()
}

func (b before) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	b.do()
	return b.Authorizer.Authorize(ctx, a)
}
