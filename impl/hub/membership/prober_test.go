package membership

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
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
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/connectivity"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/exchange"
	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/hub/pooldoor"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/operator"
	poolv1 "github.com/weir-edge/weir/impl/pool"
	"github.com/weir-edge/weir/impl/role"
)

// authority is that of the pool.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	a := &authority{t: t, key: key}
	a.cert = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "pool"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, time.Now().Add(-time.Hour), key, nil)
	return a
}

func (a *authority) sign(c *x509.Certificate, begin time.Time, key *ecdsa.PrivateKey, by *x509.Certificate,
) *x509.Certificate {
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(1), begin, begin.Add(48*time.Hour)
	if by == nil {
		by = c
	}
	raw, err := x509.CreateCertificate(rand.Reader, c, by, key.Public(), a.key)
	check(a.t, err)
	out, err := x509.ParseCertificate(raw)
	check(a.t, err)
	return out
}

// holder has a certificate of the hub of a node, or of the coordinator ("").
func (a *authority) holder(node string, begin time.Time) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(a.t, err)
	c := &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, Subject: pkix.Name{
		CommonName:   contract.NodeUserPrefix + node,
		Organization: []string{contract.PoolGroupPrefix + "harbour", contract.HubGroup},
	}}
	if node == "" {
		c = &x509.Certificate{
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
			IPAddresses: []net.IP{net.ParseIP("127.0.0.1")}, Subject: pkix.Name{CommonName: "coordinator"},
		}
	}
	signed := a.sign(c, begin, key, a.cert)
	return tls.Certificate{Certificate: [][]byte{signed.Raw}, PrivateKey: key, Leaf: signed}
}

// serve is a real server with a certificate.
func (a *authority) serve(cert tls.Certificate, h http.Handler) string {
	s := httptest.NewUnstartedServer(h)
	s.TLS = &tls.Config{
		Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13,
	}
	s.EnableHTTP2, s.Config.ErrorLog = true, log.New(io.Discard, "", 0)
	s.StartTLS()
	a.t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// gate stands before a port, as a firewall does.
type gate struct {
	t    *testing.T
	addr string

	mu       sync.Mutex
	listener net.Listener
	how      string // digest.X: it is blocked so that this is the cause; "": it is open
	to       map[string]string
}

func newGate(t *testing.T, to map[string]string) *gate {
	g := &gate{t: t, to: to, addr: "127.0.0.1:0"}
	g.open()
	g.addr = g.listener.Addr().String()
	t.Cleanup(func() { g.set(digest.Refused) })
	return g
}

func (g *gate) open() {
	l, err := net.Listen("tcp", g.addr)
	check(g.t, err)
	g.listener = l
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go g.pass(c)
		}
	}()
}

func (g *gate) set(how string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if was := g.how == digest.Refused; was && how != digest.Refused {
		g.open()
	} else if !was && how == digest.Refused {
		_ = g.listener.Close()
	}
	g.how = how
}

// pass lets a connection through, if it may.
func (g *gate) pass(c net.Conn) {
	defer c.Close()
	g.mu.Lock()
	how, to := g.how, g.to[g.how]
	g.mu.Unlock()
	switch how {
	case digest.Mute:
		_, _ = io.Copy(io.Discard, c)
		return
	case digest.Broken:
		return
	}
	if to == "" {
		to = g.to[""]
	}
	there, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer there.Close()
	go func() {
		_, _ = io.Copy(c, there)
		_ = c.Close()
	}()
	if how == digest.Stalls { // a handshake comes through, and nothing of what is large
		_, _ = io.CopyN(there, c, 4<<10)
		_, _ = io.Copy(io.Discard, c)
		return
	}
	_, _ = io.Copy(there, c)
}

// bed is the hub of edge-1, a coordinator, and the hub of edge-2, with a gate before each port.
type bed struct {
	t      *testing.T
	prober *Prober
	clock  *clocktesting.FakeClock
	other  func() // edge-2 tells where it is
}

