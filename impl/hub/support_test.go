package hub

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/credential"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/testkit"
)

// asCommand makes the test binary be weir-hub, for tests that need a process to kill.
const asCommand = "WEIR_TEST_HUB"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		cli.Main("weir-hub", Run)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// authority is a certificate authority of a test.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
	by   time.Duration // how much later than here it is where the authority is
}

// now is the time where the authority is.
func (a *authority) now() time.Time { return time.Now().Add(a.by) }

func newAuthority(t testing.TB, name string) *authority {
	t.Helper()
	return newAuthorityAt(t, name, 0)
}

// newAuthorityAt is one that is in another time.
func newAuthorityAt(t testing.TB, name string, by time.Duration) *authority {
	t.Helper()
	a := &authority{t: t, by: by}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert, a.key, a.pem = a.sign(template)
	return a
}

func (a *authority) sign(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey, []byte) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(a.t, err)
	template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62))
	check(a.t, err)
	if template.NotAfter.IsZero() {
		template.NotAfter = a.now().Add(time.Hour)
	}
	template.NotBefore = a.now().Add(-time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	check(a.t, err)
	cert, err := x509.ParseCertificate(der)
	check(a.t, err)
	return cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// issue returns PEM of a certificate for 127.0.0.1 and a user, and its key.
func (a *authority) issue(user string, groups ...string) (certPEM, keyPEM []byte) {
	a.t.Helper()
	_, key, certPEM := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: user, Organization: groups}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{
			x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth,
		},
	})
	der, err := x509.MarshalPKCS8PrivateKey(key)
	check(a.t, err)
	return certPEM, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// pair is the same in one.
func (a *authority) pair(user string, groups ...string) []byte {
	a.t.Helper()
	cert, key := a.issue(user, groups...)
	return append(key, cert...)
}

func (a *authority) tls(user string, groups ...string) tls.Certificate {
	a.t.Helper()
	c, err := tls.X509KeyPair(a.issue(user, groups...))
	check(a.t, err)
	return c
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// files writes named files into a folder.
func write(t testing.TB, dir string, files map[string][]byte) {
	t.Helper()
	for name, data := range files {
		check(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
}

// bed is a hub in front of a cloud.
type bed struct {
	t      testing.TB
	dir    string
	ca     *authority // of the cloud: its server, nodes
	local  *authority // of the hub's own serving certificate, and of the pool
	clouds []*fakeCloud
	config Config
	hub    *Hub
	log    *logBuffer
	wrap   func(*exec.Cmd) // what else a process needs; nil: nothing
	stop   func()          // the hub that runs
}

// newBed prepares a hub; change it before start.
func newBed(t testing.TB, clouds int) *bed { return newBedAt(t, clouds, 0) }

// newBedAt prepares a hub in a world of another time.
func newBedAt(t testing.TB, clouds int, by time.Duration) *bed {
	t.Helper()
	b := &bed{
		t: t, dir: t.TempDir(), ca: newAuthorityAt(t, "cloud", by), local: newAuthorityAt(t, "pool", by), log: &logBuffer{},
	}
	for range clouds {
		c := newFakeCloud(t, b.ca)
		c.signs, b.clouds = b.local, append(b.clouds, c)
		c.signer.signs(b.ca, b.local)
	}
	b.credentials("edge-1")
	path := func(name string) string { return filepath.Join(b.dir, name) }
	b.config = Config{
		NodeName: "edge-1", NodePoolName: "pool-a", DataDir: path("data"), EtcDir: b.dir,
		Cloud: Cloud{CloudClientCertFile: path("cloud.pem")},
		Doors: Doors{
			BindAddress: "127.0.0.1", HealthBindAddress: "127.0.0.1", ClientCAFiles: []string{path(cloudCA)},
		},
		Callers: Callers{CallerRate: 10_000}, // tests have little time
		Relays:  Relays{UpstreamWatchTimeout: 3 * time.Second, PoolScopeResources: slices.Clone(twoResources)},
		Pool: Pool{
			PoolBindAddress: "127.0.0.1", CoordinatorWait: 5 * time.Second,
			LeaderElectLeaseDuration: 3 * time.Second, LeaderElectRenewDeadline: 2 * time.Second,
			LeaderElectRetryPeriod: 200 * time.Millisecond,
		},
		Probes: Probes{
			HeartbeatInterval: 200 * time.Millisecond, HeartbeatTimeout: 200 * time.Millisecond, HeartbeatFailedRetry: 2,
			HeartbeatHealthyThreshold: 1,
		},
		patience: 10 * time.Second, // a server that is gone refuses, or ends connections
		Logger:   slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, c := range b.clouds {
		b.config.CloudServers = append(b.config.CloudServers, c.url())
	}
	return b
}

func (b *bed) credentials(node string) {
	b.t.Helper()
	write(b.t, b.dir, map[string][]byte{
		cloudCA: b.ca.pem, poolCA: b.local.pem, "cloud.pem": b.ca.pair("system:node:"+node, "system:nodes"),
		servingPair: b.local.pair("hub"),
	})
	b.holds(b.ca, pki.HubAtCloud, node, time.Hour)
	b.holds(b.local, pki.Hub, node, time.Hour)
}

// holds puts a certificate where a hub keeps those that it was given. A forwarder's is kept nowhere.
func (b *bed) holds(by *authority, k pki.Kind, node string, life time.Duration) {
	b.t.Helper()
	file := credential.KeptFile(filepath.Join(b.dir, "data", "pki"), k)
	check(b.t, os.MkdirAll(filepath.Dir(file), 0o700))
	p := by.grant(k, pki.Subject{Pool: "pool-a", Node: node}, life)
	check(b.t, os.WriteFile(file, append(p.KeyPEM, p.CertPEM...), 0o600))
}

// grant makes a certificate of the product's own kinds.
func (a *authority) grant(k pki.Kind, s pki.Subject, life time.Duration) *pki.Pair {
	a.t.Helper()
	key, err := pki.EncodeKey(a.key)
	check(a.t, err)
	signer, err := pki.LoadAuthority(a.pem, key)
	check(a.t, err)
	t, err := pki.Must(k).Template(s, a.now(), life)
	check(a.t, err)
	p, err := signer.Issue(t)
	check(a.t, err)
	return p
}

// start runs the hub until the test ends, or until the function returned is called.
func (b *bed) start() (stop func()) {
	b.t.Helper()
	h, err := New(b.config)
	check(b.t, err)
	return b.run(h)
}

func (b *bed) run(h *Hub) (stop func()) {
	b.hub = h
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				b.t.Errorf("hub ended: %v", err)
			}
			if b.t.Failed() {
				b.t.Logf("log of the hub:\n%s", b.log)
			}
		})
	}
	b.t.Cleanup(stop)
	b.stop = stop
	return stop
}

