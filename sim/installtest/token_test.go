package installtest

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/testkit"
	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/proc/proctest"
)

// iam is the name under which this test binary prints a credential, as the programs do by which clouds know their
// machines.
const iam = "iam"

// The machine's identity, by which its tokens are made, and how long one counts.
const (
	machineKey = "what only this machine and its cloud know"
	tokenLife  = 3 * time.Second
)

// tokenOf is a token of a node that ends.
func tokenOf(node string, end time.Time) string {
	text := node + "." + strconv.FormatInt(end.Unix(), 10)
	sum := hmac.New(sha256.New, []byte(machineKey))
	sum.Write([]byte(text))
	return text + "." + hex.EncodeToString(sum.Sum(nil))
}

// printCredential is the program. What it does stands in the file that its argument names: nothing is as it should be,
// else what goes wrong.
func printCredential() {
	runs, err := os.OpenFile(os.Args[1]+".runs", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, _ = runs.WriteString(".")
		runs.Close()
	}
	switch does, _ := os.ReadFile(os.Args[1]); string(does) {
	case "fails":
		fmt.Fprintln(os.Stderr, "no identity on this machine")
		os.Exit(3)
	case "waits": // for a cloud that is away
		time.Sleep(5 * time.Second)
		os.Exit(1)
	}
	end := time.Now().Add(tokenLife)
	fmt.Printf(`{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":%q,`+
		`"expirationTimestamp":%q}}`, tokenOf(nodeName, end), end.UTC().Format(time.RFC3339))
}

// judgeTokens is what a cloud asks who a token is of, by the webhook of kube-apiserver.
func judgeTokens(t *testing.T) (kubeconfig string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var r authenticationv1.TokenReview
		if err := json.NewDecoder(req.Body).Decode(&r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		name, rest, _ := strings.Cut(r.Spec.Token, ".")
		at, _, _ := strings.Cut(rest, ".")
		seconds, _ := strconv.ParseInt(at, 10, 64)
		if end := time.Unix(seconds, 0); hmac.Equal([]byte(r.Spec.Token), []byte(tokenOf(name, end))) &&
			time.Now().Before(end) {
			r.Status.Authenticated = true
			r.Status.User = authenticationv1.UserInfo{
				Username: contract.NodeUserPrefix + name, Groups: []string{contract.NodesGroup},
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(r)
	}))
	t.Cleanup(s.Close)
	kubeconfig = filepath.Join(t.TempDir(), "webhook")
	check(t,
		os.WriteFile(kubeconfig,
			fmt.Appendf(nil, "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: k, cluster: {server: %q}}]\n"+
				"contexts: [{name: c, context: {cluster: k, user: u}}]\nusers: [{name: u}]\n", s.URL), 0o600))
	return kubeconfig
}

// asKubelet reads the Node through the hub by what the kubelet shows there.
func (s *systemd) asKubelet(flags []string) (int, string) {
	pair, err := tls.LoadX509KeyPair(s.at("/etc/weir/kubelet.pem"), s.at("/etc/weir/kubelet.pem"))
	check(s.t, err)
	ca, err := os.ReadFile(s.at("/etc/weir/node-authority.crt"))
	check(s.t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	_, port, _ := strings.Cut(flags[0], "=")
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{
			RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
		},
	}}
	answer, err := client.Get("https://127.0.0.1:" + port + "/api/v1/nodes/" + nodeName)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	return answer.StatusCode, string(body)
}

