package hub

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/limit"
)

// anonymousBody is kube-apiserver's answer to whom it does not know.
const anonymousBody = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized",` +
	`"reason":"Unauthorized","code":401}` + "\n"

// connections is how many connections the hub has opened for the node's clients.
func (b *bed) connections() int64 { return b.hub.cloud.Bytes(uplink.ClassNode).Connections }

// arrived counts the requests of a user at the cloud.
func (c *fakeCloud) arrived(user string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.seen {
		if strings.HasPrefix(s.user, user) {
			n++
		}
	}
	return n
}

// TestAnonymous: who shows no credential gets the four public paths, and nothing else of it reaches the cloud.
func TestAnonymous(t *testing.T) {
	b := newBed(t, 1)
	b.clouds[0].set(func() { b.clouds[0].docs = map[string]string{"/version": `{"major":"1"}`} })
	b.start()
	client := b.client(nil)
	for _, header := range [][]string{
		nil, {"Authorization", "Basic YTpi"}, {
			"Authorization", "Bearer ",
		}, {"Sec-WebSocket-Protocol", uplink.WebSocketToken + "YWxpY2U"},
	} {
		for _, path := range []string{
			"/echo/x", "/api/v1/endpoints", "/api/v1/endpoints?watch=1", "/apis", "/versions", "/healthz/../api",
		} {
			resp, body := get(t, client, b.url()+path, header...)
			if resp.StatusCode != http.StatusUnauthorized || body != anonymousBody {
				t.Errorf("%s with %v: got %d %q", path, header, resp.StatusCode, body)
			}
		}
	}
	if n := b.clouds[0].arrived("system:anonymous"); n != 0 {
		t.Errorf("%d requests without a credential reached the cloud", n)
	}
	if resp, body := get(t, client, b.url()+"/version"); resp.StatusCode != http.StatusOK || body != `{"major":"1"}` {
		t.Errorf("/version: got %d %s", resp.StatusCode, body)
	}
	if _, body := get(t, client, b.url()+"/echo/x", alice...); !strings.Contains(body, `"User":"alice"`) {
		t.Errorf("with a token: got %s", body)
	}
}

// TestAnonymousConnections: a thousand anonymous requests at once are not a thousand connections to the cloud.
func TestAnonymousConnections(t *testing.T) {
	b := newBed(t, 1)
	b.clouds[0].set(func() { b.clouds[0].docs = map[string]string{"/version": `{"major":"1"}`} })
	b.start()
	client := fewConnections(b.client(nil))
	get(t, client, b.url()+"/version")
	codes := flood(t, client, 300, func(int) (string, []string) { return b.url() + "/version", nil })
	ctx, leave := context.WithCancel(t.Context())
	for range 100 { // who leaves at once ends no connection to the cloud
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url()+"/version", nil)
		check(t, err)
		go func() {
			if resp, err := client.Do(req); err == nil {
				_ = resp.Body.Close()
			}
		}()
	}
	leave()
	if n := b.connections(); n > 4 {
		t.Errorf("%d connections to the cloud for anonymous requests, answers %v", n, codes)
	}
	if codes[http.StatusOK] == 0 || codes[http.StatusTooManyRequests] == 0 {
		t.Errorf("answers %v: want some, and the others told to come later", codes)
	}
}

// fewConnections is for clients that flood: how many connections a hub takes from an address is another limit
// (TestManyConnections). It has to come before the first request.
func fewConnections(c *http.Client) *http.Client {
	if tr, ok := c.Transport.(*http.Transport); ok {
		tr.MaxConnsPerHost = 16
	}
	return c
}

// flood sends requests at once and counts the answers by code. The race detector slows both ends so much that clients
// give up: make unit runs it.
func flood(t *testing.T, c *http.Client, n int, request func(i int) (url string, header []string)) map[int]int {
	t.Helper()
	if n > 100 && testing.Short() {
		t.Skip("hundreds of requests at once take the race detector longer than their clients wait")
	}
	codes := map[int]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			url, header := request(i)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			if err != nil {
				t.Error(err)
				return
			}
			for j := 0; j+1 < len(header); j += 2 {
				req.Header.Set(header[j], header[j+1])
			}
			resp, err := c.Do(req)
			code := 0
			if err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				code = resp.StatusCode
			}
			mu.Lock()
			codes[code]++
			mu.Unlock()
		})
	}
	wg.Wait()
	return codes
}

// TestForgedTokens: tokens that the cloud refuses cost the others of this node no connection: it ends each HTTP/2
// connection that carries one.
func TestForgedTokens(t *testing.T) {
	b := newBed(t, 1)
	b.start()
	client := b.client(nil)
	get(t, client, b.url()+"/echo/x", alice...)
	opened := b.connections()
	for i := range 30 {
		resp, body := get(t, client, b.url()+"/echo/x", "Authorization", fmt.Sprintf("Bearer forged%d", i))
		if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusTooManyRequests {
			t.Errorf("a forged token: got %d %s", resp.StatusCode, body)
		}
		if resp, body = get(t, client, b.url()+"/echo/x", alice...); resp.StatusCode != http.StatusOK {
			t.Fatalf("a good token beside it: got %d %s", resp.StatusCode, body)
		}
	}
	if n := b.connections() - opened; n > 3 {
		t.Errorf("%d connections for 30 forged tokens", n)
	}
	eventually(t, "a new token to be proved", func() bool {
		resp, _ := get(t, client, b.url()+"/echo/x", "Authorization", "Bearer bob")
		return resp.StatusCode == http.StatusOK
	})
	if n := b.connections() - opened; n > 3 {
		t.Errorf("%d connections for a good token after 30 forged ones", n)
	}
}

