package reverse

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
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kubelet is the address of the node of each bed that has a kubelet.
const kubelet = "10.0.0.7:10250"

// authority signs all certificates of a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key, pool: x509.NewCertPool()}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.cert)
	return a
}

func (a *authority) sign(t testing.TB, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, form, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// lines is a log that tests read.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// with are the lines that have a text.
func (l *lines) with(text string) (all []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range strings.Split(l.buf.String(), "\n") {
		if strings.Contains(line, text) {
			all = append(all, line)
		}
	}
	return all
}

// bed is a gate on loopback, with TLS, and what tests connect to it.
type bed struct {
	t      testing.TB
	ca     *authority
	ways   *Ways
	front  *Front
	server *httptest.Server
	log    *lines
	// requests has one of each connection into the pool that a framer was asked for.
	requests chan struct{}

	mu     sync.Mutex
	places map[netip.AddrPort]string // where an address of the pool is on loopback
	conns  []net.Conn                // of leaders, to the gate
}

func newBed(t testing.TB, wc WaysConfig, fc FrontConfig) *bed {
	t.Helper()
	return newBedAt(t, wc, fc, nil)
}

// newBedAt is newBed with a listener of the gate; nil: one on loopback.
func newBedAt(t testing.TB, wc WaysConfig, fc FrontConfig, lis net.Listener) *bed {
	t.Helper()
	b := &bed{
		t: t, ca: newAuthority(t), log: &lines{}, places: map[netip.AddrPort]string{}, requests: make(chan struct{}, 8),
	}
	logger := slog.New(slog.NewTextHandler(b.log, nil))
	if wc.Logger == nil {
		wc.Logger = logger
	}
	if wc.Gap == 0 {
		wc.Gap = -1
	}
	var err error
	if b.ways, err = NewWays(wc); err != nil {
		t.Fatal(err)
	}
	fc.Ways, fc.Logger = b.ways, logger
	if fc.Authorize == nil {
		fc.Authorize = func(req *http.Request, _ Place) (string, error) {
			return req.TLS.PeerCertificates[0].Subject.CommonName, nil
		}
	}
	if fc.Place == nil {
		fc.Place = func(host string) (Place, error) {
			a, _ := netip.ParseAddr(host)
			if !netip.MustParsePrefix("10.0.0.0/24").Contains(a) {
				return Place{}, nil
			}
			return Place{Pool: "harbour", Addr: a}, nil
		}
	}
	if b.front, err = NewFront(fc); err != nil {
		t.Fatal(err)
	}
	b.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodConnect {
			b.front.ServeHTTP(w, req)
			return
		}
		pool, node, ok := strings.Cut(strings.TrimPrefix(req.TLS.PeerCertificates[0].Subject.CommonName,
			contract.HubUserPrefix), ":")
		if !ok || req.URL.Path != contract.ReversePath {
			http.Error(w, "not you", http.StatusForbidden)
			return
		}
		b.ways.Admit(w, req, pool, node)
	}))
	b.server.TLS = &tls.Config{
		Certificates: []tls.Certificate{b.ca.sign(t, "gate")}, ClientCAs: b.ca.pool,
		ClientAuth: tls.RequireAndVerifyClientCert,
	}
	if lis != nil {
		_ = b.server.Listener.Close()
		b.server.Listener = lis
	}
	b.server.EnableHTTP2 = true
	b.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	b.server.StartTLS()
	t.Cleanup(b.close)
	return b
}

func (b *bed) close() {
	b.front.Close()
	b.ways.Close()
	b.server.Close()
}

// addr is where the gate listens.
func (b *bed) addr() string { return b.server.Listener.Addr().String() }

// tls is the configuration of a client of a name.
func (b *bed) tls(name string) *tls.Config {
	return &tls.Config{
		RootCAs: b.ca.pool, Certificates: []tls.Certificate{b.ca.sign(b.t, name)}, ServerName: "127.0.0.1",
	}
}