// fed waits until the relays can answer.
func (b *bed) fed() {
	b.t.Helper()
	c := b.client(nil)
	eventually(b.t, "relays to be fed", func() bool {
		resp, _ := get(b.t, c, "http://"+b.hub.HealthAddr().String()+"/readyz")
		return resp.StatusCode == http.StatusOK
	})
}

// unfed takes their source from the relays, and waits until the cloud shows them nothing more.
func (b *bed) unfed() {
	b.t.Helper()
	for _, f := range b.hub.sources.All() {
		f.Use(nil)
	}
	eventually(b.t, "the relays to let go", func() bool {
		for _, r := range b.clouds[0].relays {
			if r.Status().Watchers > 0 {
				return false
			}
		}
		return true
	})
}

func (b *bed) url() string { return "https://" + b.hub.Addr().String() }

// client returns a client of the hub. cert may be nil.
func (b *bed) client(cert *tls.Certificate) *http.Client {
	config := &tls.Config{RootCAs: b.local.pool()}
	if cert != nil {
		config.Certificates = []tls.Certificate{*cert}
	}
	return testClient(b.t, config, true)
}

func testClient(t testing.TB, config *tls.Config, http2 bool) *http.Client {
	tr := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: http2, DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 2 * time.Minute}
}

// get sends a request and reads the answer.
func get(t testing.TB, c *http.Client, url string, header ...string) (*http.Response, string) {
	t.Helper()
	return do(t, c, http.MethodGet, url, nil, header...)
}

func do(t testing.TB, c *http.Client, method, url string, body []byte, header ...string) (*http.Response, string) {
	t.Helper()
	var r io.Reader
	if body != nil {
		r = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, r)
	check(t, err)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := c.Do(req)
	check(t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	check(t, err)
	return resp, string(answer)
}

// eventually waits until cond holds.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	testkit.Until(t, time.Minute, what, cond)
}

// logBuffer keeps a log.
type logBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
