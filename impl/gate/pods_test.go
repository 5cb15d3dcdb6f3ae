package gate_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/weir-edge/weir/impl/gate"
	"github.com/weir-edge/weir/impl/gate/podstest"
	"github.com/weir-edge/weir/impl/reverse"
	"github.com/weir-edge/weir/impl/testkit"
)

const patience = 20 * time.Second

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const at = "/api/v1/namespaces/a/pods/"

// ask sends a request as a user.
func ask(t *testing.T, w *podstest.World, user, method, path string, header http.Header) *http.Response {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.CA)
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}}
	t.Cleanup(tr.CloseIdleConnections)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, method, w.URL+path, http.NoBody)
	check(t, err)
	for name, values := range header {
		req.Header[name] = values
	}
	if user != "" {
		req.Header.Set("Authorization", "Bearer "+user)
	}
	resp, err := (&http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}).Do(req)
	check(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// said is the answer of a request, whole; of a Status its message.
func said(t *testing.T, w *podstest.World, user, method, path string, header http.Header) (code int, text string) {
	t.Helper()
	resp := ask(t, w, user, method, path, header)
	body, err := io.ReadAll(resp.Body)
	check(t, err)
	var s metav1.Status
	if json.Unmarshal(body, &s) == nil && s.Kind == "Status" {
		return resp.StatusCode, s.Message
	}
	return resp.StatusCode, string(body)
}

// ways are those by which a client runs a command.
var ways = []string{"SPDY", "websocket"}

func executor(t testing.TB, w *podstest.World, way, user, path string, q url.Values) remotecommand.Executor {
	t.Helper()
	to, err := url.Parse(w.URL + path)
	check(t, err)
	to.RawQuery = q.Encode()
	var e remotecommand.Executor
	if way == "SPDY" {
		e, err = remotecommand.NewSPDYExecutor(w.Config(user), http.MethodPost, to)
	} else {
		e, err = remotecommand.NewWebSocketExecutor(w.Config(user), http.MethodGet, to.String())
	}
	check(t, err)
	return e
}

// TestLogs: a log comes as the kubelet writes it, line by line, and is asked for by the parameters of the caller.
func TestLogs(t *testing.T) {
	w := podstest.New(t, nil)
	if code, text := said(t, w, "alice", http.MethodGet, at+"one/log", nil); code != 200 || text != "one\n" {
		t.Errorf("%d, %q", code, text)
	}
	if got := w.Kubelet.Last(); got.Path != "/containerLogs/a/one/main" || len(got.Query) > 0 || got.User != "weir:gate" ||
		got.Method != http.MethodGet || got.Host != podstest.KubeletAddress {
		t.Errorf("the kubelet was asked %+v", got)
	}
	if got := w.Asked(); !slices.Equal(got, []string{"alice get pods/log a/one"}) {
		t.Errorf("asked about %q", got)
	}
	const q = "?container=side&follow=true&previous=true&timestamps=1&tailLines=5&sinceSeconds=60&limitBytes=9&pretty=x"
	resp := ask(t, w, "alice", http.MethodGet, at+"two/log"+q, nil)
	want := url.Values{
		"follow": {"true"}, "previous": {"true"}, "timestamps": {"true"}, "tailLines": {"5"}, "sinceSeconds": {"60"},
		"limitBytes": {"9"},
	}
	if got := w.Kubelet.Last(); got.Path != "/containerLogs/a/two/side" || got.Query.Encode() != want.Encode() {
		t.Errorf("the kubelet was asked %+v", got)
	}
	if kind := resp.Header.Get("Content-Type"); kind != "text/plain" {
		t.Errorf("the log is %s", kind)
	}
	lines := bufio.NewReader(resp.Body)
	next := func(want string) {
		t.Helper()
		if got, err := lines.ReadString('\n'); err != nil || got != want {
			t.Fatalf("%q, %v, want %q", got, err, want)
		}
	}
	next("one\n")
	for _, line := range []string{"two\n", "three\n"} { // each is there before the next is written
		w.Kubelet.Lines <- line
		next(line)
	}
	close(w.Kubelet.Lines)
	if _, err := lines.ReadByte(); err != io.EOF {
		t.Errorf("the log ends by %v", err)
	}
}

// TestBrokenLog: a log whose connection breaks does not end as if it were whole.
func TestBrokenLog(t *testing.T) {
	w := podstest.New(t, nil)
	resp := ask(t, w, "alice", http.MethodGet, at+"one/log?follow=true", nil)
	if _, err := io.ReadFull(resp.Body, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	w.Kubelet.Cut()
	if rest, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("the log ends well, after %q", rest)
	}
}

// TestExec: input, output, size and exit code go both ways, by SPDY and by websocket.
func TestExec(t *testing.T) {
	w := podstest.New(t, nil)
	for _, way := range ways {
		var out, errs bytes.Buffer
		q := url.Values{"stdin": {"true"}, "stdout": {"1"}, "command": {"cat"}, "container": {"main"}}
		err := executor(t, w, way, "alice", at+"one/exec", q).StreamWithContext(t.Context(), remotecommand.StreamOptions{
			Stdin: strings.NewReader(strings.Repeat("hello ", 50_000)), Stdout: &out,
		})
		if err != nil || out.String() != strings.Repeat("hello ", 50_000) {
			t.Errorf("%s: %v, %d bytes", way, err, out.Len())
		}
		want := map[string]string{"SPDY": http.MethodPost, "websocket": http.MethodGet}[way]
		got := w.Kubelet.Last()
		if got.Path != "/exec/a/one/main" || got.Query.Encode() != "command=cat&input=1&output=1" || got.Method != want {
			t.Errorf("%s: the kubelet was asked %+v", way, got)
		}
		out.Reset()
		q = url.Values{"stdout": {"true"}, "stderr": {"true"}, "command": {"exit", "3"}}
		err = executor(t, w, way, "alice", at+"one/exec", q).StreamWithContext(t.Context(), remotecommand.StreamOptions{
			Stdout: &out, Stderr: &errs,
		})
		var exit utilexec.CodeExitError
		if !errors.As(err, &exit) || exit.Code != 3 || errs.String() != "it fails\n" {
			t.Errorf("%s: %v, %q", way, err, &errs)
		}
		q = url.Values{"stdin": {"true"}, "stdout": {"true"}, "tty": {"true"}, "command": {"size"}}
		err = executor(t, w, way, "alice", at+"one/exec", q).StreamWithContext(t.Context(), remotecommand.StreamOptions{
			Stdin: strings.NewReader(""), Stdout: &out, Tty: true, TerminalSizeQueue: &sizes{{Width: 80, Height: 24}},
		})
		if err != nil || out.String() != "80x24\n" {
			t.Errorf("%s: %v, %q", way, err, &out)
		}
		out.Reset()
		q = url.Values{"stdin": {"true"}, "stdout": {"true"}, "command": {"exit", "9"}}
		err = executor(t, w, way, "alice", at+"one/attach", q).StreamWithContext(t.Context(), remotecommand.StreamOptions{
			Stdin: strings.NewReader("hello"), Stdout: &out,
		})
		if got := w.Kubelet.Last(); err != nil || out.String() != "hello" || got.Path != "/attach/a/one/main" ||
			got.Query.Encode() != "input=1&output=1" {
			t.Errorf("%s: attach: %v, %q, %+v", way, err, &out, got)
		}
	}
	asked := w.Asked()
	if want := []string{
		"alice create pods/exec a/one", "alice create pods/exec a/one", "alice create pods/exec a/one",
		"alice create pods/attach a/one",
		"alice get pods/exec a/one", "alice create pods/exec a/one", "alice get pods/exec a/one",
		"alice create pods/exec a/one", "alice get pods/exec a/one", "alice create pods/exec a/one",
		"alice get pods/attach a/one", "alice create pods/attach a/one",
	}; !slices.Equal(asked, want) {
		t.Errorf("asked about\n%s", strings.Join(asked, "\n"))
	}
}

// sizes are those of a terminal.
type sizes []remotecommand.TerminalSize

// Next implements remotecommand.TerminalSizeQueue.
func (s *sizes) Next() *remotecommand.TerminalSize {
	if len(*s) == 0 {
		return nil
	}
	next := (*s)[0]
	*s = (*s)[1:]
	return &next
}

// TestPortForward: a port is forwarded, several times over one connection, by SPDY and by websocket.
func TestPortForward(t *testing.T) {
	w := podstest.New(t, nil)
	for _, way := range ways {
		to, err := url.Parse(w.URL + at + "one/portforward")
		check(t, err)
		var dialer interface {
			Dial(protocols ...string) (httpstream.Connection, string, error)
		}
		if way == "SPDY" {
			tr, up, err := spdy.RoundTripperFor(w.Config("alice"))
			check(t, err)
			dialer = spdy.NewDialerForStreaming(up, &http.Client{Transport: tr}, http.MethodPost, to)
		} else {
			dialer, err = portforward.NewSPDYOverWebsocketDialerForStreaming(to, w.Config("alice"))
			check(t, err)
		}
		stop, ready := make(chan struct{}), make(chan struct{})
		var out, errs locked
		f, err := portforward.NewForStreaming(dialer, []string{"0:80", "0:81"}, stop, ready, &out, &errs)
		check(t, err)
		done := make(chan error, 1)
		go func() { done <- f.ForwardPorts() }()
		select {
		case <-ready:
		case err := <-done:
			t.Fatalf("%s: %v", way, err)
		}
		local, err := f.GetPorts()
		check(t, err)
		for range 3 {
			c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", local[0].Local))
			check(t, err)
			_, err = c.Write([]byte("hello"))
			check(t, err)
			check(t, c.(*net.TCPConn).CloseWrite())
			if got, err := io.ReadAll(c); err != nil || string(got) != "hello" {
				t.Errorf("%s: %q, %v", way, got, err)
			}
			_ = c.Close()
		}
		c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", local[1].Local))
		check(t, err)
		if got, _ := io.ReadAll(c); len(got) > 0 {
			t.Errorf("%s: a port at which nobody listens says %q", way, got)
		}
		_ = c.Close()
		close(stop)
		<-done
		if got := w.Kubelet.Last(); got.Path != "/portForward/a/one" {
			t.Errorf("%s: the kubelet was asked %+v", way, got)
		}
	}
}

// locked is a buffer for several goroutines.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String is what was written.
func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// upgrade is the header of an upgrade to SPDY.
func upgrade() http.Header {
	return http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"SPDY/3.1"}, "X-Stream-Protocol-Version": {"v4.channel.k8s.io"},
	}
}