// place says where an address of the pool is on loopback.
func (b *bed) place(address, at string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.places[netip.MustParseAddrPort(address)] = at
}

// connect is the Connect of leaders in tests: the rule about loopback is left out here, and not in Reach.
func (b *bed) connect(ctx context.Context, a netip.AddrPort) (net.Conn, error) {
	b.mu.Lock()
	at, ok := b.places[a]
	b.mu.Unlock()
	if !ok {
		return nil, errors.New("nothing is there")
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", at)
}

// span is ports of a network.
func span(network string, first, last uint16) Span {
	return Span{Prefix: netip.MustParsePrefix(network), First: first, Last: last}
}

var testReach = Reach{
	Nodes: []netip.Addr{netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("10.0.0.8")},
	Named: []Span{span("10.244.0.0/16", 8080, 8090)},
}

func reaches(r Reach) func(context.Context, string) (Reach, error) {
	return func(context.Context, string) (Reach, error) { return r, nil }
}

// lead runs a leader of the pool harbour until stop is called, and waits until the gate has its connection.
func (b *bed) lead(node string, change func(*LeaderConfig)) (l *Leader, stop func()) {
	b.t.Helper()
	l, stop = b.start(node, change)
	untilT(b.t, "the way through "+node, func() bool { return b.current() == node })
	return l, stop
}

// start runs a leader of the pool harbour until stop is called.
func (b *bed) start(node string, change func(*LeaderConfig)) (l *Leader, stop func()) {
	b.t.Helper()
	as := b.tls(contract.HubUserPrefix + "harbour:" + node)
	c := LeaderConfig{
		Gate: b.addr(), Reach: reaches(testReach), Connect: b.connect,
		Logger: slog.New(slog.NewTextHandler(b.log, nil)).With("of", node),
		Dial: func(ctx context.Context) (net.Conn, error) {
			conn, err := (&tls.Dialer{Config: as}).DialContext(ctx, "tcp", b.addr())
			if err == nil {
				b.mu.Lock()
				b.conns = append(b.conns, conn)
				b.mu.Unlock()
			}
			return conn, err
		},
	}
	if change != nil {
		change(&c)
	}
	l, err := NewLeader(c)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = l.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	b.t.Cleanup(stop)
	return l, stop
}

// current is the node whose way counts; "": none.
func (b *bed) current() string {
	for _, w := range b.ways.State().Ways {
		if w.Pool == "harbour" && !w.Older {
			return w.Node
		}
	}
	return ""
}

func untilT(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if tt, is := t.(*testing.T); is {
		testkit.Until(tt, time.Minute, what, ok)
	}
}

// listen serves connections at an address of the pool.
func (b *bed) listen(address string, serve func(*net.TCPConn)) {
	b.t.Helper()
	lis, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	b.place(address, lis.Addr().String())
	var all sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	all.Go(func() {
		for {
			c, err := lis.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[c] = true
			mu.Unlock()
			all.Go(func() {
				defer c.Close()
				serve(c.(*net.TCPConn))
			})
		}
	})
	b.t.Cleanup(func() {
		_ = lis.Close()
		mu.Lock()
		for c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
}

// echo says what it hears, and ends when it has heard the end.
func echo(c *net.TCPConn) { _, _ = io.Copy(c, c) }

// dial opens a connection through the pool's way, which is closed at the end of the test.
func (b *bed) dial(address string) net.Conn {
	b.t.Helper()
	c, err := b.ways.Dial(context.Background(), Place{Pool: "harbour"}, address)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.Close() })
	return c
}

// kindOfError is the kind of an error; "": it is none of Error.
func kindOfError(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// says checks that a connection says a text next.
func says(t testing.TB, c io.Reader, want string) {
	t.Helper()
	b := make([]byte, len(want))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != want {
		t.Fatalf("%q, %v: want %q", b, err, want)
	}
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
