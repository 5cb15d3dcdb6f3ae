package hub

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/hub/door"
	"github.com/weir-edge/weir/impl/hub/uplink"
)

// kubeconfig is what a kubelet has.
func kubeconfig(cluster string) []byte {
	return fmt.Appendf(nil,
		"apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: k, cluster: {certificate-authority: "+
			"cloud-ca.crt, %s}}]\n"+
			"contexts: [{name: c, context: {cluster: k, user: u}}]\nusers: [{name: u, user: {client-certificate: cloud.pem, "+
			"client-key: cloud.pem}}]\n", cluster)
}

// byKubeconfig lets the hub go by a kubelet's kubeconfig and nothing else.
func (b *bed) byKubeconfig(cluster string) {
	b.t.Helper()
	write(b.t, b.dir, map[string][]byte{"kubelet.conf": kubeconfig(cluster)})
	path := b.dir + "/kubelet.conf"
	b.config.CloudServers, b.config.CloudClientCertFile = nil, ""
	b.config.CloudClientKubeconfig, b.config.ClientCAFiles = path, []string{path}
}

// TestKubeconfig: the hub follows the kubelet's kubeconfig and the files that it names, while it runs: the authority of
// the cluster is rotated by way of a bundle of both, and the API moves to another port, where its certificate has
// another name than its address. The kubelet is known by the one that signs its certificate now.
func TestKubeconfig(t *testing.T) {
	b := newBed(t, 1)
	next := newAuthority(t, "cloud-2")
	b.clouds = append(b.clouds, newFakeCloud(t, next))
	b.byKubeconfig(fmt.Sprintf("server: %q", b.clouds[0].url()))
	h, err := New(b.config)
	check(t, err)
	clock := clocktesting.NewFakeClock(time.Now())
	h.reload.Clock = clock
	b.run(h)
	step := func(files map[string][]byte) {
		t.Helper()
		write(t, b.dir, files)
		eventually(t, "the reloader to wait", clock.HasWaiters)
		clock.Step(time.Minute)
	}
	old, renewed := b.ca.tls("system:node:edge-1", "system:nodes"), next.tls("system:node:edge-1", "system:nodes")
	client := map[*authority]*http.Client{b.ca: b.client(&old), next: b.client(&renewed)}
	arrives := func(by *authority, at *fakeCloud) bool {
		at.mu.Lock()
		before := len(at.seen)
		at.mu.Unlock()
		resp, body := get(t, client[by], b.url()+"/echo/x")
		var e echo
		_ = json.Unmarshal([]byte(body), &e)
		at.mu.Lock()
		defer at.mu.Unlock()
		return resp.StatusCode == http.StatusOK && e.User == "system:node:edge-1" &&
			slices.ContainsFunc(at.seen[before:], func(s seen) bool { return s.path == "/echo/x" })
	}
	eventually(t, "the first cloud", func() bool { return arrives(b.ca, b.clouds[0]) })
	if resp, _ := get(t, client[next], b.url()+"/echo/x"); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a certificate of an authority that is not there yet: %s", resp.Status)
	}
	step(map[string][]byte{"cloud-ca.crt": append(b.ca.pem, next.pem...)})
	eventually(t, "certificates of both", func() bool { return arrives(b.ca, b.clouds[0]) && arrives(next, b.clouds[0]) })

	cert, key := next.issue("system:node:edge-1", "system:nodes")
	_, port, err := net.SplitHostPort(b.clouds[1].server.Listener.Addr().String())
	check(t, err)
	step(map[string][]byte{
		"kubelet.conf": kubeconfig(fmt.Sprintf("server: \"https://localhost:%s\", tls-server-name: 127.0.0.1", port)),
		"cloud.pem":    append(key, cert...),
	})
	eventually(t, "the second cloud", func() bool { return arrives(next, b.clouds[1]) })
	if s := h.Status().Cloud; len(s) != 1 || s[0].Server != "localhost:"+port {
		t.Errorf("the status says %+v", s)
	}
	step(map[string][]byte{"cloud-ca.crt": next.pem})
	eventually(t, "the former authority to count no more", func() bool {
		resp, _ := get(t, client[b.ca], b.url()+"/echo/x")
		return resp.StatusCode == http.StatusUnauthorized
	})
	eventually(t, "the second cloud by its authority alone", func() bool { return arrives(next, b.clouds[1]) })

	write(t, b.dir, map[string][]byte{"kubelet.conf": []byte("half of")})
	step(nil)
	eventually(t, "a warning", func() bool { return strings.Contains(b.log.String(), "kubelet.conf") })
	if !arrives(next, b.clouds[1]) {
		t.Error("a kubeconfig that is torn took the cloud away")
	}
}

// connects is an HTTP proxy that connects all names to one address, and wants a password.
type connects struct {
	*httptest.Server
	to string

	mu    sync.Mutex
	asked map[string]int // by what was asked for
	conns sync.WaitGroup
}

func newConnects(t testing.TB, to string) *connects {
	t.Helper()
	p := &connects{to: to, asked: map[string]int{}}
	p.Server = httptest.NewServer(p)
	t.Cleanup(func() {
		p.CloseClientConnections()
		p.Close()
		p.conns.Wait()
	})
	return p
}

