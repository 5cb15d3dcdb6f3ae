package coordinator_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator"
	"github.com/weir-edge/weir/impl/coordinator/store"
	"github.com/weir-edge/weir/impl/credential"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/scope"
	"github.com/weir-edge/weir/impl/source/hop"
	"github.com/weir-edge/weir/impl/testkit"
	"github.com/weir-edge/weir/impl/trust"
)

// asCommand makes the test binary be weir-coordinator, for tests that need a process to kill.
const asCommand = "WEIR_TEST_COORDINATOR"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		cli.Main("weir-coordinator", coordinator.Run)
		os.Exit(0)
	}
	// Two controllers of k8s.io/apiserver's certificates never shut their queues down, and close what watches their files
	// when they please, with what reads them.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/fsnotify/fsnotify.(*inotify).Close"),
		goleak.IgnoreAnyFunction("github.com/fsnotify/fsnotify.(*inotify).readEvents"),
		goleak.IgnoreTopFunction("k8s.io/client-go/util/workqueue.(*delayingType[...]).waitingLoop"),
		goleak.IgnoreTopFunction("k8s.io/client-go/util/workqueue.(*Typed[...]).updateUnfinishedWorkLoop"))
}

const patience = time.Minute

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	testkit.Until(t, patience, what, ok)
}

// authority signs the certificates of one pool.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert, a.key, a.pem, _ = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "pool"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotAfter: time.Now().Add(24 * time.Hour),
	})
	return a
}

func (a *authority) sign(template *x509.Certificate) (cert *x509.Certificate, key *ecdsa.PrivateKey, certPEM,
	keyPEM []byte) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(a.t, err)
	template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62))
	check(a.t, err)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	if template.NotBefore.IsZero() {
		template.NotBefore = time.Now().Add(-time.Hour)
	}
	parent, signer := template, key
	if a.cert != nil {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	check(a.t, err)
	cert, err = x509.ParseCertificate(der)
	check(a.t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	check(a.t, err)
	return cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

func (a *authority) client(user string, groups ...string) (certPEM, keyPEM []byte) {
	_, _, certPEM, keyPEM = a.sign(&x509.Certificate{
		Subject: pkix.Name{
			CommonName: user, Organization: groups,
		}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return certPEM, keyPEM
}

func (a *authority) server() (certPEM, keyPEM []byte) {
	_, _, certPEM, keyPEM = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "coordinator"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return certPEM, keyPEM
}

func write(t testing.TB, path string, data []byte) string {
	t.Helper()
	check(t, os.WriteFile(path, data, 0o600))
	return path
}

// keep replaces a file by a key and its certificate, in one step, as the hub of a node does.
func keep(t testing.TB, file string, cert, key []byte) {
	t.Helper()
	check(t, os.Rename(write(t, file+".tmp", slices.Concat(key, cert)), file))
}

// of is the file of a certificate of the coordinator.
func (p *pool) of(k pki.Kind) string { return credential.KeptFile(p.config.CertificatesDir, k) }

// caFile is that of the pool's authorities.
func (p *pool) caFile() string { return filepath.Join(p.config.CertificatesDir, trust.CAFile) }

// moveCertificates gives the coordinator a folder of its own for them.
func (p *pool) moveCertificates(dir string) {
	p.t.Helper()
	check(p.t, os.CopyFS(dir, os.DirFS(p.config.CertificatesDir)))
	p.config.CertificatesDir = dir
}

// pool is a coordinator's surroundings: its authority and its files.
type pool struct {
	t      testing.TB
	ca     *authority
	config coordinator.Config
}

func newPool(t testing.TB) *pool {
	t.Helper()
	return newPoolOf(t, newAuthority(t))
}

func newPoolOf(t testing.TB, ca *authority) *pool {
	t.Helper()
	dir := t.TempDir()
	cert, key := ca.server()
	level := slog.LevelWarn
	if testing.Verbose() {
		level = slog.LevelDebug
	}
	certificates := t.TempDir()
	keep(t, credential.KeptFile(certificates, pki.Coordinator), cert, key)
	write(t, filepath.Join(certificates, trust.CAFile), ca.pem)
	return &pool{t: t, ca: ca, config: coordinator.Config{
		NodePoolName: "p", BindAddress: "127.0.0.1", DataDir: filepath.Join(dir, "data"), FreshWithin: 30 * time.Second,
		RingBytes: 1 << 20, RingAge: time.Minute,
		PoolScopeResources: []string{"endpoints.v1.", "endpointslices.v1.discovery.k8s.io"},
		CertificatesDir:    certificates,
		Logger:             slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: level})),
	}}
}

// server is a running coordinator.
type server struct {
	*pool
	url  *url.URL
	stop func() // waits until it has ended
}

// start runs a coordinator in this process until the test ends or stop is called.
func (p *pool) start() *server {
	p.t.Helper()
	c, err := coordinator.New(p.config)
	check(p.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	s := &server{pool: p, url: &url.URL{Scheme: "https", Host: c.Addr().String()}}
	stopped := false
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			if err != nil {
				p.t.Errorf("coordinator: %v", err)
			}
		case <-time.After(patience):
			p.t.Error("the coordinator does not end")
		}
	}
	p.t.Cleanup(s.stop)
	anybody := s.as("")
	eventually(p.t, "a healthy coordinator", func() bool {
		code, _, err := anybody.do(http.MethodGet, "/healthz", "")
		return err == nil && code == http.StatusOK
	})
	return s
}

