package hub

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/hub/uplink"
)

var alice = []string{"Authorization", "Bearer alice"}

// TestProxyPassesThrough: verbs, paths, queries, bodies and headers arrive as they were sent.
func TestProxyPassesThrough(t *testing.T) {
	b := newBed(t, 1)
	b.start()
	client := b.client(nil)
	uri := "/echo/a%2Fb/c;d?labelSelector=a%20in%20(b,c)&x=%zz&watch=1&empty="
	for _, method := range []string{
		http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
	} {
		t.Run(method, func(t *testing.T) {
			body := strings.Repeat("x", 100_000)
			_, answer := do(t, client, method, b.url()+uri, []byte(body), append(alice,
				"Accept-Encoding", "gzip", "Content-Type", "application/merge-patch+json", "Impersonate-User", "carol",
				"User-Agent", "kubelet/v1")...)
			var e echo
			check(t, json.Unmarshal([]byte(answer), &e))
			if e.Method != method || e.URI != uri || e.Body != body || e.User != "alice" {
				t.Errorf("arrived: %s %s by %s, body of %d", e.Method, e.URI, e.User, len(e.Body))
			}
			for name, want := range map[string]string{
				"Accept-Encoding": "gzip", "Content-Type": "application/merge-patch+json", "Impersonate-User": "carol",
				"User-Agent": "kubelet/v1",
			} {
				if got := e.Header.Get(name); got != want {
					t.Errorf("header %s: got %q, want %q", name, got, want)
				}
			}
			if e.Proto != "HTTP/2.0" {
				t.Errorf("over %s", e.Proto)
			}
		})
	}
}

// TestProxyStreams: each piece of an answer arrives at once, and a client that leaves ends the request at the cloud.
func TestProxyStreams(t *testing.T) {
	b := newBed(t, 1)
	b.start()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url()+"/slow/hello", nil)
	check(t, err)
	req.Header.Set(alice[0], alice[1])
	resp, err := b.client(nil).Do(req)
	check(t, err)
	defer resp.Body.Close()
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	if err != nil || line != "hello\n" {
		t.Errorf("got %q, %v", line, err)
	}
	cancel()
	// The fake cloud's handler ends only when its request does: goleak and its Close would notice.
}

// TestProxyUpgrade: upgrades pass, over HTTP/1.1 up to the cloud, with the identity of the caller.
func TestProxyUpgrade(t *testing.T) {
	b := newBed(t, 1)
	b.start()
	node := b.ca.tls("system:node:edge-1", "system:nodes")
	for _, protocol := range []string{"SPDY/3.1", "websocket"} {
		for user, config := range map[string]*tls.Config{
			"alice":              {RootCAs: b.local.pool()},
			"system:node:edge-1": {RootCAs: b.local.pool(), Certificates: []tls.Certificate{node}},
		} {
			t.Run(protocol+" by "+user, func(t *testing.T) {
				conn, err := tls.Dial("tcp", b.hub.Addr().String(), config)
				check(t, err)
				defer conn.Close()
				auth := ""
				if user == "alice" {
					auth = "Authorization: Bearer alice\r\n"
				}
				fmt.Fprintf(conn, "POST /upgrade?command=sh HTTP/1.1\r\nHost: hub\r\nConnection: Upgrade\r\nUpgrade: %s\r\n%s\r\n",
					protocol, auth)
				in := bufio.NewReader(conn)
				resp, err := http.ReadResponse(in, nil)
				check(t, err)
				if resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("Upgrade") != protocol ||
					resp.Header.Get("X-User") != user {
					body, _ := io.ReadAll(resp.Body)
					t.Fatalf("got %d %v %s", resp.StatusCode, resp.Header, body)
				}
				for _, word := range []string{"hello", "again"} {
					fmt.Fprintln(conn, word)
					line, err := in.ReadString('\n')
					if err != nil || line != strings.ToUpper(word)+"\n" {
						t.Errorf("sent %q, got %q, %v", word, line, err)
					}
				}
			})
		}
	}
}

// TestProxyWithoutCloud: a hub whose cloud is away says so to whom it does not know, and recovers by itself.
func TestProxyWithoutCloud(t *testing.T) {
	b := newBed(t, 1)
	link := newCut(t, strings.TrimPrefix(b.clouds[0].url(), "https://"))
	b.config.CloudServers = []string{link.url()}
	link.set(true)
	b.start()
	client := b.client(nil)
	for _, path := range []string{"/echo/x", "/api/v1/endpoints"} {
		resp, body := get(t, client, b.url()+path, alice...)
		var s metav1.Status
		check(t, json.Unmarshal([]byte(body), &s))
		// what a relay may know soon; client-go would ask ten times before it tells that nobody knows a caller.
		again := resp.Header.Get("Retry-After") != ""
		if resp.StatusCode != http.StatusServiceUnavailable || again != (path == "/api/v1/endpoints") || s.Kind != "Status" ||
			s.Reason != metav1.StatusReasonServiceUnavailable {
			t.Errorf("%s: got %d %v %s", path, resp.StatusCode, resp.Header, body)
		}
	}
	link.set(false)
	eventually(t, "requests to pass again", func() bool {
		resp, _ := get(t, client, b.url()+"/echo/x", alice...)
		return resp.StatusCode == http.StatusOK
	})
	eventually(t, "relays to be fed", func() bool {
		resp, _ := get(t, client, b.url()+"/api/v1/endpoints", alice...)
		return resp.StatusCode == http.StatusOK
	})
	// Cut off in the middle of a request: the answer is lost, and only a read may be sent again without a thought.
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url()+"/slow/x", nil)
	check(t, err)
	req.Header.Set(alice[0], alice[1])
	resp, err := client.Do(req)
	check(t, err)
	defer resp.Body.Close()
	link.set(true)
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("a stream that broke looks complete")
	}
}

