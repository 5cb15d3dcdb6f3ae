package managertest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator"
	hubcoordinator "github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/hub/uplink"
	weirpki "github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/trust"
)

// toCloud sends what a hub asks to a kube-apiserver.
type toCloud struct {
	http.RoundTripper
	host *url.URL
}

func (c toCloud) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host = c.host.Scheme, c.host.Host
	return c.RoundTripper.RoundTrip(req)
}

// certified writes the files of a certificate that weir-manager signs for a node.
func (w *world) certified(t *testing.T, dir string, k weirpki.Kind, s weirpki.Subject) (certFile, keyFile string) {
	t.Helper()
	key, name := newKey(t), s.Pool+"-"+string(k)+"-"+s.Node
	send(t, w.as("system:node:"+s.Node, "system:nodes", "system:authenticated"), ask(t, name, k, s, key))
	var r *certificatesv1.CertificateSigningRequest
	w.eventually(t, name+" is signed", func() bool {
		r, _ = w.outcome(t, name, certificatesv1.CertificateApproved)
		return len(r.Status.Certificate) > 0
	})
	der := must(x509.MarshalPKCS8PrivateKey(key))
	return must(weirpki.WriteFile(dir, name+".crt", r.Status.Certificate)),
		must(weirpki.WriteFile(dir, name+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
}

// testTakenBack: from the deletion of a Node at a real kube-apiserver, or its move into another pool, over
// weir-manager, the watch of a hub and a real coordinator, until what the node has open there ends and its requests are
// refused. The hub beside it keeps its stream. A node that was moved gets nothing more in its former pool.
func testTakenBack(t *testing.T, w *world) {
	const pool = "taken"
	w.nodes(t, pool, "t-1", "t-2", "t-3", "t-4")
	label := []byte(`{"metadata":{"labels":{"` + contract.CoordinatorLabel + `":"one"}}}`)
	if _, err := w.client.CoreV1().Nodes().Patch(t.Context(), "t-3", types.MergePatchType, label,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key := w.certified(t, dir, weirpki.Coordinator,
		weirpki.Subject{Pool: pool, Node: "t-3", Name: "one", Hosts: []string{"127.10.0.1"}})
	must(weirpki.WriteFile(dir, "coordinator.pem", slices.Concat(must(os.ReadFile(key)), must(os.ReadFile(cert)))))
	anchors, err := w.client.CoreV1().ConfigMaps(contract.KeyNamespace).Get(t.Context(), "pool-"+pool, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ca := must(weirpki.WriteFile(dir, "ca.crt", []byte(anchors.Data["ca.crt"])))
	c, err := coordinator.New(coordinator.Config{
		NodePoolName: pool, BindAddress: "127.10.0.1", DataDir: filepath.Join(dir, "data"), FreshWithin: 30 * time.Second,
		RingBytes: 1 << 20, RingAge: time.Minute,
		CertificatesDir: dir, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done, at := make(chan error, 3), &url.URL{Scheme: "https", Host: c.Addr().String()}
	go func() { done <- c.Run(ctx) }()

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(must(os.ReadFile(ca)))
	caller := func(certFile, keyFile string) *http.Client {
		pair := must(tls.LoadX509KeyPair(certFile, keyFile))
		tr := &http.Transport{
			ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{
				RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13,
			},
		}
		t.Cleanup(tr.CloseIdleConnections)
		return &http.Client{Transport: tr}
	}
	stolen := caller(w.certified(t, dir, weirpki.Hub, weirpki.Subject{Pool: pool, Node: "t-1"}))
	movedCert, movedKey := w.certified(t, dir, weirpki.Hub, weirpki.Subject{Pool: pool, Node: "t-4"})
	moved := caller(movedCert, movedKey)
	besideCert, besideKey := w.certified(t, dir, weirpki.Hub, weirpki.Subject{Pool: pool, Node: "t-2"})
	beside := caller(besideCert, besideKey)
	get := func(by *http.Client, path string) (*http.Response, error) {
		return by.Do(must(http.NewRequestWithContext(ctx, http.MethodGet, at.String()+path, nil)))
	}
	code := func(by *http.Client) int {
		resp, err := get(by, contract.StatusPath)
		if err != nil {
			return 0
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	w.eventually(t, "all hubs are served", func() bool {
		return code(stolen) == http.StatusOK && code(beside) == http.StatusOK && code(moved) == http.StatusOK
	})
	open := func(by *http.Client) chan struct{} {
		resp, err := get(by, "/apis/coordination.k8s.io/v1/leases?watch=1")
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp, err)
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}()
		return over
	}
	hers, his, theirs := open(stolen), open(beside), open(moved)

	var reload uplink.Reloader
	bundle := must(reload.Bundle("", ca))
	held := trust.NewDenylist(trust.DenylistConfig{
		Pool: pool, Trusted: bundle.List, Logger: slog.New(slog.DiscardHandler),
	})
	both := filepath.Join(dir, "beside.pem")
	text := append(must(os.ReadFile(besideKey)), must(os.ReadFile(besideCert))...)
	if err := os.WriteFile(both, text, 0o600); err != nil {
		t.Fatal(err)
	}
	hub := hubcoordinator.New(hubcoordinator.Config{
		Net: &net.Dialer{}, Servers: hubcoordinator.At(at), Node: "t-2", Roots: bundle,
		Cert: must(reload.Pair("", both)), Denied: held,
		Clock: clock.RealClock{}, Logger: slog.New(slog.DiscardHandler),
	})
	as := w.cloud.RESTConfig()
	as.Impersonate = rest.ImpersonationConfig{
		UserName: "weir:hub:" + pool + ":t-2", Groups: []string{"system:authenticated"},
	}
	cloud := toCloud{must(rest.TransportFor(as)), must(url.Parse(as.Host))}
	go func() {
		held.Share(ctx, clock.RealClock{}, hub.Meet)
		done <- nil
	}()
	go func() {
		held.Follow(ctx, cloud, clock.RealClock{})
		done <- nil
	}()

	ends := func(what string, by *http.Client, stream chan struct{}, leave func() error) {
		t.Helper()
		began := time.Now()
		if err := leave(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-stream:
		case <-time.After(patience):
			t.Fatalf("what the node that is %s has open goes on", what)
		}
		w.eventually(t, "requests of the node that is "+what+" are refused",
			func() bool { return code(by) == http.StatusUnauthorized })
		t.Logf("%s, revoked after %v", what, time.Since(began).Round(time.Millisecond))
	}
	ends("deleted", stolen, hers, func() error {
		return w.client.CoreV1().Nodes().Delete(t.Context(), "t-1", metav1.DeleteOptions{})
	})
	if got := code(moved); got != http.StatusOK {
		t.Errorf("the hub that is still there: %d", got)
	}
	ends("moved", moved, theirs, func() error {
		away := []byte(`{"metadata":{"labels":{"` + contract.NodePoolLabel + `":"taken-not"}}}`)
		_, err := w.client.CoreV1().Nodes().Patch(t.Context(), "t-4", types.MergePatchType, away, metav1.PatchOptions{})
		return err
	})
	if err := held.Refuse(must(weirpki.ParseCertificates(must(os.ReadFile(movedCert))))[0]); err == nil {
		t.Error("a hub of its former pool lets the node in that was moved")
	}
	send(t, w.as("system:node:t-4", "system:nodes", "system:authenticated"),
		ask(t, "moved-asks-again", weirpki.Hub, weirpki.Subject{Pool: pool, Node: "t-4"}, newKey(t)))
	if r, why := w.outcome(t, "moved-asks-again", certificatesv1.CertificateDenied); len(r.Status.Certificate) > 0 ||
		!strings.Contains(why, "weir:pool:taken-not") {
		t.Errorf("in its former pool it is told %s", why)
	}
	there := must(tls.LoadX509KeyPair(w.certified(t, dir, weirpki.Hub, weirpki.Subject{Pool: "taken-not", Node: "t-4"}))).
		Leaf
	if _, err := there.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err ==
		nil {
		t.Error("what it has in its new pool counts in the former one")
	}
	select {
	case <-his:
		t.Error("the stream of the hub beside it ended")
	default:
	}
	if got := code(beside); got != http.StatusOK {
		t.Errorf("the hub beside it: %d", got)
	}
	cancel()
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	hub.Close()
}