func (s *server) hub(node string) *caller {
	c := s.as(contract.NodeUserPrefix+node, contract.HubGroup, contract.PoolGroupPrefix+"p")
	c.pool, c.node = s.pool, node
	return c
}

// edge is what a node's hub shows to its pool.
type edge struct {
	*hop.Server
	relays  *scope.Set
	http    *httptest.Server
	freezer *freezer
	address string
}

// show shows relays as the hub of a node does.
func (p *pool) show(node string, relays ...*relay.Relay) *edge {
	p.t.Helper()
	return p.showAt(nil, node, relays...)
}

// showBack shows relays as the hub of a node does to which nobody can connect.
func (s *server) showBack(node string, relays ...*relay.Relay) *edge {
	s.t.Helper()
	pair, roots := s.pool.hubPair(node), x509.NewCertPool()
	roots.AddCert(s.ca.cert)
	to := tls.Dialer{
		Config: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13},
	}
	return s.pool.showAt(hop.NewListener(func(ctx context.Context) (net.Conn, context.Context, error) {
		conn, err := to.DialContext(ctx, "tcp", s.url.Host)
		return conn, context.Background(), err
	}, clock.RealClock{}, slog.New(slog.DiscardHandler)), node, relays...)
}

func (p *pool) hubPair(node string) tls.Certificate {
	p.t.Helper()
	pair, err := tls.X509KeyPair(p.ca.client(contract.NodeUserPrefix+node, contract.HubGroup,
		contract.PoolGroupPrefix+"p"))
	check(p.t, err)
	return pair
}

func (p *pool) showAt(l net.Listener, node string, relays ...*relay.Relay) *edge {
	p.t.Helper()
	pair := p.hubPair(node)
	e := &edge{relays: scope.NewSet(relays...)}
	e.Server = hop.NewServer(node, e.relays.All, clock.RealClock{})
	e.http = httptest.NewUnstartedServer(e.Server)
	if l != nil {
		_ = e.http.Listener.Close()
		e.http.Listener = l
	}
	e.freezer = &freezer{Listener: e.http.Listener, frozen: make(chan struct{})}
	e.http.Listener = e.freezer
	e.http.EnableHTTP2 = true
	e.http.Config.ErrorLog = log.New(io.Discard, "", 0)
	e.http.TLS = &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13,
	}
	e.http.StartTLS()
	p.t.Cleanup(e.die)
	e.address = e.http.Listener.Addr().String()
	return e
}

// freezer is a listener whose connections can stand still: nothing is read or written any more.
type freezer struct {
	net.Listener
	frozen chan struct{}
}

type frozenConn struct {
	net.Conn
	frozen, closed chan struct{}
	once           sync.Once
}

func (f *freezer) Accept() (net.Conn, error) {
	c, err := f.Listener.Accept()
	return &frozenConn{Conn: c, frozen: f.frozen, closed: make(chan struct{})}, err
}