// webSocket is the header of an upgrade to a websocket.
func webSocket() http.Header {
	return http.Header{
		"Connection": {"keep-alive, Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
		"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}, "Sec-Websocket-Protocol": {"v5.channel.k8s.io"},
	}
}

// TestRefusals: each answer names what is wrong, and no kubelet is asked.
func TestRefusals(t *testing.T) {
	w := podstest.New(t, nil)
	w.Deny("bob get pods/log")
	w.Deny("bob create pods/exec")
	w.Deny("bob create pods/attach")
	w.Deny("bob create pods/portforward")
	const run = "/exec?command=cat&stdout=1"
	for _, c := range []struct {
		user, method, path string
		header             http.Header
		code               int
		text               string
	}{
		{"alice", "GET", at + "two/log", nil, 400, "choose one of: [early main side]"},
		{"alice", "GET", at + "two/log?container=other", nil, 400, "container other is not valid for pod two"},
		{"alice", "POST", at + "two" + run, upgrade(), 400, "a container name must be specified for pod two"},
		{"alice", "POST", at + "one" + run + "&container=..%2f..%2fx", upgrade(), 400, "is not valid for pod one"},
		{"alice", "GET", at + "none/log", nil, 404, `pods "none" not found`},
		{"alice", "GET", "/api/v1/namespaces/b/pods/one/log", nil, 404, `pods "one" not found`},
		{"alice", "GET", at + "waiting/log", nil, 400, "no node runs it yet"},
		{"alice", "POST", at + "waiting/portforward", upgrade(), 400, "no node runs it yet"},
		{"alice", "GET", at + "cloud/log", nil, 502, "node control-1: it is of no pool"},
		{"alice", "POST", at + "cloud" + run, upgrade(), 502, "node control-1: it is of no pool"},
		{"alice", "GET", at + "gone/log", nil, 404, `nodes "gone-1" not found`},
		{"alice", "GET", at + "one/log?tailLines=x", nil, 400, "tailLines"},
		{"alice", "GET", at + "one/log?tailLines=-1", nil, 422, "must be 0 or more"},
		{"alice", "GET", at + "one/log?sinceSeconds=0", nil, 422, "must be 1 or more"},
		{"alice", "GET", at + "one/log?sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z", nil, 422, "at most one of"},
		{"alice", "GET", at + "one/log?limitBytes=0", nil, 422, "must be 1 or more"},
		{"alice", "GET", at + "one/log?stream=x", nil, 422, "stream"},
		{"alice", "GET", at + "one/log?insecureSkipTLSVerifyBackend=true", nil, 422, "verifies the certificates"},
		{"alice", "GET", at + "one/log?%zz", nil, 400, "invalid URL escape"},
		{"alice", "POST", at + "one/portforward?ports=x", upgrade(), 400, "ports"},
		{"alice", "POST", at + "one" + run, nil, 400, "Upgrade request required"},
		{"alice", "POST", at + "one/log", nil, 405, "POST is not supported"},
		{"alice", "HEAD", at + "one/log", nil, 405, ""},
		{"alice", "PUT", at + "one" + run, upgrade(), 405, "PUT is not supported"},
		{"alice", "DELETE", at + "one" + run, upgrade(), 405, "DELETE is not supported"},
		{"bob", "GET", at + "one/log", nil, 403, `"bob" cannot get resource "pods/log"`},
		{"bob", "POST", at + "one" + run, upgrade(), 403, `"bob" cannot create resource "pods/exec"`},
		{"bob", "GET", at + "one" + run, webSocket(), 403, `"bob" cannot create resource "pods/exec"`},
		{"bob", "GET", at + "none" + run, webSocket(), 403, `"bob" cannot create resource "pods/exec"`},
		{"bob", "GET", at + "one/attach?stdout=1", webSocket(), 403, `"bob" cannot create resource "pods/attach"`},
		{"bob", "GET", at + "one/portforward", webSocket(), 403, `cannot create resource "pods/portforward"`},
		{"", "GET", at + "one/log", nil, 401, "Unauthorized"},
	} {
		code, text := said(t, w, c.user, c.method, c.path, c.header)
		if code != c.code || !strings.Contains(text, c.text) || strings.Contains(text, "\n") && code != 401 {
			t.Errorf("%s %s %s: %d, %s\nwant %d, %s", c.user, c.method, c.path, code, text, c.code, c.text)
		}
	}
	if n := w.Kubelet.Asked(); n > 0 {
		t.Errorf("the kubelet was asked %d times: %+v", n, w.Kubelet.Last())
	}
}

// TestPaths: what is asked of the kubelet is the pod that kube-apiserver was asked about, or nothing.
func TestPaths(t *testing.T) {
	w := podstest.New(t, nil)
	for _, path := range []string{
		at + "..%2fpods%2fone/log", at + "one%2f..%2ftwo/log", at + "one/log/", at + "one/log/x", at + "one/log%2fx",
		at + "one//log", at + "/one/log", at + "%2e%2e/log", at + "one/exec/..%2flog", at + "one", at + "one/status",
		at + "one/proxy/log", "/api/v1/pods/one/log", "/api/v1/watch/namespaces/a/pods/one/log", "/api/v1/nodes/edge-1/proxy",
		"/apis/v1/namespaces/a/pods/one/log", "/api/v2/namespaces/a/pods/one/log", "/api/v1/namespaces//pods/one/log",
		"/api/v1/namespaces/a%2fpods%2fone/log", "/api/v1/proxy/namespaces/a/pods/one/log", "/exec/a/one/main",
		"/api/v1/namespaces/a/pods/one%00/log", at + "one%23/log", at + "one%3f/log", at + "One/log",
	} {
		w.Asked()
		before := w.Kubelet.Asked()
		code, text := said(t, w, "alice", http.MethodGet, path, nil)
		asked := w.Asked()
		if got := w.Kubelet.Last(); w.Kubelet.Asked() > before {
			same := []string{at + "one/log/", "/api/v1/namespaces/a%2fpods%2fone/log"} // decoded they are those of the pod
			if !slices.Contains(same, path) || got.Path != "/containerLogs/a/one/main" ||
				!slices.Equal(asked, []string{"alice get pods/log a/one"}) {
				t.Errorf("%s: %d, asked about %q, and the kubelet %+v", path, code, asked, got)
			}
			continue
		}
		if code < 300 || code >= 500 {
			t.Errorf("%s: %d, %s", path, code, text)
		}
	}
}

// TestWhatKubeletsSee: nothing of the caller goes to a kubelet but what he asks for.
func TestWhatKubeletsSee(t *testing.T) {
	w := podstest.New(t, nil)
	w.Kubelet.Before = func(rw http.ResponseWriter, _ *http.Request) bool {
		http.Error(rw, "seen", http.StatusTeapot)
		return true
	}
	for name, c := range map[string]struct {
		method, path string
		header       http.Header
		want         []string
	}{
		"logs": {"GET", at + "one/log", http.Header{}, []string{"Connection", "User-Agent"}},
		"SPDY": {
			"POST", at + "one/exec?command=cat&stdout=1", upgrade(),
			[]string{"Connection", "Content-Length", "Upgrade", "User-Agent", "X-Stream-Protocol-Version"},
		},
		"a websocket": {
			"GET", at + "one/exec?command=cat&stdout=1", webSocket(), []string{
				"Connection", "Sec-Websocket-Key", "Sec-Websocket-Protocol", "Sec-Websocket-Version", "Upgrade", "User-Agent",
			},
		},
	} {
		for h, value := range map[string]string{
			"Impersonate-User": "carol", "Impersonate-Group": "system:masters", "Impersonate-Extra-Scopes": "all",
			"Impersonate-Uid": "1", "Cookie": "a=b", "X-Forwarded-For": "203.0.113.9", "X-Forwarded-Host": "h",
			"X-Remote-User": "carol", "X-Remote-Group": "system:masters", "Proxy-Authorization": "Basic YTpi",
			"Te": "trailers", "Keep-Alive": "timeout=5", "Origin": "https://evil.example", "Forwarded": "for=1.2.3.4",
			"Referer": "https://evil.example", "Accept": "*/*", "X-Anything": "1", "Range": "bytes=0-1",
		} {
			c.header.Set(h, value)
		}
		if c.header.Get("Upgrade") == "websocket" {
			c.header.Set("Sec-Websocket-Protocol", "base64url.bearer.authorization.k8s.io.YWxpY2U, v5.channel.k8s.io")
		}
		resp := ask(t, w, "alice", c.method, c.path, c.header)
		text, _ := io.ReadAll(resp.Body)
		got := w.Kubelet.Last()
		var names []string
		for h, values := range got.Header {
			names = append(names, h)
			for _, v := range values {
				if strings.Contains(v, "alice") || strings.Contains(v, "carol") || strings.Contains(v, "bearer") {
					t.Errorf("%s: the kubelet is shown %s: %s", name, h, v)
				}
			}
		}
		slices.Sort(names)
		if resp.StatusCode != http.StatusTeapot || !slices.Equal(names, c.want) {
			t.Errorf("%s: %d, %s: the kubelet is shown %q, want %q", name, resp.StatusCode, text, names, c.want)
		}
		if got.Host != podstest.KubeletAddress || got.User != "weir:gate" {
			t.Errorf("%s: the kubelet is called as %s, by %s", name, got.Host, got.User)
		}
	}
	for _, a := range w.Asked() {
		if !strings.HasPrefix(a, "alice impersonate") && !strings.HasPrefix(a, "carol ") {
			t.Errorf("asked about %s: it was in the name of carol", a)
		}
	}
}

// TestKubeletFails: the caller is told which node, what is wrong, and what to look at.
func TestKubeletFails(t *testing.T) {
	answer := func(code int, text string) func(*podstest.World, *gate.PodsConfig) {
		return func(w *podstest.World, _ *gate.PodsConfig) {
			w.Kubelet.Before = func(rw http.ResponseWriter, _ *http.Request) bool {
				http.Error(rw, text, code)
				return true
			}
		}
	}
	dial := func(err error) func(*podstest.World, *gate.PodsConfig) {
		return func(_ *podstest.World, c *gate.PodsConfig) {
			c.Dial = func(context.Context, *corev1.Node, string) (net.Conn, error) { return nil, err }
		}
	}
	for name, c := range map[string]struct {
		change func(*podstest.World, *gate.PodsConfig)
		code   int
		text   []string
	}{
		"it forbids":                {answer(403, "Forbidden"), 502, []string{"node edge-1", "weir:gate:kubelets"}},
		"it does not know the gate": {answer(401, "Unauthorized"), 502, []string{"node edge-1", "--client-ca-file"}},
		"it has no such pod":        {answer(404, "pod does not exist"), 404, []string{"pod does not exist"}},
		"it fails":                  {answer(500, "containerd is gone"), 500, []string{"containerd is gone"}},
		"it leads elsewhere": {func(w *podstest.World, _ *gate.PodsConfig) {
			w.Kubelet.Before = func(rw http.ResponseWriter, req *http.Request) bool {
				http.Redirect(rw, req, "https://192.0.2.1/", http.StatusFound)
				return true
			}
		}, 502, []string{"302"}},
		"it is away": {func(w *podstest.World, _ *gate.PodsConfig) { w.Kubelet.Stop() }, 502, []string{
			"does not reach node edge-1", "look whether the node runs",
		}},
		"it says nothing": {func(w *podstest.World, c *gate.PodsConfig) {
			c.AnswerWithin = 100 * time.Millisecond
			w.Kubelet.Before = func(_ http.ResponseWriter, req *http.Request) bool {
				<-req.Context().Done()
				return true
			}
		}, 502, []string{"node edge-1", "has not answered in 100ms"}},
		"nothing connects": {func(_ *podstest.World, c *gate.PodsConfig) {
			c.DialWithin = 100 * time.Millisecond
			c.Dial = func(ctx context.Context, _ *corev1.Node, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		}, 502, []string{"no connection to its kubelet in 100ms"}},
		"another authority": {func(w *podstest.World, c *gate.PodsConfig) {
			other := podstest.New(t, nil)
			c.CAFile = other.CAFile
		}, 502, []string{"--kubelet-certificate-authority"}},
		"no leader": {dial(&reverse.Error{Kind: reverse.NoWay, Pool: "harbour"}), 502, []string{
			"pool harbour", "no hub of the pool is connected", "kubectl weir status",
		}},
		"the pool is busy": {dial(&reverse.Error{Kind: reverse.Busy, Pool: "harbour"}), 502, []string{"end one of"}},
		"kube-apiserver is away": {func(w *podstest.World, _ *gate.PodsConfig) {
			w.Fail(errors.New("connection refused"))
		}, 503, []string{"cannot get Pod a/one from kube-apiserver: connection refused"}},
		"the gate may not": {func(w *podstest.World, _ *gate.PodsConfig) {
			w.Fail(apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "one", errors.New("no")))
		}, 503, []string{"may not get Pod a/one", "gate.pods.enabled=true"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := podstest.New(t, c.change)
			for path, header := range map[string]http.Header{
				at + "one/log": nil, at + "one/exec?command=cat&stdout=1": webSocket(), at + "one/portforward": webSocket(),
			} {
				code, text := said(t, w, "alice", http.MethodGet, path, header)
				if code != c.code {
					t.Errorf("%s: %d, %s", path, code, text)
				}
				for _, want := range c.text {
					if !strings.Contains(text, want) {
						t.Errorf("%s: %d, %s: want %s", path, code, text, want)
					}
				}
			}
		})
	}
}

// TestUnverified: a kubelet of any authority is taken where no authority is configured, as by kube-apiserver.
func TestUnverified(t *testing.T) {
	w := podstest.New(t, func(_ *podstest.World, c *gate.PodsConfig) { c.CAFile = "" })
	if code, text := said(t, w, "alice", http.MethodGet, at+"one/log?insecureSkipTLSVerifyBackend=1", nil); code != 200 {
		t.Errorf("%d, %s", code, text)
	}
}

// TestToken: a token is what the kubelet sees where there is no certificate.
func TestToken(t *testing.T) {
	w := podstest.New(t, func(_ *podstest.World, c *gate.PodsConfig) {
		c.CertFile, c.KeyFile, c.Token = "", "", func() (string, error) { return "of-the-gate", nil }
	})
	code, text := said(t, w, "alice", http.MethodGet, at+"one/log", nil)
	if got := w.Kubelet.Last(); code != 200 || got.User != "token of-the-gate" {
		t.Errorf("%d, %s: %+v", code, text, got)
	}
	var out bytes.Buffer
	q := url.Values{"stdout": {"true"}, "command": {"echo", "a"}}
	for _, way := range ways {
		out.Reset()
		err := executor(t, w, way, "alice", at+"one/exec", q).StreamWithContext(t.Context(),
			remotecommand.StreamOptions{Stdout: &out})
		if got := w.Kubelet.Last(); err != nil || out.String() != "a\n" || got.User != "token of-the-gate" {
			t.Errorf("%s: %v, %q: %+v", way, err, &out, got)
		}
	}
}

// TestBounds: one user cannot take all, all cannot take more than there is, and what ends is given back.
func TestBounds(t *testing.T) {
	w := podstest.New(t, func(_ *podstest.World, c *gate.PodsConfig) { c.PerCaller, c.Sum = 2, 3 })
	follow := func(user string) *http.Response {
		resp := ask(t, w, user, http.MethodGet, at+"one/log?follow=1", nil)
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", user, resp.Status)
		}
		return resp
	}
	first := follow("alice")
	follow("alice")
	if code, text := said(t, w, "alice", http.MethodGet, at+"one/log", nil); code != 429 ||
		!strings.Contains(text, "you have") {
		t.Errorf("a third: %d, %s", code, text)
	}
	follow("bob")
	if code, text := said(t, w, "carol", http.MethodGet, at+"one/log", nil); code != 429 ||
		!strings.Contains(text, "callers have") {
		t.Errorf("a fourth of all: %d, %s", code, text)
	}
	_ = first.Body.Close()
	testkit.Until(t, patience, "a slot", func() bool {
		code, _ := said(t, w, "carol", http.MethodGet, at+"one/log", nil)
		return code == http.StatusOK
	})
}