// TestTokenNode: a node whose cloud has given its kubelet no certificate joins, by the real commands, at a real
// kube-apiserver that judges tokens which end after seconds. Its hub is the node by the kubelet's program, or by the
// file of a token, and gets another token before one has ended; the kubelet is the node at its hub, also while the
// cloud is away. What goes wrong with the program is one line in the log, and over when it is mended. The node leaves,
// and each file is as it was.
func TestTokenNode(t *testing.T) {
	spawner, progress := proctest.Spawner(t), func(m string) { t.Log(m) }
	binaries, err := cloud.Find(t.Context(), spawner, progress, cloud.KubeAPIServer, cloud.KubeControllerManager)
	check(t, err)
	c, err := cloud.Start(t.Context(), cloud.Config{
		Spawner: spawner, Binaries: binaries, LogDir: t.TempDir(), Progress: progress, Args: []string{
			"--authentication-token-webhook-config-file=" + judgeTokens(t), "--authentication-token-webhook-version=v1",
			"--authentication-token-webhook-cache-ttl=1s",
		},
	})
	check(t, err)
	t.Cleanup(func() { check(t, c.Close()) })
	built, err := parts.Find(t.Context(), spawner, nil, progress, parts.HubCommand, "kubectl-weir")
	check(t, err)
	root := machine(t, c)
	check(t, os.RemoveAll(filepath.Join(root, "/var/lib/kubelet")))
	self, err := os.Executable()
	check(t, err)
	program := filepath.Join(t.TempDir(), iam)
	check(t, os.Symlink(self, program))
	does, file := filepath.Join(filepath.Dir(program), "does"), filepath.Join(t.TempDir(), "token")
	s := newSystemd(t, root)
	join := append([]string{"node", "join", "--pool=harbour", "--hub-binary=" + built[parts.HubCommand]}, ports(t)...)
	run := func(args ...string) string {
		t.Helper()
		return s.weirs(built["kubectl-weir"], args...)
	}
	beats := func(when string) {
		t.Helper()
		heartbeats(t, c, when)
	}
	keepFresh(t, file)
	for name, user := range map[string]string{
		"tokenFile": fmt.Sprintf("tokenFile: %q", file),
		"exec": fmt.Sprintf("exec: {apiVersion: client.authentication.k8s.io/v1, command: %q, args: [%q], "+
			"interactiveMode: IfAvailable}", program, does),
	} {
		conf := filepath.Join(root, "/etc/kubernetes/kubelet.conf")
		text, err := os.ReadFile(conf)
		check(t, err)
		head, _, _ := strings.Cut(string(text), "users:")
		check(t, os.WriteFile(conf, []byte(head+"users:\n- {name: default, user: {"+user+"}}\n"), 0o600))
		s.restart("kubelet.service")
		beats("of a kubelet with " + name)
		before := files(t, root)
		run(join...)
		beats("through the hub with " + name)
		if out := run("node", "status"); !strings.Contains(out, "calls its hub, for good") {
			t.Errorf("status:\n%s", out)
		}
		if name == "exec" {
			s.breaks(does, beats)
			s.isAlone(c, join[4:], does)
			beats("after the cloud was away")
			s.isSigned(c, does, beats)
		}
		run("node", "leave")
		beats("after the node has left")
		same(t, before, files(t, root))
	}
}

// isSigned: the cloud approves and signs what nodes ask for themselves, as kubeadm lets it. From then on the hub is its
// node by a certificate that ends in a day, and the program is run no more.
func (s *systemd) isSigned(c *cloud.Cloud, does string, beats func(string)) {
	s.t.Helper()
	_, err := c.Client().RbacV1().ClusterRoleBindings().Create(s.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "nodes-for-themselves"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: contract.NodesGroup}},
		RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "ClusterRole",
			Name: "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
		},
	}, metav1.CreateOptions{})
	check(s.t, err)
	manager, err := c.ControllerManager(cloud.StockTimers())
	check(s.t, err)
	pair, err := c.CA().Kept()
	check(s.t, err)
	for name, text := range pair {
		check(s.t, os.WriteFile(filepath.Join(manager.Dir, name), text, 0o600))
	}
	log, err := os.Create(filepath.Join(s.t.TempDir(), "kube-controller-manager.log"))
	check(s.t, err)
	s.t.Cleanup(func() { _ = log.Close() })
	p, err := proctest.Spawner(s.t).Start(proc.Spec{
		Name: manager.Name, Path: manager.Path, Dir: manager.Dir, Output: log,
		Args: append(manager.Args, "--controllers=csrapproving,csrsigning",
			"--cluster-signing-cert-file="+filepath.Join(manager.Dir, "tls.crt"), "--cluster-signing-key-file="+
				filepath.Join(manager.Dir, "tls.key")),
	})
	check(s.t, err)
	s.t.Cleanup(p.Kill)
	_, err = s.do([]string{"restart", "weir-hub.service"}) // it asks at once, and minutes apart later
	check(s.t, err)
	var pem []byte
	testkit.Until(s.t, 2*time.Minute, "a certificate of the node", func() bool {
		pem, err = os.ReadFile(s.at("/var/lib/weir-hub/pki/node/kubelet.pem"))
		return err == nil
	})
	leaf, err := tls.X509KeyPair(pem, pem)
	check(s.t, err)
	if life := leaf.Leaf.NotAfter.Sub(leaf.Leaf.NotBefore); leaf.Leaf.Subject.CommonName != contract.NodeUserPrefix+
		nodeName || life > 25*time.Hour {
		s.t.Errorf("a certificate of %s for %s", leaf.Leaf.Subject, life)
	}
	check(s.t, os.WriteFile(does, []byte("fails"), 0o600))
	before, began := s.ran(does), time.Now()
	for time.Since(began) < 3*tokenLife {
		beats("by the certificate")
	}
	if now := s.ran(does); now > before+1 { // one may have been under way
		s.t.Errorf("the program has run %d times more", now-before)
	}
	check(s.t, os.Remove(does))
}