// calls is the call of a coordinator, over real sockets.
func calls(a *authority, own tls.Certificate) func(context.Context, string, string) (connectivity.Stage, error) {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	return func(ctx context.Context, node, address string) (connectivity.Stage, error) {
		raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return connectivity.Nothing, err
		}
		conn := tls.Client(raw, &tls.Config{
			MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{own},
			CurvePreferences:   []tls.CurveID{tls.X25519},
			InsecureSkipVerify: true, //nolint:gosec // a hub is known by its node
			VerifyConnection: func(s tls.ConnectionState) error {
				if s.PeerCertificates[0].Subject.CommonName != contract.NodeUserPrefix+node {
					return connectivity.ErrStranger
				}
				_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{
					Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
				})
				return err
			},
		})
		if err := conn.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			return connectivity.Connected, err
		}
		return connectivity.Secured, connectivity.Attempt(ctx, conn, contract.StatusPath)
	}
}

// newBed returns the gates by the edges that they block.
func newBed(t *testing.T) (*bed, map[digest.Way]*gate) {
	a, past, soon := newAuthority(t), time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	b := &bed{t: t, clock: clocktesting.NewFakeClock(time.Now())}
	answers := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })
	own := a.holder("", past)
	place := &exchange.CallBacks{Clock: b.clock, Call: calls(a, own), Within: time.Second}
	mux := http.NewServeMux()
	mux.Handle("/healthz", answers)
	mux.Handle("/readyz", answers)
	mux.Handle(contract.ReachPath, place.Handler(pooldoor.Caller))
	hub := func(node string) *gate {
		return newGate(t, map[string]string{
			"":              a.serve(a.holder(node, past), answers),
			digest.Stranger: a.serve(a.holder("edge-9", past), answers),
			digest.Clock:    a.serve(a.holder(node, soon), answers),
		})
	}
	another := newAuthority(t)
	gates := map[digest.Way]*gate{
		digest.ToCoordinator: newGate(t, map[string]string{
			"": a.serve(own, mux), digest.Stranger: another.serve(another.holder("", past), mux),
			digest.Clock: a.serve(a.holder("", soon), mux),
		}),
		digest.FromCoordinator: hub("edge-1"), digest.ToHub: hub("edge-2"),
	}
	_, err := place.Exchange(t.Context(), "edge-2", exchange.CallBackAsk{Address: gates[digest.ToHub].addr})
	check(t, err)
	b.prober = NewProber(ProberConfig{
		Node: "edge-1", Coordinator: client(t, a, gates[digest.ToCoordinator].addr),
		Role: func() role.Role { return role.Follower }, Told: func() string { return gates[digest.FromCoordinator].addr },
		Patience: 2 * time.Second, Clock: b.clock, Logger: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() { // who is silent is told no more
		_, _ = place.Exchange(context.Background(), "edge-2", exchange.CallBackAsk{Address: contract.PoolAddressReverse})
	})
	gone, end := context.WithCancel(t.Context())
	end()
	b.other = func() { // what comes of a call to it is for edge-2 alone
		_, err := place.Exchange(gone, "edge-2", exchange.CallBackAsk{Address: gates[digest.ToHub].addr})
		check(t, err)
	}
	return b, gates
}

