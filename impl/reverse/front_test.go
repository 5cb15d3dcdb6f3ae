package reverse

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/server/egressselector"

	"github.com/weir-edge/weir/impl/testkit"
)

// egress is how kube-apiserver dials what is in the cluster, if its configuration says that the gate is the way.
func (b *bed) egress(name string) func(ctx context.Context, network, address string) (net.Conn, error) {
	t := b.t
	t.Helper()
	dir := t.(*testing.T).TempDir()
	cert := b.ca.sign(t, name)
	key, err := x509.MarshalECPrivateKey(cert.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	s, err := egressselector.NewEgressSelector(&apiserver.EgressSelectorConfiguration{
		EgressSelections: []apiserver.EgressSelection{{
			Name: "cluster",
			Connection: apiserver.Connection{
				ProxyProtocol: apiserver.ProtocolHTTPConnect,
				Transport: &apiserver.Transport{TCP: &apiserver.TCPTransport{
					URL: "https://" + b.addr(),
					TLSConfig: &apiserver.TLSConfig{
						CABundle:   file("ca.crt", pemOf("CERTIFICATE", b.ca.cert.Raw)),
						ClientCert: file("tls.crt", pemOf("CERTIFICATE", cert.Certificate[0])),
						ClientKey:  file("tls.key", pemOf("EC PRIVATE KEY", key)),
					},
				}},
			},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	dial, err := s.Lookup(egressselector.Cluster.AsNetworkContext())
	if err != nil {
		t.Fatal(err)
	}
	return dial
}

// kubeletServer answers as a kubelet does, over TLS, at an address of the pool: GET /logs has no end, /name is short.
func (b *bed) kubeletServer(address string) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/logs":
			for i := 0; req.Context().Err() == nil; i++ {
				fmt.Fprintln(w, "line", i)
				_ = http.NewResponseController(w).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		case "/exec":
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "SPDY/3.1")
			w.WriteHeader(http.StatusSwitchingProtocols)
			c, rw, err := http.NewResponseController(w).Hijack()
			if err == nil {
				defer c.Close()
				_, _ = io.Copy(c, rw)
			}
		default:
			fmt.Fprint(w, "kubelet ", address)
		}
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{b.ca.sign(b.t, "kubelet")}}
	s.StartTLS()
	b.place(address, s.Listener.Addr().String())
	b.t.Cleanup(s.Close)
}

// client is one of HTTPS that dials as told, and takes the certificates of the bed for those of any address.
func (b *bed) client(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Client {
	t := &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: b.ca.pool, ServerName: "127.0.0.1"}}
	b.t.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t}
}