func (p *connects) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	p.conns.Add(1) // before it hijacks: a server does not wait for what is hijacked
	defer p.conns.Done()
	p.mu.Lock()
	p.asked[req.Host]++
	p.mu.Unlock()
	if req.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte("me:pa55word")) {
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	out, err := net.Dial("tcp", p.to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	in, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		out.Close()
		return
	}
	_, _ = io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n")
	for _, c := range [][2]net.Conn{{in, out}, {out, in}} {
		p.conns.Go(func() {
			defer c[0].Close()
			defer c[1].Close()
			_, _ = io.Copy(c[0], c[1])
		})
	}
}

// url is that of the proxy, with a name and a password.
func (p *connects) url(password string) string {
	return strings.Replace(p.URL, "//", "//me:"+password+"@", 1)
}

// noted is a network that notes what is dialed.
type noted struct {
	door.System
	mu   sync.Mutex
	seen map[string]int
}

func (n *noted) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	n.mu.Lock()
	n.seen[address]++
	n.mu.Unlock()
	return n.System.DialContext(ctx, network, address)
}

// TestProxyToTheCloud: where the cloud is reached through an HTTP proxy, by the kubelet's kubeconfig or by the
// environment, all traffic goes that way: feeds, probes, heartbeats, what callers ask and upgrades. It is counted, told
// without the password, and no peer of the pool is called so. A host of NO_PROXY is called straight.
func TestProxyToTheCloud(t *testing.T) {
	for name, by := range map[string]func(t *testing.T, b *bed, proxy string) string{
		"proxy-url": func(_ *testing.T, _ *bed, proxy string) string { return fmt.Sprintf(", proxy-url: %q", proxy) },
		"environment": func(t *testing.T, _ *bed, proxy string) string {
			t.Setenv("HTTPS_PROXY", proxy)
			t.Setenv("NO_PROXY", "elsewhere.invalid")
			return ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, 1)
			p := newConnects(t, b.clouds[0].server.Listener.Addr().String())
			b.byKubeconfig("server: \"https://cloud.invalid:6443\", tls-server-name: 127.0.0.1" + by(t, b, p.url("pa55word")))
			b.config.EnableCoordinator, b.config.CoordinatorServers = true, []string{"https://coordinator.invalid:10270"}
			dials := &noted{seen: map[string]int{}}
			b.config.Net = dials
			b.start()
			node := b.ca.tls("system:node:edge-1", "system:nodes")
			for proto, header := range map[string][]string{
				"HTTP/2.0": nil, "HTTP/1.1": {"Connection", "Upgrade", "Upgrade", "x"},
			} {
				eventually(t, "the cloud over "+proto, func() bool {
					resp, body := get(t, testClient(t, b.client(&node).Transport.(*http.Transport).TLSClientConfig, false),
						b.url()+"/echo/x", header...)
					var e echo
					_ = json.Unmarshal([]byte(body), &e)
					return resp.StatusCode == http.StatusOK && e.User == "system:node:edge-1" && e.Proto == proto
				})
			}
			eventually(t, "bytes of all that a hub does", func() bool {
				s := b.hub.Status()
				return s.Bytes[uplink.ClassNode].Down > 0 && s.Bytes[uplink.ClassControl].Down > 0
			})
			p.mu.Lock()
			asked := slices.Collect(maps.Keys(p.asked))
			p.mu.Unlock()
			dials.mu.Lock()
			straight := maps.Clone(dials.seen)
			dials.mu.Unlock()
			if !slices.Equal(asked, []string{"cloud.invalid:6443"}) || straight["cloud.invalid:6443"] > 0 ||
				straight[p.Listener.Addr().String()] == 0 {
				t.Errorf("the proxy was asked for %v; dialed were %v", asked, straight)
			}
			eventually(t, "the coordinator to be called straight", func() bool {
				dials.mu.Lock()
				defer dials.mu.Unlock()
				return dials.seen["coordinator.invalid:10270"] > 0
			})
			status, err := json.Marshal(b.hub.Status())
			check(t, err)
			if s := b.hub.Status().Cloud[0]; s.Proxy != p.URL || strings.Contains(string(status), "pa55word") ||
				strings.Contains(b.log.String(), "pa55word") {
				t.Errorf("told is the proxy %q, or a password", s.Proxy)
			}
		})
	}
	t.Run("another password", func(t *testing.T) {
		b := newBed(t, 1)
		p := newConnects(t, b.clouds[0].server.Listener.Addr().String())
		b.byKubeconfig(fmt.Sprintf("server: \"https://cloud.invalid:6443\", tls-server-name: 127.0.0.1, proxy-url: %q",
			p.url("wr0ng")))
		b.start()
		eventually(t, "the reason", func() bool {
			return strings.Contains(b.hub.Status().Cloud[0].Error,
				"407 Proxy Authentication Required: want its name and password")
		})
		if strings.Contains(b.log.String(), "wr0ng") {
			t.Error("the log has the password")
		}
	})
	t.Run("NO_PROXY", func(t *testing.T) {
		b := newBed(t, 1)
		t.Setenv("HTTPS_PROXY", "http://proxy.invalid:3128")
		b.byKubeconfig(fmt.Sprintf("server: %q", b.clouds[0].url())) // this machine's addresses are never called through one
		b.start()
		eventually(t, "the cloud", func() bool { return b.hub.cloud.Healthy() })
		if s := b.hub.Status().Cloud[0]; s.Proxy != "" {
			t.Errorf("told is the proxy %q", s.Proxy)
		}
	})
}
