package gatetest

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/reverse"
	"github.com/weir-edge/weir/impl/testkit"
	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/testca"
)

const (
	kubeletAt = "10.0.0.7" // of a node in each of two pools
	deckAt    = "10.0.0.9"
)

// TestWayIn: a kube-apiserver that cannot connect to any node reads logs and opens a shell there by the gate, and the
// hub that leads. Two pools have the same network.
func TestWayIn(t *testing.T) {
	w := newWorld(t)
	check(t, w.cloud.GrantHubs(t.Context(), "mill", "mill-1"))
	w.node(t, "edge-1", "harbour", kubeletAt, "edge-1")
	w.node(t, "mill-1", "mill", kubeletAt, "mill-1")
	w.node(t, "deck-1", "mill", deckAt, "")
	w.pod(t, "a", "edge-1")
	w.pod(t, "b", "mill-1")
	check(t, w.cloud.Egress(w.at, w.roots))
	w.bind(t, "weir:gate:connect-straight", cloud.EgressUser)
	w.restart(t)
	logs := func(pod string) (string, error) {
		b, err := w.kube.CoreV1().Pods("default").GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(t.Context())
		return string(b), err
	}
	code, text, err := w.admin().sent(http.MethodGet, w.cloud.URL()+"/api/v1/namespaces/default/pods/a/log", "")
	check(t, err)
	if code != http.StatusInternalServerError || !strings.Contains(text, "no hub that leads it is connected") {
		t.Fatalf("without a leader: %d %s", code, text)
	}
	harbour, mill := w.lead(t, "harbour", "edge-1"), w.lead(t, "mill", "mill-1")
	for pod, want := range map[string]*site{"a": harbour, "b": mill} {
		var text string
		testkit.Until(t, patience, "logs of "+pod, func() (ok bool) {
			var err error
			text, err = logs(pod)
			return err == nil
		})
		if text != "logs of "+want.node+"\n" {
			t.Errorf("%s: %q", pod, text)
		}
	}
	if who := harbour.asked(); who != cloud.EgressUser {
		t.Errorf("the kubelet is asked by %q", who)
	}

	t.Run("exec", func(t *testing.T) {
		url := w.kube.CoreV1().RESTClient().Post().Resource("pods").Namespace("default").Name("a").SubResource("exec").
			VersionedParams(&corev1.PodExecOptions{Command: []string{"cat"}, Stdin: true, Stdout: true}, scheme.ParameterCodec).
			URL()
		for name, open := range map[string]func() (remotecommand.Executor, error){
			"SPDY": func() (remotecommand.Executor, error) {
				return remotecommand.NewSPDYExecutor(w.cloud.RESTConfig(), http.MethodPost, url)
			},
			"websocket": func() (remotecommand.Executor, error) {
				return remotecommand.NewWebSocketExecutor(w.cloud.RESTConfig(), http.MethodGet, url.String())
			},
		} {
			shell, err := open()
			check(t, err)
			said := strings.Repeat("hello\n", 20_000)
			var heard bytes.Buffer
			err = shell.StreamWithContext(t.Context(), remotecommand.StreamOptions{
				Stdin: strings.NewReader(said), Stdout: &heard,
			})
			if err != nil || heard.String() != said {
				t.Errorf("%s: heard %d bytes of %d, %v", name, heard.Len(), len(said), err)
			}
		}
	})
	t.Run("proxy", func(t *testing.T) { // kube-apiserver resolves names itself for this one
		at := w.kube.CoreV1().RESTClient().Get()
		text, err := at.AbsPath("/api/v1/nodes/deck-1/proxy/metrics/resource").DoRaw(t.Context())
		if err != nil || string(text) != "/metrics/resource of mill-1\n" {
			t.Errorf("%q, %v", text, err)
		}
	})
	t.Run("pods", func(t *testing.T) { testPods(t, w, harbour) })
	t.Run("follow", func(sub *testing.T) { // logs -f while the leader goes: they end, and are called again
		ctx, cancel := context.WithCancel(sub.Context())
		defer cancel()
		follow := func() io.ReadCloser {
			sub.Helper()
			body, err := w.kube.CoreV1().Pods("default").GetLogs("a", &corev1.PodLogOptions{Follow: true}).Stream(ctx)
			check(sub, err)
			b := make([]byte, len("line 0\n"))
			if _, err := io.ReadFull(body, b); err != nil || string(b) != "line 0\n" {
				sub.Fatalf("%q, %v", b, err)
			}
			return body
		}
		body := follow()
		harbour.stop()
		// kube-apiserver ends its answer as if all had been said, however the connection to a kubelet ends.
		_, _ = io.Copy(io.Discard, body)
		_ = body.Close()
		w.lead(t, "harbour", "edge-1") // until the end of all
		testkit.Until(sub, patience, "logs", func() bool {
			_, err := logs("a")
			return err == nil
		})
		_ = follow().Close()
	})
	t.Run("refused", func(t *testing.T) { testRefused(t, w) })
}