func get(t *testing.T, c *http.Client, url string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// TestEgress: kube-apiserver's own client reaches a kubelet through the gate: a short answer, one without end that the
// client leaves, and an upgraded one. Each connection is one line of the log.
func TestEgress(t *testing.T) {
	b := newBed(t, WaysConfig{}, FrontConfig{})
	l, _ := b.lead("edge-1", nil)
	b.kubeletServer(kubelet)
	dial := b.egress("kube-apiserver-kubelet-client")
	client := b.client(dial)
	if text, err := get(t, client, "https://"+kubelet+"/name"); err != nil || text != "kubelet "+kubelet {
		t.Fatalf("%q, %v", text, err)
	}

	resp, err := client.Get("https://" + kubelet + "/logs")
	if err != nil {
		t.Fatal(err)
	}
	says(t, resp.Body, "line 0\nline 1\n")
	_ = resp.Body.Close()

	raw, err := dial(t.Context(), "tcp", kubelet)
	if err != nil {
		t.Fatal(err)
	}
	secure := tls.Client(raw, &tls.Config{RootCAs: b.ca.pool, ServerName: "127.0.0.1"})
	fmt.Fprintf(secure, "POST /exec HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
	in := bufio.NewReader(secure)
	if resp, err = http.ReadResponse(in, nil); err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", resp, err)
	}
	for _, s := range []string{"ls", "exit"} {
		_, _ = io.WriteString(secure, s)
		says(t, in, s)
	}
	if s := b.front.State(); s.Open < 1 || s.Opened < 2 {
		t.Errorf("%+v", s)
	}
	_ = secure.Close()
	client.CloseIdleConnections()
	testkit.Until(t, time.Minute, "all to end", func() bool {
		return l.State().Open == 0 && b.front.State().Open == 0 && b.ways.slots.Held() == 0
	})
	over := b.log.with(`msg="a connection is over"`)
	if s := b.front.State(); uint64(len(over)) != s.Opened || s.UpBytes == 0 || s.DownBytes == 0 {
		t.Errorf("%d lines, %+v", len(over), s)
	}
	for _, line := range over {
		for _, part := range []string{
			"user=kube-apiserver-kubelet-client", "address=" + kubelet, "pool=harbour", "up=", "took=", "end=",
		} {
			if !strings.Contains(line, part) {
				t.Errorf("%s: want %s", line, part)
			}
		}
	}
}

// TestEgressErrors: what kube-apiserver tells its user says why, and with which code.
func TestEgressErrors(t *testing.T) {
	b := newBed(t, WaysConfig{PerPool: 1}, FrontConfig{
		Authorize: func(req *http.Request, _ Place) (string, error) {
			if name := req.TLS.PeerCertificates[0].Subject.CommonName; name != "kube-apiserver" {
				return name, fmt.Errorf("user %s may not connect to %s", name, req.Host)
			}
			return "kube-apiserver", nil
		},
	})
	b.listen(kubelet, echo)
	dial := b.egress("kube-apiserver")
	try := func(address string, want ...string) {
		t.Helper()
		c, err := dial(t.Context(), "tcp", address)
		if err == nil {
			_ = c.Close()
			t.Errorf("%s: dialed, want %q", address, want)
			return
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v, want %q", address, err, w)
			}
		}
	}
	try(kubelet, "code 503", "Service Unavailable: pool harbour", "no hub that leads it is connected")
	b.lead("edge-1", nil)
	try("10.0.0.9:10250", "code 403", "Forbidden: pool harbour", "no node of the pool")
	try("10.0.0.7:22", "code 403", "only port 10250")
	try("10.0.0.8:10250", "code 502", "nothing is there")
	try("192.0.2.1:443", "code 403", "of no pool")
	for _, address := range []string{
		"127.0.0.1:6443", "localhost:6443", "[::1]:443", "[::ffff:127.0.0.1]:443", "169.254.169.254:80", "0.0.0.0:80",
		"[::ffff:10.0.0.7]:10250", "10.0.0.7:0", "[fe80::1%25lo]:80",
	} {
		try(address, "code 403")
	}
	c, err := dial(t.Context(), "tcp", kubelet)
	if err != nil {
		t.Fatal(err)
	}
	try(kubelet, "code 429", "Too Many Requests: pool harbour", "the most that one pool may have")
	_ = c.Close()
	if _, err := b.egress("mallory")(t.Context(), "tcp", kubelet); err == nil ||
		!strings.Contains(err.Error(), "403 Forbidden: user mallory may not connect to "+kubelet) {
		t.Errorf("%v", err)
	}
	s := b.front.State()
	if s.Denied != 1 || s.Failed[NoWay] != 1 || s.Failed[Unreachable] != 1 || s.Failed[Busy] != 1 || s.Opened != 1 ||
		s.Failed[Refused] < 8 {
		t.Errorf("%+v", s)
	}
}