// TestClose: what is under way ends with the Handler.
func TestClose(t *testing.T) {
	w := podstest.New(t, nil)
	resp := ask(t, w, "alice", http.MethodGet, at+"one/log?follow=1", nil)
	in, stdin := io.Pipe()
	heard, stdout := io.Pipe()
	done := make(chan error, 1)
	ran := executor(t, w, "SPDY", "alice", at+"one/exec",
		url.Values{"stdin": {"true"}, "stdout": {"true"}, "command": {"cat"}})
	go func() {
		done <- ran.StreamWithContext(context.Background(), remotecommand.StreamOptions{Stdin: in, Stdout: stdout})
	}()
	// client-go waits for ever if its connection ends while it opens its streams, so they are to be open.
	_, err := stdin.Write([]byte("x"))
	if _, e := io.ReadFull(heard, make([]byte, 1)); err != nil || e != nil {
		t.Fatal(err, e)
	}
	w.Handler.Close()
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the log ends well")
	}
	testkit.Value(t, patience, "the command to end", done)
	_ = in.Close()
	if code, _ := said(t, w, "alice", http.MethodGet, at+"one/log", nil); code != http.StatusServiceUnavailable {
		t.Errorf("%d", code)
	}
}

// TestLine: each request is one line of the log, with what an auditor asks for.
func TestLine(t *testing.T) {
	var lines locked
	w := podstest.New(t, func(_ *podstest.World, c *gate.PodsConfig) {
		c.Logger = slog.New(slog.NewJSONHandler(&lines, nil))
	})
	last := func(n int) map[string]any {
		t.Helper()
		var all []string
		testkit.Until(t, patience, "the line", func() bool {
			all = strings.Split(strings.TrimSpace(lines.String()), "\n")
			return len(all) >= n && all[0] != ""
		})
		if len(all) != n {
			t.Fatalf("%d lines, want %d: %q", len(all), n, all)
		}
		line := map[string]any{}
		check(t, json.Unmarshal([]byte(all[n-1]), &line))
		return line
	}
	holds := func(line map[string]any, want map[string]any) {
		t.Helper()
		for key, value := range want {
			if fmt.Sprint(line[key]) != fmt.Sprint(value) {
				t.Errorf("%s is %v, want %v: %v", key, line[key], value, line)
			}
		}
	}
	said(t, w, "alice", http.MethodGet, at+"one/log", nil)
	line := last(1)
	holds(line, map[string]any{
		"user": "alice", "namespace": "a", "pod": "one", "container": "main", "subresource": "log", "node": "edge-1",
		"code": 200,
	})
	if out, _ := line["out"].(float64); out < 4 || line["duration"] == nil {
		t.Errorf("%v", line)
	}
	said(t, w, "alice", http.MethodGet, at+"cloud/log", nil)
	holds(last(2), map[string]any{"user": "alice", "pod": "cloud", "code": 502})
	q := url.Values{"stdin": {"true"}, "stdout": {"true"}, "command": {"cat", "secret"}}
	check(t, executor(t, w, "websocket", "alice", at+"one/exec", q).StreamWithContext(t.Context(),
		remotecommand.StreamOptions{Stdin: strings.NewReader(strings.Repeat("x", 5000)), Stdout: io.Discard}))
	line = last(3)
	holds(line, map[string]any{"user": "alice", "pod": "one", "subresource": "exec", "code": 101})
	if in, _ := line["in"].(float64); in < 5000 {
		t.Errorf("%v", line)
	}
	if strings.Contains(lines.String(), "secret") {
		t.Errorf("the command is in the log: %s", lines.String())
	}
}