// testPods: where kube-apiserver cannot be told of the gate, the gate gives logs itself, to callers that may have them
// there.
func testPods(t *testing.T, w *world, harbour *site) {
	const log = "/api/v1/namespaces/default/pods/a/log"
	if code, text := w.admin().ask(http.MethodGet, log, ""); code != http.StatusOK || text != "logs of edge-1\n" {
		t.Errorf("%d %s", code, text)
	}
	if who := harbour.asked(); who != gateUser {
		t.Errorf("the kubelet is asked by %q", who)
	}
	for name, c := range map[string]*caller{
		"somebody": w.user("somebody"), "a hub": w.hub(), "nobody": w.caller(nil, ""),
	} {
		if code, text := c.ask(http.MethodGet, log, ""); code != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}
	code, text := w.admin().ask(http.MethodGet, strings.Replace(log, "/a/", "/c/", 1), "")
	if code != http.StatusNotFound {
		t.Errorf("a pod that is not there: %d %s", code, text)
	}
}

// testRefused: who may not, and what nobody may.
func testRefused(t *testing.T, w *world) {
	w.bind(t, "weir:gate:connect", "prometheus")
	for _, test := range []struct {
		user, address string
		code          int
		why           string
	}{
		{"somebody", kubeletAt + ":10250", http.StatusForbidden, "somebody"},
		{"prometheus", "edge-1:10250", http.StatusOK, ""},
		{"prometheus", "edge-1:22", http.StatusForbidden, "only port 10250"},
		{"prometheus", kubeletAt + ":10250", http.StatusForbidden, "want the name of the node"},
		{"prometheus", deckAt + ":10250", http.StatusOK, ""},
		{"prometheus", w.cloud.Addr(), http.StatusForbidden, "connect/straight"},
		{"prometheus", "192.0.2.1:443", http.StatusForbidden, "connect/straight"},
		{cloud.EgressUser, "169.254.169.254:80", http.StatusForbidden, "link-local"},
		{cloud.EgressUser, strings.TrimPrefix(w.at, "https://"), http.StatusForbidden, "loopback"},
		{cloud.EgressUser, "edge-1", http.StatusForbidden, "want host:port"},
		{"weir:hub:harbour:edge-1", "edge-1:10250", http.StatusForbidden, ""},
		{"system:node:edge-1", "mill-1:10250", http.StatusForbidden, ""},
	} {
		code, text := w.connect(t, test.user, test.address)
		if code != test.code || !strings.Contains(text, test.why) {
			t.Errorf("%s to %s: %d %s, want %d %s", test.user, test.address, code, text, test.code, test.why)
		}
	}
	hub := w.hub()
	for name, c := range map[string]*caller{
		"a node": w.user("system:node:edge-1", "system:nodes"), "nobody": w.caller(nil, ""),
		"a stranger": w.user("weir:hub:mill:edge-9"),
	} {
		if code, text := c.ask(http.MethodPost, contract.ReversePath, ""); code != http.StatusForbidden {
			t.Errorf("%s leads: %d %s", name, code, text)
		}
	}
	if code, _ := hub.ask(http.MethodPost, contract.ReversePath, ""); code != http.StatusBadRequest {
		t.Errorf("HTTP/2 without an upgrade: %d", code)
	}
}

// connect asks the gate for a connection.
func (w *world) connect(t *testing.T, user, address string) (code int, status string) {
	t.Helper()
	own, ok := w.user(user).client.Transport.(*http.Transport)
	if !ok {
		t.Fatal("no transport")
	}
	config := own.TLSClientConfig.Clone()
	config.NextProtos = nil
	conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", strings.TrimPrefix(w.at, "https://"))
	check(t, err)
	defer conn.Close()
	b := make([]byte, 1000)
	_, err = fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", address, address)
	check(t, err)
	n, err := conn.Read(b)
	check(t, err)
	_, err = fmt.Sscanf(string(b[:n]), "HTTP/1.1 %d", &code)
	check(t, err)
	return code, string(b[:n])
}

// bind gives a role of weir-gate's manifests to a user.
func (w *world) bind(t *testing.T, role, user string) {
	t.Helper()
	_, err := w.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role + ":" + user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	check(t, err)
}

// restart has kube-apiserver take other flags.
func (w *world) restart(t *testing.T) {
	t.Helper()
	p := w.cloud.APIServer()
	p.Kill()
	<-p.Done()
	check(t, w.cloud.StartAPIServer(t.Context()))
}