// TestPrometheus: the proxyUrl of Prometheus is that of net/http. With enable_http2, which is the default, it offers h2
// to the proxy, and speaks HTTP/1.1 all the same. So CONNECT wants a port that does not take h2.
func TestPrometheus(t *testing.T) {
	b := newBed(t, WaysConfig{}, FrontConfig{})
	b.lead("edge-1", nil)
	b.kubeletServer(kubelet)
	plain := httptest.NewUnstartedServer(b.server.Config.Handler)
	plain.TLS = b.server.TLS.Clone()
	plain.TLS.NextProtos = nil
	plain.StartTLS()
	defer plain.Close()
	for _, c := range []struct {
		gate  string
		h2    bool
		works bool
	}{{b.addr(), false, true}, {b.addr(), true, false}, {plain.Listener.Addr().String(), true, true}} {
		cfg := b.tls("prometheus")
		cfg.InsecureSkipVerify = true // the kubelet has another name; TestEgress looks at the gate's
		tr := &http.Transport{
			Proxy: http.ProxyURL(&url.URL{Scheme: "https", Host: c.gate}), TLSClientConfig: cfg, ForceAttemptHTTP2: c.h2,
		}
		client := &http.Client{Transport: tr}
		text, err := get(t, client, "https://"+kubelet+"/metrics")
		if works := err == nil && text == "kubelet "+kubelet; works != c.works {
			t.Errorf("%+v: %q, %v", c, text, err)
		}
		_, err = get(t, client, "https://10.0.0.9:10250/metrics")
		if err == nil || c.works && !strings.Contains(err.Error(), "no node of the pool") {
			t.Errorf("%+v: %v", c, err)
		}
		tr.CloseIdleConnections()
	}
}

// TestStraight: what is of no pool is dialed from here, if that is allowed; the rules hold for the address that is
// really dialed.
func TestStraight(t *testing.T) {
	self := netip.MustParseAddrPort("192.0.2.9:10273")
	b := newBed(t, WaysConfig{}, FrontConfig{
		StraightSum: 1, Self: []netip.AddrPort{self},
		Straight: func(a netip.AddrPort) error {
			if a.Port() == 25 {
				return errors.New("no mail from here")
			}
			return nil
		},
	})
	for address, want := range map[string]string{
		"192.0.2.1:443": "", "192.0.2.9:443": "", "[::ffff:192.0.2.1]:443": "", "192.0.2.9:10273": "the gate itself",
		"[::ffff:192.0.2.9]:10273": "the gate itself", "192.0.2.1:25": "no mail", "127.0.0.1:1": "loopback",
		"[::ffff:127.0.0.1]:1": "loopback", "169.254.169.254:80": "link-local", "100.100.100.200:80": "metadata",
		"10.0.0.7:10250": "of a pool", "[::ffff:10.0.0.7]:10250": "of a pool",
	} {
		err := b.front.straight(netip.MustParseAddrPort(address))
		if (err == nil) != (want == "") ||
			err != nil && (!strings.Contains(err.Error(), want) || kindOfError(err) != Refused) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
	b.listen("10.244.0.1:8080", echo)
	guard := b.front.c.Dial
	if _, err := guard(t.Context(), "localhost:1"); kindOfError(err) != Refused { // before it says that nobody listens
		t.Errorf("%v", err)
	}
	b.front.c.Dial = func(ctx context.Context, _ string) (net.Conn, error) {
		return b.connect(ctx, netip.MustParseAddrPort("10.244.0.1:8080"))
	}
	dial := b.egress("kube-apiserver")
	c, err := dial(t.Context(), "tcp", "webhook.example:443")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, "hello")
	says(t, c, "hello")
	if _, err := dial(t.Context(), "tcp", "webhook.example:443"); err == nil ||
		!strings.Contains(err.Error(), "code 503") || !strings.Contains(err.Error(), "1 connections that go straight") {
		t.Errorf("%v", err)
	}
	b.front.c.Dial = func(ctx context.Context, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	_ = c.(interface{ CloseWrite() error }).CloseWrite() // of TLS: the echo ends, too
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
	_ = c.Close()
	testkit.Until(t, time.Minute, "it to end", func() bool { return b.front.State().Open == 0 })
	b.front.c.DialWithin = 20 * time.Millisecond
	if _, err := dial(t.Context(), "tcp", "webhook.example:443"); err == nil ||
		!strings.Contains(err.Error(), "code 504") {
		t.Errorf("%v", err)
	}
	if len(b.log.with("end=\"both ends have ended it\"")) != 1 {
		t.Errorf("%q", b.log.with("is over"))
	}
}

// TestEarlyBytes: what a client sends before it is answered is carried, too.
func TestEarlyBytes(t *testing.T) {
	b := newBed(t, WaysConfig{}, FrontConfig{})
	b.lead("edge-1", nil)
	b.listen(kubelet, echo)
	c, err := (&tls.Dialer{Config: b.tls("someone")}).DialContext(t.Context(), "tcp", b.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nearly", kubelet)
	says(t, c, "HTTP/1.1 200 OK\r\n\r\nearly")
}

// TestFrontMethods: what is no CONNECT over HTTP/1.1 is refused.
func TestFrontMethods(t *testing.T) {
	b := newBed(t, WaysConfig{}, FrontConfig{})
	for _, c := range []struct {
		method string
		major  int
		want   int
	}{
		{http.MethodGet, 1, http.StatusMethodNotAllowed},
		{http.MethodConnect, 2, http.StatusHTTPVersionNotSupported},
	} {
		req := httptest.NewRequestWithContext(t.Context(), c.method, "/", nil)
		req.ProtoMajor = c.major
		w := httptest.NewRecorder()
		b.front.ServeHTTP(w, req)
		if w.Code != c.want {
			t.Errorf("%s of HTTP/%d: %d, want %d", c.method, c.major, w.Code, c.want)
		}
	}
}

// TestFrontEnds: those who are connected see an error when the leader is lost, and when the gate ends. It is in the
// log.
func TestFrontEnds(t *testing.T) {
	b := newBed(t, WaysConfig{}, FrontConfig{})
	_, stop := b.lead("edge-1", nil)
	b.listen(kubelet, echo)
	dial := b.egress("kube-apiserver")
	open := func() net.Conn {
		c, err := dial(t.Context(), "tcp", kubelet)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, "hello")
		says(t, c, "hello")
		return c
	}
	c := open()
	stop()
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("%v, want an error", err)
	}
	testkit.Until(t, time.Minute, "the line", func() bool {
		return len(b.log.with("its leader on node edge-1 has ended")) == 1
	})
	b.lead("edge-2", nil)
	c = open()
	b.front.Close()
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("%v, want an error", err)
	}
	if len(b.log.with(`end="the gate is ending"`)) != 1 {
		t.Errorf("%q", b.log.with("is over"))
	}
	if _, err := dial(t.Context(), "tcp", kubelet); err == nil || !strings.Contains(err.Error(), "the gate is ending") {
		t.Errorf("%v", err)
	}
}