// TestOneForgedToken: one token that the cloud refuses, sent with many different requests at once, costs the others of
// this node few connections.
func TestOneForgedToken(t *testing.T) {
	for name, path := range map[string]string{
		"watches of a relay": "/api/v1/endpoints?watch=1&labelSelector=x%%3D%d", "requests of the cloud": "/echo/x?n=%d",
		"both": "",
	} {
		for _, leave := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, left %t", name, leave), func(t *testing.T) {
				b := newBed(t, 1)
				b.start()
				client := b.client(nil)
				client.Transport.(*http.Transport).MaxConnsPerHost = 16
				get(t, client, b.url()+"/echo/x", alice...)
				opened := b.connections()
				var wg sync.WaitGroup
				for i := range 500 {
					wg.Go(func() {
						ctx, stop := context.WithCancel(t.Context())
						defer stop()
						form := path
						if form == "" {
							form = []string{"/api/v1/endpoints?watch=1&labelSelector=x%%3D%d", "/echo/x?n=%d"}[i%2]
						}
						req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url()+fmt.Sprintf(form, i), nil)
						check(t, err)
						req.Header.Set("Authorization", "Bearer forged")
						if leave {
							req = req.WithContext(httptrace.WithClientTrace(ctx,
								&httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { stop() }}))
						}
						if resp, err := client.Do(req); err == nil {
							_, _ = io.Copy(io.Discard, resp.Body)
							_ = resp.Body.Close()
						}
					})
				}
				wg.Wait()
				eventually(t, "requests to end", func() bool {
					return b.hub.door.Gate.Strangers.Held() == 0 && b.hub.door.Gate.Reviews.Held() == 0
				})
				if resp, body := get(t, client, b.url()+"/echo/x", alice...); resp.StatusCode != http.StatusOK {
					t.Fatalf("a good token after it: got %d %s", resp.StatusCode, body)
				}
				if n := b.connections() - opened; n > 8 {
					t.Errorf("%d connections for one forged token", n)
				}
			})
		}
	}
}

// TestCallerRate: one caller has a share of the uplink, the node and others are not behind it.
func TestCallerRate(t *testing.T) {
	b := newBed(t, 1)
	b.config.CallerRate = 0
	b.start()
	cert := b.ca.tls("system:node:edge-1", "system:nodes")
	client, node := fewConnections(b.client(nil)), fewConnections(b.client(&cert))
	get(t, client, b.url()+"/echo/x", alice...)
	get(t, node, b.url()+"/echo/x")
	const kinds = 300 // that a controller lists and watches when it starts; one request of the burst is over
	all := map[int]int{}
	for n, query := range []string{"limit=500", "watch=1", "limit=500", "watch=1", "limit=500", "watch=1"} {
		codes := flood(t, client, kinds-1, func(i int) (string, []string) {
			return fmt.Sprintf("%s/echo/kind-%d?%s", b.url(), i, query), alice
		})
		for code, n := range codes {
			all[code] += n
		}
		if n == 1 && all[http.StatusOK] != 2*(kinds-1) {
			t.Errorf("a controller that starts: %v", all)
		}
	}
	if all[http.StatusTooManyRequests] == 0 || all[http.StatusOK] < limit.DefaultCallerBurst-1 {
		t.Errorf("%d requests of one caller: %v", 6*(kinds-1), all)
	}
	var resp *http.Response
	var body string
	eventually(t, "the caller to be at its limit", func() bool {
		resp, body = get(t, client, b.url()+"/echo/x", alice...)
		return resp.StatusCode == http.StatusTooManyRequests
	})
	var s metav1.Status
	check(t, json.Unmarshal([]byte(body), &s))
	if resp.Header.Get("Retry-After") == "" || s.Reason != metav1.StatusReasonTooManyRequests || s.Message == "" {
		t.Errorf("beyond the limit: %d, Retry-After %q, %s", resp.StatusCode, resp.Header.Get("Retry-After"), body)
	}
	if codes := flood(t, node, 600, func(int) (string, []string) {
		return b.url() + "/echo/x", nil
	}); codes[http.StatusOK] != 600 {
		t.Errorf("600 requests of the node: %v", codes)
	}
	if resp, _ := get(t, client, b.url()+"/echo/x", "Authorization", "Bearer bob"); resp.StatusCode != http.StatusOK {
		t.Errorf("another caller: %d", resp.StatusCode)
	}
}