// ran is how often the program has run.
func (s *systemd) ran(does string) int {
	text, _ := os.ReadFile(does + ".runs")
	return len(text)
}

// keepFresh renews the token of a file, as somebody does on such machines.
func keepFresh(t *testing.T, file string) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	write := func() {
		_ = os.WriteFile(file+".new", []byte(tokenOf(nodeName, time.Now().Add(3*tokenLife))), 0o600)
		_ = os.Rename(file+".new", file)
	}
	write()
	go func() {
		defer close(done)
		tick := time.NewTicker(tokenLife / 2)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				write()
			}
		}
	}()
	t.Cleanup(func() { stop(); <-done })
}

// breaks lets tokens end while the program does what it should not, and looks for what the hub says of it.
func (s *systemd) breaks(does string, beats func(string)) {
	s.t.Helper()
	before := s.ran(does)
	testkit.Until(s.t, time.Minute, "three more tokens", func() bool { return s.ran(does) >= before+3 })
	check(s.t, os.WriteFile(does, []byte("fails"), 0o600))
	testkit.Until(s.t, time.Minute, "the hub to say what is wrong", func() bool {
		text, err := os.ReadFile(s.log)
		return err == nil && strings.Contains(string(text), "the node's credential cannot be got") &&
			strings.Contains(string(text), "exit status 3: no identity on this machine")
	})
	check(s.t, os.Remove(does))
	beats("after the program was mended")
	if text, _ := os.ReadFile(s.log); strings.Contains(string(text),
		"edge-1."+strconv.FormatInt(time.Now().Unix()/1000, 10)) {
		s.t.Error("the log has a token")
	}
}

// isAlone: the cloud goes, the program waits for it in vain, and the hub starts again: the kubelet reads what it read
// before, and until the restart its heartbeats are taken.
func (s *systemd) isAlone(c *cloud.Cloud, flags []string, does string) {
	s.t.Helper()
	if code, body := s.asKubelet(flags); code != http.StatusOK {
		s.t.Errorf("%d: %.200s", code, body)
	}
	check(s.t, c.APIServer().Stop(s.t.Context(), time.Minute))
	check(s.t, os.WriteFile(does, []byte("waits"), 0o600))
	alone := func(when string) {
		s.t.Helper()
		why := ""
		testkit.Until(s.t, time.Minute, when+": the Node", func() bool {
			code, body := s.asKubelet(flags)
			if text := fmt.Sprintf("%d: %.200s", code, body); code != http.StatusOK && text != why {
				why = text
				s.t.Logf("%s: %s", when, why)
			}
			return code == http.StatusOK
		})
	}
	alone("while the cloud is away")
	s.heard(s.t)
	_, err := s.do([]string{"restart", "weir-hub.service"})
	check(s.t, err)
	alone("after a restart of the hub")
	check(s.t, c.StartAPIServer(s.t.Context()))
	check(s.t, os.Remove(does))
}