// halves is an end of a connection of which each direction ends by itself.
type halves struct {
	net.Conn // that it reads
	out      net.Conn
}

func (h *halves) Write(p []byte) (int, error) { return h.out.Write(p) }
func (h *halves) CloseWrite() error           { return h.out.Close() }
func (h *halves) Close() error                { return errors.Join(h.Conn.Close(), h.out.Close()) }

// TestHalfIdle: once one direction has ended, the other one may not be silent for ever.
func TestHalfIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pair := func() (near, far *halves) {
			out, in := net.Pipe()
			back, forth := net.Pipe()
			near, far = &halves{forth, out}, &halves{in, back}
			t.Cleanup(func() { _ = near.Close() })
			return near, far
		}
		client, a := pair()
		pool, z := pair()
		p := &pipe{client: a, far: z, halfIdle: halfIdle}
		end := make(chan string, 1)
		go func() { end <- p.run(t.Context()) }()
		time.Sleep(2 * halfIdle) // open in both directions: no bound
		_ = client.CloseWrite()
		for range 4 { // not silent
			time.Sleep(halfIdle - time.Second)
			_, _ = io.WriteString(pool, "x")
			says(t, client, "x")
		}
		began := time.Now()
		if why := <-end; why != "one end has ended it, and the other one is silent" {
			t.Error(why)
		}
		if took := time.Since(began); took != halfIdle {
			t.Errorf("it ends after %v of silence", took)
		}
	})
}