// TestHeaderBytes: headers are bounded, whoever sends them. A client that sends more loses the request, or the
// connection.
func TestHeaderBytes(t *testing.T) {
	b := newBed(t, 1)
	b.start()
	many := slices.Clone(alice)
	for i := range 100 {
		many = append(many, fmt.Sprint("X-Long-", i), strings.Repeat("x", 1<<10))
	}
	one := append(slices.Clone(alice), "X-Long", strings.Repeat("x", 100<<10))
	for name, header := range map[string][]string{"many": many, "one": one} {
		codes := flood(t, b.client(nil), 1, func(int) (string, []string) { return b.url() + "/echo/x", header })
		if codes[0]+codes[http.StatusRequestHeaderFieldsTooLarge] != 1 {
			t.Errorf("%s of 100 kB: %v", name, codes)
		}
	}
	if n := b.clouds[0].arrived("alice"); n > 0 {
		t.Errorf("%d of them reached the cloud", n)
	}
	if resp, _ := get(t, b.client(nil), b.url()+"/echo/x",
		append(slices.Clone(alice), "X-Long", strings.Repeat("x", 40<<10))...); resp.StatusCode != http.StatusOK {
		t.Errorf("40 kB of headers: got %d", resp.StatusCode)
	}
}

// TestManyConnections: however many connections somebody opens, the hub keeps some hundred, and a new one gets in.
func TestManyConnections(t *testing.T) {
	b := newBed(t, 1)
	b.start()
	cert := b.ca.tls("system:node:edge-1", "system:nodes")
	node := b.client(&cert)
	nodes := b.connectionsOf(node)
	get(t, node, b.url()+"/echo/x")
	var open []net.Conn
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	for range 600 {
		c, err := net.Dial("tcp", b.hub.Addr().String())
		check(t, err)
		open = append(open, c)
	}
	if resp, body := get(t, b.client(nil), b.url()+"/echo/x", alice...); resp.StatusCode != http.StatusOK {
		t.Errorf("a new caller: got %d %s", resp.StatusCode, body)
	}
	get(t, node, b.url()+"/echo/x")
	if n := nodes(); n != 1 {
		t.Errorf("the node needed %d connections", n)
	}
	ended := 0
	for _, c := range open {
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		if _, err := c.Read(make([]byte, 1)); err != nil && !isTimeout(err) {
			ended++
		}
	}
	if ended < 300 {
		t.Errorf("of 600 idle connections of one address %d were closed", ended)
	}
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// connectionsOf counts those that a client opens.
func (b *bed) connectionsOf(c *http.Client) func() int {
	tr := c.Transport.(*http.Transport)
	n := 0
	tr.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		n++
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	return func() int { return n }
}

// TestStreams: who has not proved to be the node has fewer streams on a connection.
func TestStreams(t *testing.T) {
	b := newBed(t, 1)
	b.start()
	node := b.ca.tls("system:node:edge-1", "system:nodes")
	for _, test := range []struct {
		name string
		cert *tls.Certificate
		want uint32
	}{{"node", &node, 1000}, {"others", nil, 100}} {
		config := &tls.Config{RootCAs: b.local.pool(), NextProtos: []string{"h2"}}
		if test.cert != nil {
			config.Certificates = []tls.Certificate{*test.cert}
		}
		conn, err := tls.Dial("tcp", b.hub.Addr().String(), config)
		check(t, err)
		_, _ = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
		if got := maxStreamsOf(t, conn); got != test.want {
			t.Errorf("%s: %d streams, want %d", test.name, got, test.want)
		}
		_ = conn.Close()
	}
}

// maxStreamsOf reads it from the first frame of a server.
func maxStreamsOf(t *testing.T, conn net.Conn) uint32 {
	t.Helper()
	in := bufio.NewReader(conn)
	head := make([]byte, 9)
	_, err := io.ReadFull(in, head)
	check(t, err)
	body := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
	_, err = io.ReadFull(in, body)
	check(t, err)
	for ; len(body) >= 6; body = body[6:] {
		if body[0] == 0 && body[1] == 3 {
			return uint32(body[2])<<24 | uint32(body[3])<<16 | uint32(body[4])<<8 | uint32(body[5])
		}
	}
	return 0
}

// TestSaysNothing: who has shown no credential is not told where the cloud is, or why it cannot be reached.
func TestSaysNothing(t *testing.T) {
	b := newBed(t, 1)
	link := newCut(t, strings.TrimPrefix(b.clouds[0].url(), "https://"))
	b.config.CloudServers = []string{link.url()}
	link.set(true)
	b.start()
	client := b.client(nil)
	address := strings.TrimPrefix(link.url(), "https://")
	for _, header := range [][]string{nil, {"Authorization", "Bearer somebody"}} {
		for _, path := range []string{"/version", "/api/v1/endpoints"} {
			resp, body := get(t, client, b.url()+path, header...)
			want, says := http.StatusServiceUnavailable, "the cloud"
			if header == nil {
				want, says = http.StatusUnauthorized, "Unauthorized"
			}
			if resp.StatusCode != want || strings.Contains(body, address) || strings.Contains(body, "connect") ||
				!strings.Contains(body, says) {
				t.Errorf("%s with %v: got %d %s", path, header, resp.StatusCode, body)
			}
		}
	}
}
