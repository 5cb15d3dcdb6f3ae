package operator

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/gate/podstest"
	"github.com/weir-edge/weir/impl/testkit"
)

const patience = 20 * time.Second

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// bed is a gate, and a kube-apiserver with the pods of podstest.World.
type bed struct {
	*podstest.World
	t          *testing.T
	kubeconfig string
	gate       map[string]string // annotations of the Endpoints of the pool's leader
}

func newBed(t *testing.T) *bed {
	b := &bed{World: podstest.New(t, nil), t: t}
	b.gate = map[string]string{contract.LeaderHubGate: b.URL, contract.LeaderHubGateCA: string(b.CA)}
	kube := httptest.NewTLSServer(http.HandlerFunc(b.answer))
	t.Cleanup(kube.Close)
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{
		Type: "CERTIFICATE", Bytes: kube.Certificate().Raw,
	}))
	b.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(b.kubeconfig, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"a",`+
		`"clusters":[{"name":"a","cluster":{"server":%q,"certificate-authority-data":%q,"tls-server-name":"example.com"}}],`+
		`"contexts":[{"name":"a","context":{"cluster":"a","user":"a","namespace":"a"}}],`+
		`"users":[{"name":"a","user":{"token":"alice"}}]}`, kube.URL, ca), 0o600))
	return b
}

// answer is what kube-apiserver says.
func (b *bed) answer(w http.ResponseWriter, req *http.Request) {
	node := func(name string) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: name}}
		p.Namespace, p.Name = "a", req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:]
		return p
	}
	two := node("edge-1")
	two.Annotations = map[string]string{defaultContainer: "side"}
	var o any
	switch req.URL.Path {
	case "/api/v1/namespaces/a/pods/one":
		o = node("edge-1")
	case "/api/v1/namespaces/a/pods/two":
		o = two
	case "/api/v1/namespaces/a/pods/waiting":
		o = node("")
	case "/api/v1/namespaces/a/pods/cloud":
		o = node("control-1")
	case "/api/v1/namespaces/a/pods/hidden":
		o = node("hidden-1")
	case "/api/v1/nodes/edge-1":
		o = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{contract.NodePoolLabel: "harbour"}}}
	case "/api/v1/nodes/control-1":
		o = &corev1.Node{}
	case "/api/v1/namespaces/kube-system/endpoints/leader-hub-harbour":
		o = &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Annotations: b.gate}}
	default:
		s := metav1.Status{Status: "Failure", Code: 404, Reason: metav1.StatusReasonNotFound, Message: "it is not there"}
		if strings.Contains(req.URL.Path, "hidden") {
			s.Code, s.Reason, s.Message = 403, metav1.StatusReasonForbidden, "forbidden"
		}
		s.Kind, s.APIVersion = "Status", "v1"
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(s.Code))
		_ = json.NewEncoder(w).Encode(s)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	text, _ := json.Marshal(o)
	kind := map[bool]string{true: "Pod"}[strings.Contains(req.URL.Path, "/pods/")]
	if strings.Contains(req.URL.Path, "/nodes/") {
		kind = "Node"
	} else if kind == "" {
		kind = "Endpoints"
	}
	_, _ = fmt.Fprintf(w, `{"apiVersion":"v1","kind":%q,%s`, kind, text[1:])
}

// run runs a command.
func (b *bed) run(ctx context.Context, line ...string) (out, errs string, err error) {
	var stdout, stderr bytes.Buffer
	p := commands.Program{Name: "kubectl weir", About: "is a test.", All: podCommands()}
	rest := []string{"--kubeconfig", b.kubeconfig}
	err = p.Run(ctx, append(append(line[:1:1], rest...), line[1:]...), &stdout, &stderr)
	return stdout.String(), stderr.String(), err
}

// TestLogs: the log of a pod is shown, as it is asked for.
func TestLogs(t *testing.T) {
	b := newBed(t)
	out, _, err := b.run(t.Context(), "logs", "one", "--tail", "5", "--since", "90s", "--previous", "--timestamps")
	if got := b.Kubelet.Last(); err != nil || out != "one\n" || got.Path != "/containerLogs/a/one/main" ||
		got.Query.Encode() != "previous=true&sinceSeconds=90&tailLines=5&timestamps=true" {
		t.Errorf("%q, %v: %+v", out, err, got)
	}
	out, _, err = b.run(t.Context(), "logs", "two")
	if err != nil || b.Kubelet.Last().Path != "/containerLogs/a/two/side" {
		t.Errorf("the container of the annotation: %q, %v: %+v", out, err, b.Kubelet.Last())
	}
	if out, _, err = b.run(t.Context(), "logs", "two", "-c", "main"); err != nil ||
		b.Kubelet.Last().Path != "/containerLogs/a/two/main" {
		t.Errorf("the container that is named: %q, %v: %+v", out, err, b.Kubelet.Last())
	}
	go func() {
		b.Kubelet.Lines <- "two\n"
		close(b.Kubelet.Lines)
	}()
	if out, _, err = b.run(t.Context(), "logs", "-f", "one"); err != nil || out != "one\ntwo\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// TestExec: the command runs, and its exit code is that of weir exec.
func TestExec(t *testing.T) {
	b := newBed(t)
	if out, errs, err := b.run(t.Context(), "exec", "one", "--", "echo", "-c", "a"); err != nil || out != "-c a\n" {
		t.Errorf("%q, %q, %v", out, errs, err)
	}
	out, errs, err := b.run(t.Context(), "exec", "two", "-c", "main", "--", "exit", "3")
	if cli.ExitCode(err) != 3 || errs != "it fails\n" || out != "" {
		t.Errorf("%q, %q, %v", out, errs, err)
	}
	if got := b.Kubelet.Last(); got.Path != "/exec/a/two/main" || got.Method != http.MethodGet {
		t.Errorf("%+v", got)
	}
	r, w, err := os.Pipe()
	must(t, err)
	_, err = io.WriteString(w, "hello")
	must(t, err)
	must(t, w.Close())
	defer r.Close()
	f := &flags{gate: b.URL, ca: b.file()}
	f.ClusterFlags = viewOf(b.kubeconfig)
	to, err := f.find(t.Context(), "one")
	must(t, err)
	var got bytes.Buffer
	err = to.run(t.Context(), &corev1.PodExecOptions{Stdin: true, Stdout: true, Command: []string{"cat"}}, r, &got,
		io.Discard)
	if err != nil || got.String() != "hello" {
		t.Errorf("%q, %v", &got, err)
	}
	err = to.run(t.Context(), &corev1.PodExecOptions{Stdin: true, TTY: true}, r, &got, io.Discard)
	if cli.ExitCode(err) != 2 || !strings.Contains(err.Error(), "where standard input is a terminal") {
		t.Errorf("no terminal: %v", err)
	}
}

// TestOldKubelet: a kubelet that does not take websockets is spoken to by SPDY.
func TestOldKubelet(t *testing.T) {
	b := newBed(t)
	b.Kubelet.Before = func(w http.ResponseWriter, req *http.Request) bool {
		if req.Header.Get("Upgrade") != "websocket" {
			return false
		}
		http.Error(w, "no such protocol", http.StatusForbidden)
		return true
	}
	out, _, err := b.run(t.Context(), "exec", "one", "--", "exit", "3")
	if cli.ExitCode(err) != 3 || b.Kubelet.Last().Method != http.MethodPost {
		t.Errorf("%q, %v: %+v", out, err, b.Kubelet.Last())
	}
}

// TestPortForward: a port of this machine is one of the pod.
func TestPortForward(t *testing.T) {
	b := newBed(t)
	f := &flags{}
	f.ClusterFlags = viewOf(b.kubeconfig)
	to, err := f.find(t.Context(), "one")
	must(t, err)
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	at := free.Addr().String()
	must(t, free.Close())
	_, port, _ := net.SplitHostPort(at)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- to.forward(ctx, []string{"127.0.0.1"}, []string{port + ":80"}, ready, io.Discard, io.Discard)
	}()
	select {
	case <-ready:
	case err := <-done:
		t.Fatal(err)
	}
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at)
	must(t, err)
	defer c.Close()
	_, err = io.WriteString(c, "hello")
	must(t, err)
	said := make([]byte, 5)
	if _, err := io.ReadFull(c, said); err != nil || string(said) != "hello" {
		t.Errorf("%q, %v", said, err)
	}
	cancel()
	if err := testkit.Value(t, patience, "the end", done); err != nil {
		t.Error(err)
	}
}

// TestErrors: each names what to do next, in one line.
func TestErrors(t *testing.T) {
	b := newBed(t)
	b.Deny("alice create pods/exec")
	none := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods \"one\" not found",`+
			`"reason":"NotFound","details":{"name":"one","kind":"pods"},"code":404}`)
	}))
	defer none.Close()
	other := filepath.Join(t.TempDir(), "ca")
	must(t, os.WriteFile(other, pem.EncodeToMemory(&pem.Block{
		Type: "CERTIFICATE", Bytes: none.Certificate().Raw,
	}), 0o600))
	away := httptest.NewTLSServer(http.NotFoundHandler())
	away.Close()
	for _, c := range []struct {
		line string
		code int
		want string
	}{
		{"logs none", 1, "read pod a/none: it is not there"},
		{"logs waiting", 1, "pod a/waiting has no node yet: kubectl -n a describe pod waiting says why"},
		{"logs cloud", 1, "node control-1 is of no pool"},
		{"logs hidden", 1, "you may not read node hidden-1, which says where weir-gate is: name it by --gate"},
		{"logs one -n b", 1, "read pod b/one"},
		{"logs one -c other", 1, "container other is not valid for pod one"},
		{"logs one --gate " + none.URL + " --gate-ca-file " + other, 1, "serves no pods: set gate.pods.enabled"},
		{"exec one --gate " + none.URL + " --gate-ca-file " + other + " -- id", 1, "serves no pods: set gate.pods.enabled"},
		{"logs one --gate " + away.URL, 1, "is not reached"},
		{"logs one --gate " + b.URL, 1, "is not reached: tls: failed to verify certificate"},
		{"logs one --gate " + b.URL + " --gate-ca-file " + b.file(), 0, ""},
		{"logs one --gate http://a", 2, "--gate"},
		{"logs one --gate-ca-file x", 2, "none without --gate"},
		{"logs one --tail -2", 2, "--tail"},
		{"logs one --since 1ms", 2, "--since"},
		{"logs", 2, "logs POD"},
		{"exec one", 2, "POD -- COMMAND"},
		{"exec one id", 2, "POD -- COMMAND"},
		{"exec one -t -- id", 2, "with --stdin"},
		{"exec one -- id", 1, `"alice" cannot create resource "pods/exec"`},
		{"port-forward one", 2, "[LOCAL:]REMOTE"},
		{"port-forward one x", 2, "[LOCAL:]REMOTE"},
	} {
		_, _, err := b.run(t.Context(), strings.Fields(c.line)...)
		text := fmt.Sprint(err)
		if cli.ExitCode(err) != c.code || c.want != "" && !strings.Contains(text, c.want) || strings.Contains(text, "\n") {
			t.Errorf("%s: exit code %d, %s\nwant %d, %s", c.line, cli.ExitCode(err), text, c.code, c.want)
		}
	}
	b.gate = nil
	if _, _, err := b.run(t.Context(), "logs", "one"); err == nil ||
		!strings.Contains(err.Error(), "pool harbour is told of no weir-gate: set gate.enabled") {
		t.Error(err)
	}
}

// viewOf are the flags of a kubeconfig.
func viewOf(kubeconfig string) commands.ClusterFlags {
	f := commands.BindCluster(pflag.NewFlagSet("", pflag.ContinueOnError))
	*f.KubeConfig = kubeconfig
	return f
}

// file has the authority of the gate.
func (b *bed) file() string {
	path := filepath.Join(b.t.TempDir(), "ca")
	must(b.t, os.WriteFile(path, b.CA, 0o600))
	return path
}
