package hub

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/limit"
)

// heldPath is where requests are held, see held.
const heldPath = "/apis/held.example.com/v1/namespaces/default/"

// held is a part of the cloud that is slow: it answers a request when the test lets it go.
type held struct {
	let chan struct{} // one for each; closed for all

	mu        sync.Mutex
	now, most int
	seen      map[string]bool // URIs of all that came
}

func newHeld() *held { return &held{let: make(chan struct{}), seen: map[string]bool{}} }

// ServeHTTP implements http.Handler.
func (h *held) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	_, _ = io.Copy(io.Discard, req.Body)
	h.mu.Lock()
	h.now++
	h.most, h.seen[req.RequestURI] = max(h.most, h.now), true
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.now--
	}()
	select {
	case <-h.let:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{}`)
	case <-req.Context().Done():
	}
}

func (h *held) at() (now, most int, seen map[string]bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now, h.most, maps.Clone(h.seen)
}

// waiting is how many requests wait, as the metric has it.
func (b *bed) waiting() (n int) {
	families, err := b.hub.metrics.registry.Gather()
	check(b.t, err)
	for _, f := range families {
		if f.GetName() == "weir_hub_waiting_requests" {
			n = int(f.GetMetric()[0].GetGauge().GetValue())
		}
	}
	return n
}

// codes are what requests were answered; 0: they were not.
type codes struct {
	mu sync.Mutex
	n  map[int]int
	wg sync.WaitGroup
}

// send sends a request, and counts the answer when it comes.
func (c *codes) send(ctx context.Context, t *testing.T, by *http.Client, method, url string, body io.Reader, size int64,
	header ...string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	check(t, err)
	if body != nil {
		req.ContentLength = size
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	c.wg.Go(func() {
		code := 0
		if resp, err := by.Do(req); err == nil {
			code = resp.StatusCode
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.n == nil {
			c.n = map[int]int{}
		}
		c.n[code]++
	})
}

func (c *codes) all() map[int]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.n)
}

// TestWays: while the cloud is slow to answer lists of one caller, some of them are there at once and the others wait.
// All are answered in the end. Nobody else waits, and nothing else of that caller. A request that leaves while it waits
// never reaches the cloud.
func TestWays(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of requests at once take the race detector longer than their clients wait")
	}
	b := newBed(t, 1)
	b.config.CallersMaxBytes = 2 * limit.DefaultCallersBytes // for what the caller asks beside its lists
	b.start()
	b.fed()
	cloud, cert := b.clouds[0].held, b.ca.tls("system:node:edge-1", "system:nodes")
	client, other, node := fewConnections(b.client(nil)), b.client(nil), b.client(&cert)
	bob := []string{"Authorization", "Bearer bob"}
	get(t, client, b.url()+"/echo/x", alice...)
	get(t, other, b.url()+"/echo/x", bob...)

	const kinds = 300
	var lists codes
	leave := make([]context.CancelFunc, kinds)
	uri := func(i int) string { return fmt.Sprintf("%skind-%d?limit=500", heldPath, i) }
	for i := range kinds {
		var ctx context.Context
		ctx, leave[i] = context.WithCancel(t.Context())
		defer leave[i]()
		lists.send(ctx, t, client, http.MethodGet, b.url()+uri(i), nil, 0, alice...)
	}
	eventually(t, "all lists to be at the cloud, or to wait", func() bool {
		now, _, _ := cloud.at()
		return now+b.waiting() == kinds
	})
	_, most, seen := cloud.at()
	if most != limit.CallerWays {
		t.Errorf("%d lists of one caller are at the cloud at once, want %d", most, limit.CallerWays)
	}

	for _, who := range []struct {
		name  string
		by    *http.Client
		shows []string
	}{{"another caller", other, bob}, {"the kubelet", node, nil}, {"the caller itself", other, alice}} {
		var objects codes
		for i := range limit.CallerWays {
			objects.send(t.Context(), t, who.by, http.MethodGet, fmt.Sprintf("%s/echo/%d", b.url(), i), nil, 0, who.shows...)
		}
		objects.send(t.Context(), t, who.by, http.MethodGet, b.url()+"/api/v1/endpoints", nil, 0, who.shows...)
		lease := `{"metadata":{"name":"edge-1","namespace":"kube-node-lease"},"spec":{"holderIdentity":"edge-1"}}`
		objects.send(t.Context(), t, who.by, http.MethodPost,
			b.url()+"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", strings.NewReader(lease),
			int64(len(lease)), append([]string{"Content-Type", "application/json"}, who.shows...)...)
		eventually(t, who.name+" to be answered beside the lists", func() bool {
			n := 0
			for _, answers := range objects.all() {
				n += answers
			}
			return n == limit.CallerWays+2
		})
		if all := objects.all(); all[0]+all[http.StatusTooManyRequests]+all[http.StatusServiceUnavailable] > 0 {
			t.Errorf("%s beside the lists: %v", who.name, all)
		}
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var watches codes
	for i := range limit.CallerWays + 1 { // they last, so they do not wait
		for _, path := range []string{"kind-%d?watch=1", "pods/p%d/log?follow=1"} {
			watches.send(ctx, t, client, http.MethodGet, b.url()+heldPath+fmt.Sprintf(path, i), nil, 0, alice...)
		}
	}
	eventually(t, "watches and logs to be at the cloud", func() bool {
		now, _, _ := cloud.at()
		return now == limit.CallerWays+2*(limit.CallerWays+1)
	})
	end()
	watches.wg.Wait()

	gone := 0
	for seen[uri(gone)] {
		gone++
	}
	leave[gone]()
	eventually(t, "the one that leaves to wait no more", func() bool {
		return b.waiting() == kinds-limit.CallerWays-1
	})
	cloud.let <- struct{}{}
	eventually(t, "another one to get its way", func() bool {
		now, _, _ := cloud.at()
		return b.waiting() == kinds-limit.CallerWays-2 && now == limit.CallerWays
	})
	close(cloud.let)
	lists.wg.Wait()
	if all := lists.all(); all[http.StatusOK] != kinds-1 || all[0] != 1 {
		t.Errorf("answers %v, want %d good ones and the one that left", all, kinds-1)
	}
	if _, _, seen := cloud.at(); seen[uri(gone)] || b.waiting() != 0 {
		t.Errorf("the one that left reached the cloud: %t; %d wait", seen[uri(gone)], b.waiting())
	}
}

// TestWaysAndBodies: requests of which the bodies do not come take no way, and what waits takes no room of its
// connection that those need which are at the cloud.
func TestWaysAndBodies(t *testing.T) {
	for name, size := range map[string]int{"small": limit.WaitingBody, "large": 2 * limit.WaitingBody} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, 1)
			b.start()
			client := b.client(nil)
			client.Transport.(*http.Transport).MaxConnsPerHost = 1
			get(t, client, b.url()+"/echo/x", alice...)
			var begun, whole codes
			var bodies []*io.PipeWriter
			for i := range limit.CallerWays {
				r, w := io.Pipe()
				bodies = append(bodies, w)
				begun.send(t.Context(), t, client, http.MethodPost, fmt.Sprintf("%s/echo/%d", b.url(), i), r, int64(size), alice...)
				_, err := w.Write([]byte("x")) // it is on its way
				check(t, err)
			}
			for i := range limit.CallerWays {
				whole.send(t.Context(), t, client, http.MethodPost, fmt.Sprintf("%s/echo/whole-%d", b.url(), i),
					strings.NewReader(strings.Repeat("x", size)), int64(size), alice...)
			}
			eventually(t, "requests that are whole to be answered", func() bool {
				return whole.all()[http.StatusOK] == limit.CallerWays
			})
			for _, w := range bodies {
				_, err := io.WriteString(w, strings.Repeat("x", size-1))
				check(t, err)
				check(t, w.Close())
			}
			begun.wg.Wait()
			if all := begun.all(); all[http.StatusOK] != limit.CallerWays {
				t.Errorf("requests whose bodies came late: %v", all)
			}
		})
	}
}

// TestWaysAndUpgrades: what speaks another protocol lasts, whatever its path says, and takes no way of its caller.
func TestWaysAndUpgrades(t *testing.T) {
	b := newBed(t, 1)
	b.start()
	client := b.client(nil)
	get(t, client, b.url()+"/echo/x", alice...)
	for range limit.CallerWays + 1 {
		conn, err := tls.Dial("tcp", b.hub.Addr().String(), &tls.Config{RootCAs: b.local.pool()})
		check(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, "GET /upgrade HTTP/1.1\r\nHost: hub\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Authorization: Bearer alice\r\n\r\n")
		check(t, err)
		check(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		check(t, err)
		if resp.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("an upgrade: %s", resp.Status)
		}
	}
	if resp, body := get(t, client, b.url()+"/echo/x", alice...); resp.StatusCode != http.StatusOK {
		t.Errorf("beside them: %d %s", resp.StatusCode, body)
	}
}
