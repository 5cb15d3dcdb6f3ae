package gate

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/testkit"
)

// TestUnknownCallers: until kube-apiserver has said which authorities sign for callers, a hub is not told that it may
// not read. It would believe that for a while. Afterwards it is known by its certificate.
func TestUnknownCallers(t *testing.T) {
	authority, err := pki.NewAuthority("cluster", time.Now(), time.Hour)
	check(t, err)
	var says atomic.Bool
	known := make(chan string, 100) // whom the gate asked about
	kube := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body, _ := io.ReadAll(req.Body)
		switch {
		case strings.HasSuffix(req.URL.Path, "/subjectaccessreviews"):
			var review struct {
				Spec struct{ User string }
			}
			_ = json.Unmarshal(body, &review)
			known <- review.Spec.User
			_, _ = io.WriteString(w, `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{}}`)
		case strings.HasSuffix(req.URL.Path, "/configmaps") && says.Load() && req.URL.Query().Get("watch") == "":
			_ = json.NewEncoder(w).Encode(corev1.ConfigMapList{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"},
				Items: []corev1.ConfigMap{{
					ObjectMeta: metav1.ObjectMeta{
						Namespace: "kube-system", Name: "extension-apiserver-authentication", ResourceVersion: "1",
					},
					Data: map[string]string{"client-ca-file": string(authority.CertPEM())},
				}},
			})
		default:
			http.Error(w, "kube-apiserver starts", http.StatusServiceUnavailable)
		}
	}))
	defer kube.Close()
	dir := t.TempDir()
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		check(t, os.WriteFile(path, data, 0o600))
		return path
	}
	pair := func(p pki.Template) tls.Certificate {
		p.NotBefore, p.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
		issued, err := authority.Issue(p)
		check(t, err)
		file(p.CommonName, append(issued.KeyPEM, issued.CertPEM...))
		c, err := issued.TLS()
		check(t, err)
		return c
	}
	pair(pki.Template{CommonName: "gate", Server: true, Hosts: []string{"127.0.0.1"}})
	ca, err := json.Marshal(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: kube.Certificate().Raw}))
	check(t, err)
	g, err := New(Config{
		Kubeconfig: file("kubeconfig", []byte(`{"apiVersion":"v1","kind":"Config","current-context":"a",`+
			`"clusters":[{"name":"a","cluster":{"server":"`+kube.URL+`","certificate-authority-data":`+string(ca)+`}}],`+
			`"contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],"users":[{"name":"a","user":{"token":"t"}}]}`)),
		BindAddress: "127.0.0.1", TLSCertFile: filepath.Join(dir, "gate"), TLSPrivateKeyFile: filepath.Join(dir, "gate"),
		PoolScopeResources: []string{services}, Linger: time.Hour, FreshWithin: leastFresh,
		Logger: slog.New(slog.DiscardHandler),
	})
	check(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	defer func() {
		cancel()
		check(t, <-done)
	}()
	hub := &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: authority.Pool(), MinVersion: tls.VersionTLS13,
		Certificates: []tls.Certificate{pair(pki.Template{CommonName: "hub", Client: true})},
	}}
	defer hub.CloseIdleConnections()
	get := func(path string) (code int, header http.Header) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+g.Addr().String()+path, http.NoBody)
		check(t, err)
		resp, err := (&http.Client{Transport: hub}).Do(req)
		if err != nil {
			return 0, nil
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, resp.Header
	}
	testkit.Until(t, patience, "the gate to live", func() bool { code, _ := get("/livez"); return code == http.StatusOK })
	if code, header := get("/api/v1/services"); code != http.StatusServiceUnavailable || header.Get("Retry-After") != "5" {
		t.Errorf("a hub that nobody knows yet: %d, Retry-After %q", code, header.Get("Retry-After"))
	}
	if code, _ := get("/readyz"); code == http.StatusOK {
		t.Error("the gate is ready, and knows nobody")
	}
	says.Store(true)
	testkit.Until(t, patience, "the hub to be known", func() bool {
		code, _ := get("/api/v1/services")
		return code == http.StatusForbidden
	})
	if who := testkit.Value(t, patience, "who was asked about", known); who != "hub" {
		t.Errorf("asked about %s", who)
	}
	testkit.Until(t, patience, "the gate to be ready", func() bool {
		code, _ := get("/readyz")
		return code == http.StatusOK
	})
}