// TestConfig: what a Handler cannot work with is said when it is made.
func TestConfig(t *testing.T) {
	w := podstest.New(t, nil)
	good := gate.PodsConfig{
		Authorizer: nobody{}, Cluster: nothing{}, Dial: w.Dial, CertFile: w.CertFile, KeyFile: w.KeyFile,
	}
	for want, change := range map[string]func(*gate.PodsConfig){
		"":                      func(*gate.PodsConfig) {},
		"required":              func(c *gate.PodsConfig) { c.Dial = nil },
		"that of its key":       func(c *gate.PodsConfig) { c.KeyFile = "" },
		"have to know the gate": func(c *gate.PodsConfig) { c.CertFile, c.KeyFile = "", "" },
		"whose certificate is ver": func(c *gate.PodsConfig) {
			c.CertFile, c.KeyFile, c.Token = "", "", func() (string, error) { return "", nil }
		},
		"bounds are 0":              func(c *gate.PodsConfig) { c.Sum = -1 },
		"client certificate for ku": func(c *gate.PodsConfig) { c.KeyFile = w.CAFile },
		"authority of kubelets":     func(c *gate.PodsConfig) { c.CAFile = w.KeyFile },
	} {
		c := good
		change(&c)
		err := c.Validate()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// nobody and nothing stand where they are not asked.
type (
	nobody  struct{ authorizer.Authorizer }
	nothing struct{ gate.PodsCluster }
)
