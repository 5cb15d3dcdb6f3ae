package testca

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func authority(t *testing.T, name string) *Authority {
	t.Helper()
	a, err := NewAuthority(name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func issue(t *testing.T, a *Authority, r Request) *Pair {
	t.Helper()
	p, err := a.Issue(r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// serve runs a TLS server that answers with the subject of its client.
func serve(t *testing.T, pair *Pair, clients *Authority) string {
	t.Helper()
	cert, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.TLS.PeerCertificates[0].Subject.String())
	}))
	s.Config.ErrorLog = nil
	s.TLS = &tls.Config{
		Certificates: []tls.Certificate{cert}, ClientCAs: clients.Pool(), ClientAuth: tls.RequireAndVerifyClientCert,
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

func get(t *testing.T, url string, servers *Authority, client *Pair) (string, error) {
	t.Helper()
	kubeconfig, err := Kubeconfig(url, servers.CertPEM(), client, "")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	resp, err := c.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func TestMutualTLSByKubeconfig(t *testing.T) {
	servers, clients := authority(t, "servers"), authority(t, "clients")
	url := serve(t, issue(t, servers, Request{CommonName: "cloud", Hosts: []string{"127.0.0.1", "localhost"}}), clients)
	hub := Request{
		CommonName: "system:node:edge-1", Organizations: []string{"system:nodes", "openyurt:yurthub"}, Client: true,
	}

	got, err := get(t, url, servers, issue(t, clients, hub))
	if err != nil {
		t.Fatal(err)
	}
	if want := "CN=system:node:edge-1,O=system:nodes+O=openyurt:yurthub"; got != want {
		t.Errorf("subject %q, want %q", got, want)
	}
	if _, err := get(t, url, servers, issue(t, servers, hub)); err == nil {
		t.Error("a client certificate of another authority was accepted")
	}
	if _, err := get(t, url, clients, issue(t, clients, hub)); err == nil {
		t.Error("a server certificate of another authority was accepted")
	}
	if _, err := get(t, url, servers,
		issue(t, clients, Request{CommonName: "system:node:edge-1", Hosts: []string{"edge-1"}})); err == nil {
		t.Error("a server certificate was accepted as a client's")
	}
}

func TestIssueNeedsAPurpose(t *testing.T) {
	if _, err := authority(t, "a").Issue(Request{CommonName: "x"}); err == nil {
		t.Error("want an error")
	}
}

func TestFilesArePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	cert, key, err := issue(t, authority(t, "a"), Request{CommonName: "x", Client: true}).Write(dir, "client")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{cert, key} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
	}
	if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("files left in the folder: %v, %v", entries, err)
	}
}

func TestKubeconfigTakesOneCredential(t *testing.T) {
	ca := authority(t, "a")
	pair := issue(t, ca, Request{CommonName: "x", Client: true})
	if _, err := Kubeconfig("https://h", ca.CertPEM(), nil, ""); err == nil {
		t.Error("none: want an error")
	}
	if _, err := Kubeconfig("https://h", ca.CertPEM(), pair, "t"); err == nil {
		t.Error("both: want an error")
	}
	data, err := Kubeconfig("https://h", ca.CertPEM(), nil, "t0ken")
	if err != nil || !strings.Contains(string(data), "token: t0ken") {
		t.Errorf("%v:\n%s", err, data)
	}
}
