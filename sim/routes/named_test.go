package routes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/weir-edge/weir/impl/testkit"
	"github.com/weir-edge/weir/sim/proc/loopback"
	"github.com/weir-edge/weir/sim/routes"
)

const (
	webAddress = "10.96.0.80"
	dnsAddress = "10.96.0.10"
)

// node is the kube-proxy of a node that leads to one Service and to DNS.
type node struct {
	mu    sync.Mutex
	rules map[string][]string
}

func (n *node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	to, ok := n.rules[r.FormValue("to")]
	if !ok {
		http.Error(w, "no Service is there", http.StatusNotFound)
		return
	}
	_ = json.NewEncoder(w).Encode(to)
}

func (n *node) lead(to string, endpoints ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rules[to] = endpoints
}

// serveDNS answers questions for a Service, at the loopback address of a pod, until the test ends.
func serveDNS(t *testing.T, address string) (endpoint string) {
	t.Helper()
	l, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		b := make([]byte, 512)
		for {
			n, from, err := l.ReadFrom(b)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if err := m.Unpack(b[:n]); err != nil {
				continue
			}
			m.Response, m.Authoritative, m.Additionals = true, true, nil
			if name := m.Questions[0].Name; name.String() == "web.shop.svc.cluster.local." {
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET, TTL: 30},
					Body:   &dnsmessage.AResource{A: netip.MustParseAddr(webAddress).As4()},
				}}
			} else {
				m.RCode = dnsmessage.RCodeNameError
			}
			if answer, err := m.Pack(); err == nil {
				_, _ = l.WriteTo(answer, from)
			}
		}
	}()
	_, port, err := net.SplitHostPort(l.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort(known(address), port)
}

// known is the address of a pod as the cluster has it.
func known(loopback string) string { return "10." + strings.TrimPrefix(loopback, "127.") }

// serveWeb is a pod that answers with its name at its loopback address.
func serveWeb(t *testing.T, address, name string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(address, "8080"))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, name)
	}))
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
}

// TestNamed: who resolves each time fails with DNS, and who resolved once does not. Both go where kube-proxy leads
// them, and to a new endpoint first.
func TestNamed(t *testing.T) {
	t.Parallel()
	block, err := loopback.Reserve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(block.Release)
	at := func(n int) string {
		a, err := block.Addr(n)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	serveWeb(t, at(1), "web-1")
	serveWeb(t, at(2), "web-2")
	serveWeb(t, at(3), "stranger")
	first, second := serveDNS(t, at(4)), serveDNS(t, at(5))
	for _, kind := range []string{routes.Resolves, routes.Resolved} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			web, dns := webAddress+":80/TCP", dnsAddress+":53/UDP"
			proxy := &node{rules: map[string][]string{dns: {first}, web: {known(at(1)) + ":8080"}}}
			server := httptest.NewServer(proxy)
			defer server.Close()
			failures := make(chan error, 1000)
			n := routes.NewNamed(routes.NamedConfig{
				Node: "b", Kind: kind, Proxy: server.URL, DNS: dnsAddress, Namespace: "shop",
				Services: map[string][]string{"web": {"web-1", "web-2"}}, Servers: []string{"dns-1", "dns-2"},
				Failure: func(err error) { failures <- err },
			})
			ctx, cancel := context.WithCancel(t.Context())
			var done sync.WaitGroup
			done.Go(func() { n.Run(ctx) })
			defer func() { cancel(); done.Wait() }()
			answered := func(by string) {
				t.Helper()
				testkit.Until(t, patience, "an answer of "+by, func() bool {
					c, _ := n.Seen()
					return slices.ContainsFunc(c.Answers, func(a routes.Answer) bool { return a.Address == by || a.Pod == by })
				})
			}
			fails := func(why string) {
				t.Helper()
				if err := testkit.Value(t, patience, "a call that fails", failures); !strings.Contains(err.Error(), why) {
					t.Errorf("%v, want %q", err, why)
				}
			}
			answered("web-1")
			proxy.lead(web, known(at(1))+":8080", known(at(2))+":8080")
			answered("web-2")
			if kind == routes.Resolves {
				answered(host(t, first))
				proxy.lead(dns, second)
				answered(host(t, second))
			}
			proxy.lead(dns)
			if kind == routes.Resolves {
				fails("resolve web")
				proxy.lead(dns, first)
			}
			proxy.lead(web, known(at(3))+":8080")
			testkit.Until(t, patience, "a stranger's answer", func() bool {
				select {
				case err := <-failures:
					return strings.Contains(err.Error(), "stranger answers at")
				default:
					return false
				}
			})
			proxy.lead(web)
			testkit.Until(t, patience, "no endpoint", func() bool {
				select {
				case err := <-failures:
					return strings.Contains(err.Error(), "no endpoint")
				default:
					return false
				}
			})
			c, ok := n.Seen()
			calls, failed := n.Count()
			if want := 2 + map[string]int{routes.Resolves: 2}[kind]; !ok || len(c.Calls) != want || len(c.Failures) != failed ||
				calls <= failed || failed == 0 {
				t.Errorf("began %t, calls pods %v, %d failures of %d in %d calls", ok, c.Calls, len(c.Failures), failed, calls)
			}
		})
	}
}

// TestNamedWaits: until the first answer nothing is noted of who waits.
func TestNamedWaits(t *testing.T) {
	t.Parallel()
	for _, waits := range []bool{false, true} {
		asked := make(chan struct{}, 1000)
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
			asked <- struct{}{}
		}))
		n := routes.NewNamed(routes.NamedConfig{
			Node: "b", Kind: routes.Resolved, Proxy: proxy.URL, DNS: dnsAddress, Namespace: "shop", Waits: waits,
			Services: map[string][]string{"web": nil}, Failure: func(error) {},
		})
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { n.Run(ctx) })
		for range 10 { // more than one call asks
			testkit.Value(t, patience, "a question to kube-proxy", asked)
		}
		cancel()
		done.Wait()
		proxy.Close()
		calls, failures := n.Count()
		if c, ok := n.Seen(); ok == waits || c.To.IsZero() || waits != (calls == 0) || waits != (failures == 0) {
			t.Errorf("waits %t: began %t, %d of %d calls failed", waits, ok, failures, calls)
		}
	}
}

func host(t *testing.T, address string) string {
	t.Helper()
	h, _, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return h
}