// TestProxySeveralServers: one server is used as long as it is healthy; without it, requests with bodies go to the
// next.
func TestProxySeveralServers(t *testing.T) {
	b := newBed(t, 2)
	link := newCut(t, strings.TrimPrefix(b.clouds[0].url(), "https://"))
	b.config.CloudServers[0] = link.url()
	b.start()
	client := b.client(nil)
	post := func() {
		t.Helper()
		resp, body := do(t, client, http.MethodPost, b.url()+"/echo/x", []byte("payload"), alice...)
		var e echo
		if err := json.Unmarshal([]byte(body), &e); err != nil || resp.StatusCode != http.StatusOK || e.Body != "payload" {
			t.Fatalf("got %d %s", resp.StatusCode, body)
		}
	}
	count := func(i int) (n int) {
		b.clouds[i].set(func() { n = len(b.clouds[i].seen) })
		return n
	}
	for range 10 {
		post()
	}
	if n := count(1); n != 0 {
		t.Errorf("the spare server got %d requests while the first one is healthy", n)
	}
	link.set(true)
	// a request on a connection that just died may be lost, a read is sent again.
	eventually(t, "idle connections to notice", func() bool {
		resp, _ := get(t, client, b.url()+"/echo/x", alice...)
		return resp.StatusCode == http.StatusOK
	})
	for range 10 {
		post()
	}
	eventually(t, "the other server to be used", func() bool { return b.hub.cloud.Status()[1].InUse })
	link.set(false)
	before := count(1)
	post()
	if count(1) == before {
		t.Error("went back to the first server for no reason")
	}
	b.clouds[1].set(func() { b.clouds[1].ready = http.StatusInternalServerError })
	eventually(t, "the first server to be used again", func() bool { return b.hub.cloud.Status()[0].InUse })
	post()
}

// TestOneHandshake: many requests at once on a fresh hub open one connection for each class and identity.
func TestOneHandshake(t *testing.T) {
	b := newBed(t, 1)
	b.config.HeartbeatInterval, b.config.HeartbeatTimeout = time.Minute, 30*time.Second // a probe may ask as the node
	b.start()
	clients := 20
	errs := make(chan error)
	for i := range clients {
		go func() {
			c := b.client(nil)
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url()+"/echo/x",
				strings.NewReader(fmt.Sprint("body ", i)))
			req.Header.Set(alice[0], alice[1])
			resp, err := c.Do(req)
			if err == nil {
				body, _ := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if !strings.Contains(string(body), fmt.Sprintf("body %d\"", i)) {
					err = fmt.Errorf("got %s", body)
				}
			}
			errs <- err
		}()
	}
	for range clients {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	for _, c := range uplink.Classes {
		if n := b.hub.cloud.Bytes(c).Connections; n > 1 {
			t.Errorf("%d connections of class %s", n, c)
		}
	}
}

// TestStopRefuses: a client whose watch ends because the hub does, and that opens it again at once, is told to try
// later: a watch that ends within a second and shows nothing makes client-go list.
func TestStopRefuses(t *testing.T) {
	b := newBed(t, 1)
	uri := "/apis/discovery.k8s.io/v1/endpointslices?watch=1&allowWatchBookmarks=true"
	watch := func(c *http.Client) (*http.Response, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url()+uri, nil)
		check(t, err)
		req.Header.Set(alice[0], alice[1])
		return c.Do(req)
	}
	for range 2 {
		stop := b.start()
		eventually(t, "the hub to serve", func() bool {
			resp, _ := get(t, b.client(nil), b.url()+"/apis/discovery.k8s.io/v1/endpointslices", alice...)
			return resp.StatusCode == http.StatusOK
		})
		var open sync.WaitGroup
		clients := make([]*http.Client, 20)
		for i := range clients {
			clients[i] = b.client(nil)
			resp, err := watch(clients[i])
			check(t, err)
			open.Go(func() {
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				resp, err := watch(clients[i])
				if err != nil {
					return // nobody listens any more
				}
				defer resp.Body.Close()
				if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
					t.Errorf("a hub that ends answers %s", resp.Status)
				}
			})
		}
		stop()
		open.Wait()
	}
}