// node is a Node of a pool. host is its address Hostname; "": it has none.
func (w *world) node(t *testing.T, name, pool, at, host string) {
	t.Helper()
	all := w.kube.CoreV1().Nodes()
	n, err := all.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{contract.NodePoolLabel: pool},
	}}, metav1.CreateOptions{})
	check(t, err)
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: at}}
	if host != "" {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: host})
	}
	n.Status.DaemonEndpoints.KubeletEndpoint.Port = reverse.KubeletPort
	_, err = all.UpdateStatus(t.Context(), n, metav1.UpdateOptions{})
	check(t, err)
}

func (w *world) pod(t *testing.T, name, node string) {
	t.Helper()
	none := false
	_, err := w.kube.CoreV1().ServiceAccounts("default").Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	check(t, err)
	_, err = w.kube.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
			NodeName: node, ServiceAccountName: name, AutomountServiceAccountToken: &none,
			Containers: []corev1.Container{{Name: "c", Image: "i"}},
		},
	}, metav1.CreateOptions{})
	check(t, err)
}

// site is where a kubelet is, and a hub that leads.
type site struct {
	node string
	stop func()

	mu  sync.Mutex
	who string
}

func (s *site) asked() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.who
}

// lead has a hub lead its pool, in which a kubelet answers.
func (w *world) lead(t *testing.T, pool, node string) *site {
	t.Helper()
	s := &site{node: node}
	kubelet := httptest.NewUnstartedServer(s)
	pair, err := w.cloud.CA().Issue(testca.Request{CommonName: "kubelet", Hosts: []string{"127.0.0.1"}})
	check(t, err)
	cert, err := pair.TLS()
	check(t, err)
	kubelet.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequestClientCert}
	kubelet.StartTLS()
	t.Cleanup(kubelet.Close)
	own, err := w.cloud.HubCertificate(pool, node, 0)
	check(t, err)
	transport, ok := w.caller(own, "").client.Transport.(*http.Transport)
	if !ok {
		t.Fatal("no transport")
	}
	config := transport.TLSClientConfig.Clone()
	config.NextProtos = nil
	at := strings.TrimPrefix(w.at, "https://")
	l, err := reverse.NewLeader(reverse.LeaderConfig{
		Gate: at, Dial: func(ctx context.Context) (net.Conn, error) {
			return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", at)
		},
		Reach: func(_ context.Context, of string) (reverse.Reach, error) {
			at, ok := map[string]string{node: kubeletAt, "deck-1": deckAt}[of]
			if !ok {
				return reverse.Reach{}, errors.New("it is no node of the pool")
			}
			return reverse.Reach{Nodes: []netip.Addr{netip.MustParseAddr(at)}}, nil
		},
		Connect: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) { // the network of the pool
			return (&net.Dialer{}).DialContext(ctx, "tcp", kubelet.Listener.Addr().String())
		},
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)).With("hub", node),
	})
	check(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		check(t, <-done)
	})
	t.Cleanup(s.stop)
	testkit.Until(t, patience, "the connection of "+node, func() bool { return l.State().Connected })
	return s
}

// ServeHTTP answers as a kubelet does.
func (s *site) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if len(req.TLS.PeerCertificates) > 0 {
		s.mu.Lock()
		s.who = req.TLS.PeerCertificates[0].Subject.CommonName
		s.mu.Unlock()
	}
	switch {
	case strings.HasPrefix(req.URL.Path, "/containerLogs/") && req.URL.Query().Get("follow") == "true":
		for i := 0; req.Context().Err() == nil; i++ {
			fmt.Fprintf(w, "line %d\n", i)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(10 * time.Millisecond):
			case <-req.Context().Done():
			}
		}
	case strings.HasPrefix(req.URL.Path, "/containerLogs/"):
		fmt.Fprintln(w, "logs of", s.node)
	case strings.HasPrefix(req.URL.Path, "/exec/"):
		cat(w, req)
	default:
		fmt.Fprintln(w, req.URL.Path, "of", s.node)
	}
}

// cat says on its standard output what it hears.
func cat(w http.ResponseWriter, req *http.Request) {
	if _, err := httpstream.Handshake(req, w, []string{"v4.channel.k8s.io"}); err != nil {
		return
	}
	streams := make(chan httpstream.Stream, 8)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, req, func(s httpstream.Stream, _ <-chan struct{}) error {
		streams <- s
		return nil
	})
	if conn == nil {
		return
	}
	defer conn.Close()
	all := map[string]httpstream.Stream{}
	for len(all) < 3 {
		select {
		case s := <-streams:
			all[s.Headers().Get(corev1.StreamType)] = s
		case <-conn.CloseChan():
			return
		}
	}
	_, _ = io.Copy(all[corev1.StreamTypeStdout], all[corev1.StreamTypeStdin])
	_, _ = io.WriteString(all[corev1.StreamTypeError], `{"status":"Success"}`)
	for _, s := range all {
		_ = s.Close()
	}
	<-conn.CloseChan()
}