func (c *frozenConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

func (c *frozenConn) Write(p []byte) (int, error) {
	select {
	case <-c.frozen:
		<-c.closed
		return 0, net.ErrClosed
	default:
		return c.Conn.Write(p)
	}
}

// read reports whether the coordinator reads it as the leader.
func (e *edge) read() bool {
	read, _ := e.Read()
	return read
}

// freeze is what SIGSTOP does, and what a black hole does.
func (e *edge) freeze() { close(e.freezer.frozen) }

// die is what the kill of its process does.
func (e *edge) die() {
	_ = e.http.Listener.Close()
	e.http.CloseClientConnections()
	e.http.Close()
}

// show lets a hub show relays: who reads the address that it tells when it is elected reads these.
func (c *caller) show(relays ...*relay.Relay) *edge {
	c.shows = c.pool.show(c.node, relays...)
	return c.shows
}

func (s *server) viewer() *caller {
	return s.as("ann", contract.ViewerGroup, contract.PoolGroupPrefix+"p")
}

// caller is a client with a certificate of its own, or with none.
type caller struct {
	t      testing.TB
	pool   *pool  // of a hub
	node   string // likewise
	shows  *edge  // likewise; nil: nothing yet
	url    *url.URL
	config *rest.Config
	http   *http.Client
}

func (s *server) as(user string, groups ...string) *caller {
	s.t.Helper()
	return s.asIssuedBy(s.ca, user, groups...)
}

func (s *server) asIssuedBy(ca *authority, user string, groups ...string) *caller {
	s.t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(s.ca.cert)
	config := &rest.Config{Host: s.url.String(), TLSClientConfig: rest.TLSClientConfig{CAData: s.ca.pem}, QPS: -1}
	tlsConfig := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}
	if user != "" {
		cert, key := ca.client(user, groups...)
		pair, err := tls.X509KeyPair(cert, key)
		check(s.t, err)
		tlsConfig.Certificates = []tls.Certificate{pair}
		config.CertData, config.KeyData = cert, key
	}
	transport := &http.Transport{TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &caller{t: s.t, url: s.url, config: config, http: &http.Client{Transport: transport}}
}

// do sends a request and returns the answer's code and body.
func (c *caller) do(method, path, body string, headers ...string) (int, string, error) {
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.url.String()+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(answer), err
}

// want sends a request, wants a code and returns the body.
func (c *caller) want(code int, method, path, body string, headers ...string) string {
	c.t.Helper()
	got, answer, err := c.do(method, path, body, headers...)
	check(c.t, err)
	if got != code {
		c.t.Fatalf("%s %s: %d, want %d: %s", method, path, got, code, answer)
	}
	return answer
}

func (c *caller) leases(namespace string) coordinationclient.LeaseInterface {
	c.t.Helper()
	client, err := coordinationclient.NewForConfig(c.config)
	check(c.t, err)
	return client.Leases(namespace)
}

// state is what GET contract.StatusPath says.
type state struct {
	Pool, Incarnation, Leader, Term string
	Ready                           bool
	Resources                       []resourceState
	UnknownResources, IdleResources []string
	Replica, Fed                    string
	Doubt                           *contract.Doubt
	Hubs                            int
	Etcd                            store.Space
}

type resourceState struct {
	Resource           string
	Synced, Ready      bool
	Version, Oldest    uint64
	Objects, Watchers  int
	History            uint64
	Bytes              int64
	ProgressAgeSeconds *float64
	FreshAt            time.Time
	Restored           bool
	Feeder, From       string
	Denied             string
}

func (c *caller) state() (s state) {
	c.t.Helper()
	d := json.NewDecoder(bytes.NewReader([]byte(c.want(http.StatusOK, http.MethodGet, contract.StatusPath, ""))))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		c.t.Fatal(err)
	}
	return s
}

// elect makes a hub the leader by its own hands and returns its term.
func (c *caller) elect(identity string) contract.Term {
	c.t.Helper()
	if c.shows == nil {
		c.show()
	}
	return c.electAt(identity, c.shows.address)
}

func (c *caller) electAt(identity, address string) contract.Term {
	c.t.Helper()
	told := map[string]string{contract.PoolAddress: address}
	ctx, leases := c.t.Context(), c.leases(contract.LeaseNamespace)
	lease, err := leases.Get(ctx, contract.ElectionLease, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		lease = newLease(contract.ElectionLease, identity)
		lease.Annotations = told
		lease, err = leases.Create(ctx, lease, metav1.CreateOptions{})
	} else if err == nil {
		now := metav1.NowMicro()
		lease.Spec.HolderIdentity, lease.Spec.RenewTime, lease.Annotations = &identity, &now, told
		lease, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	check(c.t, err)
	version, err := wire.ParseVersion(lease.ResourceVersion)
	check(c.t, err)
	return contract.Term{Incarnation: c.state().Incarnation, Version: version}
}

func (s *server) operator() *caller {
	return s.as("eve", contract.OperatorGroup, contract.PoolGroupPrefix+"p")
}

// clear takes the election Lease from its holder, so that others need not wait until it expires.
func (s *server) clear() {
	s.t.Helper()
	s.operator().want(http.StatusOK, http.MethodPatch, leasesPath+"/"+contract.ElectionLease,
		`{"spec":{"holderIdentity":""}}`,
		"Content-Type", "application/merge-patch+json")
}

// newLease lasts as long as a Lease may, so that it does not expire under a test on a busy machine.
func newLease(name, holder string) *coordinationv1.Lease {
	seconds, now := int32(contract.MaxLeaseDuration/time.Second), metav1.NowMicro()
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now,
	}}
}

// leaderRelay is a relay as a leader's hub has it, with one EndpointSlice.
func leaderRelay(t testing.TB, version uint64) *relay.Relay {
	t.Helper()
	res, err := relay.ParseResource("endpointslices.v1.discovery.k8s.io")
	check(t, err)
	r, err := relay.New(relay.Config{Resource: res})
	check(t, err)
	check(t, r.Replace(version, []*wire.Object{slice(t, "one", version)}))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return r
}

func slice(t testing.TB, name string, version uint64) *wire.Object {
	t.Helper()
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID("uid-" + name), ResourceVersion: wire.FormatVersion(version),
			CreationTimestamp: metav1.Unix(1e9, 0),
		},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}},
	}
	raw, err := s.Marshal()
	check(t, err)
	o, err := wire.ParseObject(wire.Protobuf, raw)
	check(t, err)
	return o
}

func put(t testing.TB, r *relay.Relay, name string, version uint64) {
	t.Helper()
	o := slice(t, name, version)
	frame := wire.AppendProtobufFrame(nil, wire.Added, r.Resource().WireKind(), o.Raw)
	check(t, r.Apply(&wire.Event{Type: wire.Added, Object: o, Version: version, Frame: frame}))
}