func client(t *testing.T, a *authority, at string) *coordinator.Client {
	dir, cert := t.TempDir(), a.holder("edge-1", time.Now().Add(-time.Hour))
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	check(t, err)
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})...)
	check(t, os.WriteFile(filepath.Join(dir, "pem"), text, 0o600))
	check(t, os.WriteFile(filepath.Join(dir, "crt"),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}), 0o600))
	roots, err := new(uplink.Reloader).Bundle("", filepath.Join(dir, "crt"))
	check(t, err)
	pair, err := new(uplink.Reloader).Pair("", filepath.Join(dir, "pem"))
	check(t, err)
	c := coordinator.New(coordinator.Config{
		Net: &net.Dialer{}, Servers: coordinator.At(&url.URL{Scheme: "https", Host: at}), Node: "edge-1", Pool: "harbour",
		Roots: roots, Cert: pair, OnBytes: func(int) {}, Leads: func() bool { return false }, Moved: func() {},
		Clock:  clocktesting.NewFakeClock(time.Now()),
		Logger: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(c.Close)
	return c
}

// shows is what weir connectivity says when the hub tells what it found.
func (b *bed) shows() operator.WaysReport {
	now := time.Now()
	h := poolv1.Hub{Node: "edge-1", Role: string(digest.Follower), Told: metav1.Time{Time: now}}
	d, err := digest.Parse(digest.Digest{Version: "v1", Role: digest.Follower, Edges: b.prober.Failing()}.Text())
	check(b.t, err)
	h.Tell(d)
	life := int32(40)
	return operator.WaysOf(&commands.View{
		Now: now,
		Nodes: []corev1.Node{{
			ObjectMeta: metav1.ObjectMeta{Name: "edge-1", Labels: map[string]string{contract.NodePoolLabel: "harbour"}},
			Status: corev1.NodeStatus{
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		}},
		Leases: map[string]coordinationv1.Lease{"edge-1": {Spec: coordinationv1.LeaseSpec{
			RenewTime: &metav1.MicroTime{Time: now}, LeaseDurationSeconds: &life,
		}}},
		Pools: []poolv1.Pool{{
			ObjectMeta: metav1.ObjectMeta{Name: "harbour"},
			Status:     poolv1.Status{Mode: poolv1.ModeCoordinator, Hubs: []poolv1.Hub{h}},
		}},
	}, "harbour")
}

// until steps the hub until something holds, for so long of its time.
func (b *bed) until(what string, holds func([]digest.Edge) bool) {
	b.t.Helper()
	for range 2 * connectivity.Usual / step {
		b.other()
		b.prober.look(b.t.Context())
		if _, named := b.prober.Failing().List(); holds(named) {
			return
		}
		b.clock.Step(step)
	}
	b.t.Fatalf("%s: %q fail", what, b.prober.Failing())
}

// TestBlocked: with each way blocked in turn, in each manner, over real sockets, weir connectivity is not green, and
// names the way by its direction, port and cause. It is green before and after.
func TestBlocked(t *testing.T) {
	b, gates := newBed(t)
	tried := func() bool {
		b.prober.mu.Lock()
		defer b.prober.mu.Unlock()
		return len(b.prober.members) == 1
	}
	b.until("the hub to know of edge-2", func([]digest.Edge) bool { return tried() })
	for way, g := range gates {
		for _, how := range []string{
			digest.Refused, digest.Mute, digest.Broken, digest.Stranger, digest.Clock, digest.Stalls,
		} {
			b.until("all to work", func(named []digest.Edge) bool { return len(named) == 0 })
			if r := b.shows(); !r.Success {
				t.Fatalf("nothing is blocked: %+v", r)
			}
			g.set(how)
			what := string(way) + " " + how
			b.until(what, func(named []digest.Edge) bool {
				return len(named) == 1 && named[0].Way == way && named[0].Cause == how
			})
			_, named := b.prober.Failing().List()
			r := b.shows()
			var out strings.Builder
			check(t, r.Write(&out, "table"))
			if r.Success || !strings.Contains(out.String(), "× "+named[0].Says("edge-1")) ||
				!strings.HasSuffix(g.addr, ":"+portOf(named[0])) {
				t.Errorf("%s: %s", what, out.String())
			}
			g.set("")
		}
	}
}

func portOf(e digest.Edge) string { return (&net.TCPAddr{Port: int(e.Port)}).String()[1:] }

// TestLearn: a member is tried at an address that means one machine, and at one of each machine only where the whole
// pool is on one.
func TestLearn(t *testing.T) {
	for told, want := range map[string]int{"10.0.0.9:10269": 1, "127.0.0.9:10269": 2, "": 1} {
		p := &Prober{ProberConfig: ProberConfig{Node: "edge-9", Told: func() string { return told }}}
		p.learn([]exchange.Member{
			{Node: "edge-1", Address: "10.0.0.1:10269"}, {Node: "edge-2", Address: "127.0.0.1:2379"},
			{Node: "edge-3", Address: "169.254.169.254:80"}, {Node: "edge-4", Address: "10.0.0.4:10269"},
		})
		if len(p.members) != want {
			t.Errorf("told at %q: %v", told, p.members)
		}
	}
}
