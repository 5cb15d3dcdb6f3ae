package attack

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/limit"
	"github.com/weir-edge/weir/sim/runtime"
)

// watchMemory looks at the hub's memory while something happens, and judges its growth.
func (x *scene) watchMemory(ctx context.Context, what string, do func() error) error {
	return x.watchMemoryOf(ctx, x.hub(1), what, do)
}

// watchMemoryOf does so with that of any part.
func (x *scene) watchMemoryOf(ctx context.Context, part runtime.Part, what string, do func() error) error {
	memory := func() int64 {
		u, err := part.Usage()
		if err != nil {
			return -1
		}
		return u.RSSAnon
	}
	before, peak := memory(), atomic.Int64{}
	looking, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		within(looking, patience, func() bool { peak.Store(max(peak.Load(), memory())); return false })
	})
	err := do()
	peak.Store(max(peak.Load(), memory()))
	stop()
	wg.Wait()
	grown := peak.Load() - before
	x.judge(grown < moreMemory && part.Running(), "%s: RssAnon +%d MB", what, grown>>20)
	return err
}

// flood has somebody get many paths.
func (x *scene) flood(ctx context.Context, account string, n int, path func(i int) string) error {
	token, err := x.account(ctx, account)
	if err != nil {
		return err
	}
	who := actor{token: token}
	client, base, err := x.client(hubDoor, who, false)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	var refused atomic.Int32
	asking, cancel := context.WithTimeout(ctx, 3*time.Minute) // a hub that limits him lets him not come to an end
	defer cancel()
	err = parallel(asking, 32, n, func(i int) {
		if a := do(ctx, client, base, who, ask{path: path(i)}); a.code == http.StatusTooManyRequests {
			refused.Add(1)
		}
	})
	x.note("%d of %d answered by 429", refused.Load(), n)
	if asking.Err() != nil {
		return ctx.Err()
	}
	return err
}

func badTokens(ctx context.Context, x *scene) error {
	before, bytes := x.connections(), x.crossed()
	good := 0
	const n = 200
	for i := range n {
		x.let("bad", actor{token: fmt.Sprintf("bad-%d", i)})
		x.send(ctx, ask{as: "bad", path: plainMap})
		// a quick machine meets the reader's own limit of rate.
		if a := x.insist(ctx, ask{as: "reader", path: plainMap}); a.code == http.StatusOK {
			good++
		}
	}
	dials := x.connections() - before
	x.judge(dials <= fewDials, "%d new connections, %d kB", dials, (x.crossed()-bytes)>>10)
	x.control(good == n, "%d of %d", good, n)
	return nil
}

func anonymousFlood(ctx context.Context, x *scene) error {
	client, base, err := x.client(hubDoor, actor{}, false)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	before, bytes := x.connections(), x.crossed()
	var codes sync.Map
	err = parallel(ctx, 1000, 1000, func(i int) {
		path := "/version"
		if i%2 == 1 {
			path = "/api/v1/pods"
		}
		a := do(ctx, client, base, actor{}, ask{path: path})
		n, _ := codes.LoadOrStore(a.code, new(atomic.Int32))
		n.(*atomic.Int32).Add(1)
	})
	dials, crossed := x.connections()-before, (x.crossed()-bytes)>>10
	x.judge(dials <= fewDials, "%d new connections", dials)
	x.judge(crossed <= 100, "%d kB over the uplink", crossed)
	codes.Range(func(code, n any) bool { x.note("%d × %v", n.(*atomic.Int32).Load(), code); return true })
	return err
}

// stream2 is a bare connection of HTTP/2.
type stream2 struct {
	net.Conn
	*http2.Framer
	block bytes.Buffer
	enc   *hpack.Encoder
	next  uint32
}

func (g *ground) http2(ctx context.Context, d door, who actor) (*stream2, error) {
	c, err := g.dial(ctx, d, who, "h2")
	if err != nil {
		return nil, err
	}
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	s := &stream2{Conn: c, Framer: http2.NewFramer(c, c), next: 1}
	s.enc = hpack.NewEncoder(&s.block)
	_, err = io.WriteString(c, http2.ClientPreface)
	if err := errors.Join(err, s.WriteSettings()); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return s, nil
}

// head is a block of headers of a GET.
func (s *stream2) head(path string, more ...hpack.HeaderField) []byte {
	s.block.Reset()
	for _, f := range append(
		[]hpack.HeaderField{
			{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "hub"},
			{Name: ":path", Value: path},
		},
		more...,
	) {
		_ = s.enc.WriteField(f)
	}
	return bytes.Clone(s.block.Bytes())
}

// drain reads frames and forgets them, until the connection ends.
func (s *stream2) drain() {
	go func() {
		for {
			if _, err := s.ReadFrame(); err != nil {
				return
			}
		}
	}()
}

func headerFlood(ctx context.Context, x *scene) error { return x.floodHeaders(ctx, hubDoor, x.hub(1)) }

// floodHeaders opens streams at a door of a part with headers that do not end.
func (x *scene) floodHeaders(ctx context.Context, d door, part runtime.Part) error {
	const connections, streams, pieces, piece = 4, 100, 56, 16 << 10
	return x.watchMemoryOf(ctx, part, "900 kB of headers on each of 400 streams", func() error {
		var all []*stream2
		defer func() {
			for _, s := range all {
				_ = s.Close()
			}
		}()
		ended := 0
		for range connections {
			s, err := x.http2(ctx, d, actor{})
			if err != nil {
				return err
			}
			all = append(all, s)
			s.drain()
			err = func() error {
				for range streams {
					value := strings.Repeat("v", 4000)
					var fields []hpack.HeaderField
					for i := range pieces * piece / 4000 {
						fields = append(
							fields, hpack.HeaderField{Name: fmt.Sprintf("x-%d", i), Value: value, Sensitive: true},
						)
					}
					block := s.head("/api/v1/pods", fields...)
					first := true
					for len(block) > 0 {
						part := block[:min(len(block), piece)]
						block = block[len(part):]
						var err error
						if first {
							err = s.WriteHeaders(
								http2.HeadersFrameParam{
									StreamID: s.next, BlockFragment: part, EndHeaders: len(block) == 0,
								},
							)
						} else {
							err = s.WriteContinuation(s.next, len(block) == 0, part)
						}
						if err != nil {
							return err
						}
						first = false
					}
					s.next += 2
				}
				return nil
			}()
			if err != nil {
				ended++
			}
		}
		x.note("%d of %d connections ended by the other end", ended, connections)
		return nil
	})
}

// watching opens a watch as the reader, and returns what reports whether it lives.
func (x *scene) watching(ctx context.Context) (alive func() bool, sees func(string) bool, stop func(), err error) {
	who, err := x.who("reader")
	if err != nil {
		return nil, nil, nil, err
	}
	client, base, err := x.client(hubDoor, who, false)
	if err != nil {
		return nil, nil, nil, err
	}
	client.Timeout = 0
	ctx, cancel := context.WithCancel(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+slices1+"?watch=1", nil)
	if err != nil {
		cancel()
		return nil, nil, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+who.token)
	resp, err := client.Do(req) //nolint:bodyclose // closed by the function that is returned
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.Join(errors.New(resp.Status), resp.Body.Close())
	}
	if err != nil {
		cancel()
		return nil, nil, nil, err
	}
	var mu sync.Mutex
	var seen strings.Builder
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buf := make([]byte, 64<<10)
		for {
			n, err := resp.Body.Read(buf)
			mu.Lock()
			seen.Write(buf[:n])
			mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	alive = func() bool {
		select {
		case <-ended:
			return false
		default:
			return true
		}
	}
	sees = func(s string) bool { mu.Lock(); defer mu.Unlock(); return strings.Contains(seen.String(), s) }
	return alive, sees, func() { cancel(); <-ended; _ = resp.Body.Close(); client.CloseIdleConnections() }, nil
}

// resets opens watches and resets them at once, each with a token of its own or all with one and a selector each.
func resets(token func(connection uint32, i int) string, path func(i int) string) func(context.Context, *scene) error {
	return func(ctx context.Context, x *scene) error { return x.rapidReset(ctx, token, path) }
}

func (x *scene) rapidReset(ctx context.Context, token func(uint32, int) string, path func(int) string) error {
	alive, sees, stop, err := x.watching(ctx)
	if err != nil {
		return err
	}
	defer stop()
	before := x.connections()
	err = x.watchMemory(ctx, "2,000 watches opened and reset", func() error {
		for connection := range uint32(4) {
			s, err := x.http2(ctx, hubDoor, actor{})
			if err != nil {
				return err
			}
			s.drain()
			for i := range 500 {
				block := s.head(
					path(i),
					hpack.HeaderField{
						Name: "authorization", Value: "Bearer " + token(connection, i), Sensitive: true,
					},
				)
				err := s.WriteHeaders(
					http2.HeadersFrameParam{StreamID: s.next, BlockFragment: block, EndHeaders: true, EndStream: true},
				)
				if err == nil {
					err = s.WriteRSTStream(s.next, http2.ErrCodeCancel)
				}
				s.next += 2
				if err != nil { // the hub has enough of it
					break
				}
			}
			_ = s.Close()
		}
		within(ctx, 3*time.Second, func() bool { return false })
		return nil
	})
	dials := x.connections() - before
	x.judge(dials <= fewDials, "%d new connections", dials)
	x.judge(alive(), "the open watch lives: %t", alive())
	stamp := fmt.Sprintf("after-%d", time.Now().UnixNano())
	if _, err := x.admin.DiscoveryV1().EndpointSlices("a").Patch(
		ctx, "shop-1", "application/merge-patch+json", []byte(`{"metadata":{"annotations":{"reset":"`+stamp+`"}}}`),
		metav1.PatchOptions{},
	); err != nil {
		return err
	}
	x.control(within(ctx, patience, func() bool { return sees(stamp) }), "a change is seen in the watch")
	return err
}

func longSelector(ctx context.Context, x *scene) error {
	list := ask{as: "reader", path: plainMaps, codes: ok, has: "hello"}
	if a := x.send(ctx, list); !a.right(list) {
		return fmt.Errorf("the list of before: %s", a)
	}
	if err := x.flushed(ctx); err != nil {
		return err
	}
	odd := []ask{
		{path: plainMaps + "?labelSelector=" + long(40_000)}, {path: plainMaps + "?labelSelector=" + long(200_000)}, {
			path: plainMaps + "?watch=1&labelSelector=" + long(40_000),
		},
		{path: plainMaps + "?fieldSelector=metadata.name%3D" + strings.Repeat("n", 40_000)},
		{path: plainMap + "x" + strings.Repeat("y", 32_400)}, {
			path: plainMap + strings.Repeat("z", 60_000),
		},
		{path: plainMaps + "?limit=1&labelSelector=" + long(33_000)}, {path: "/apis/" + strings.Repeat("g", 40_000)},
		{path: plainMap, header: []string{"User-Agent: " + strings.Repeat("u", 40_000)}}, {
			path: plainMap, header: []string{"Accept: application/json;" + strings.Repeat("a", 40_000)},
		},
	}
	for _, q := range odd {
		q.as = "reader"
		x.note("%s: %s", q, x.send(ctx, q))
	}
	if _, err := x.admin.CoreV1().ConfigMaps("a").Create(
		ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "later"}, Data: map[string]string{"greeting": "later"}},
		metav1.CreateOptions{},
	); err != nil {
		return err
	}
	later := ask{as: "reader", path: plainMaps, codes: ok, has: "later"}
	recorded := func() float64 { return x.metrics(ctx, 1).Sum("weir_offline_recorded_total") }
	before := recorded()
	// What a client has got is recorded next: only then is it of what waits to be written. The answers of before may be
	// recorded meanwhile, too, so there is one more of these.
	for range len(odd) + 1 {
		if a := x.send(ctx, later); !a.right(later) {
			return fmt.Errorf("the later object: %s", a)
		}
	}
	all := within(ctx, patience, func() bool { return recorded() > before+float64(len(odd)) }) && x.flushed(ctx) == nil
	failed := x.metrics(ctx, 1).Sum("weir_store_errors_total")
	x.judge(all && failed == 0, "all is written: %t, %g writes failed", all, failed)
	if err := x.hub(1).Kill(); err != nil {
		return err
	}
	x.site.Link(x.place.name).Cut(3, "")
	defer x.site.Link(x.place.name).HealAll()
	if err := x.hub(1).Start(ctx); err != nil {
		return err
	}
	var a answer
	kept := within(ctx, 30*time.Second, func() bool { a = x.send(ctx, later); return a.right(later) })
	x.judge(kept, "after a restart without the cloud, what came later: %s", a)
	early := list
	x.control(within(ctx, 30*time.Second, func() bool { a = x.send(ctx, early); return a.right(early) }),
		"what came before: %s", a)
	return nil
}

// firstPages begins many paged lists and leaves them.
func firstPages(ctx context.Context, x *scene) error {
	for i := range 3 {
		_, err := x.admin.CoreV1().ConfigMaps("a").Create(
			ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("page-%d", i)}},
			metav1.CreateOptions{},
		)
		if err != nil {
			return err
		}
	}
	token, err := x.account(ctx, "pager")
	if err != nil {
		return err
	}
	x.let("pager", actor{token: token})
	if err := parallel(ctx, 8, 100, func(i int) {
		x.send(
			ctx,
			ask{
				as: "pager", path: fmt.Sprintf("%s?limit=1&labelSelector=!p%d", plainMaps, i),
				header: []string{fmt.Sprintf("User-Agent: pager-%d/1.0", i)},
			},
		)
	}); err != nil {
		return err
	}
	next := ""
	for range 20 {
		a := x.send(
			ctx, ask{as: "reader", path: plainMaps + "?limit=2" + next, header: []string{"User-Agent: victim/1.0"}},
		)
		if a.code != http.StatusOK {
			return fmt.Errorf("the victim's page: %s", a)
		}
		_, token, more := strings.Cut(a.body, `"continue":"`)
		if !more {
			return nil
		}
		token, _, _ = strings.Cut(token, `"`)
		next = "&continue=" + token
	}
	return errors.New("the victim's list has no end")
}

func readNothing(ctx context.Context, x *scene) error {
	return x.watchMemory(ctx, "100 answers that nobody reads", func() error {
		who, err := x.who("reader")
		if err != nil {
			return err
		}
		var open []net.Conn
		defer func() {
			for _, c := range open {
				_ = c.Close()
			}
		}()
		for range 100 {
			c, err := x.dial(ctx, hubDoor, who, "http/1.1")
			if err != nil {
				return err
			}
			open = append(open, c)
			if _, err := io.WriteString(
				c, "GET /openapi/v2 HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer "+who.token+"\r\n\r\n",
			); err != nil {
				x.note("a request is not taken: %v", err)
			}
		}
		within(ctx, 90*time.Second, func() bool { return false })
		return nil
	})
}

func idleConnections(ctx context.Context, x *scene) error {
	before, err := x.hub(1).Usage()
	if err != nil {
		return err
	}
	var open []net.Conn
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	address, config, err := x.address(hubDoor)
	if err != nil {
		return err
	}
	var dialer net.Dialer
	refusals := 0
	for i := range 1800 {
		c, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			refusals++
			continue
		}
		open = append(open, c)
		if i < 1500 {
			continue
		}
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		go func() {
			host, _, _ := net.SplitHostPort(address)
			mine := config.Clone()
			mine.ServerName, mine.NextProtos = host, []string{"http/1.1"}
			t := tls.Client(c, mine)
			head := "GET /version HTTP/1.1\r\nHost: hub\r\nX-"
			if i >= 1700 {
				head = "POST /version HTTP/1.1\r\nHost: hub\r\nContent-Length: 1000000\r\n\r\n"
			}
			if _, err := io.WriteString(t, head); err != nil {
				return
			}
			for range 60 {
				if _, err := io.WriteString(t, "x"); err != nil {
					return
				}
				within(ctx, time.Second, func() bool { return false })
			}
		}()
	}
	within(ctx, 3*time.Second, func() bool { return false })
	after, err := x.hub(1).Usage()
	if err != nil {
		return err
	}
	x.judge(
		after.Files-before.Files < 1100, "%d connections opened, %d refused: open files +%d", len(open), refusals,
		after.Files-before.Files,
	)
	x.judge(after.RSSAnon-before.RSSAnon < moreMemory, "RssAnon +%d MB", (after.RSSAnon-before.RSSAnon)>>20)
	// Others come from other addresses.
	a := x.fromElsewhere(ctx)
	x.control(a.code == http.StatusOK, "a pod at another address: %s", a)
	return nil
}

// fromElsewhere reads as the reader from another address of this machine.
func (x *scene) fromElsewhere(ctx context.Context) answer {
	who, err := x.who("reader")
	if err != nil {
		return answer{err: err}
	}
	client, base, err := x.client(hubDoor, who, false)
	if err != nil {
		return answer{err: err}
	}
	defer client.CloseIdleConnections()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 200, 0, 9)}}
	client.Transport.(*http.Transport).DialContext = dialer.DialContext
	return do(ctx, client, base, who, ask{path: plainMap})
}

// linesOf counts what a part has logged.
func linesOf(part runtime.Part) int {
	data, _ := os.ReadFile(part.LogFile())
	return bytes.Count(data, []byte("\n"))
}

func fillLog(ctx context.Context, x *scene) error {
	before := linesOf(x.hub(1))
	if err := parallel(ctx, 16, 2000, func(i int) {
		q := ask{
			as: "other", path: fmt.Sprintf("/api/v1/namespaces/n%d/secrets/s%d", i, i),
			header: []string{fmt.Sprintf("User-Agent: agent-%d/1.%d", i, i)},
		}
		switch i % 4 {
		case 1:
			q.as = "reader"
		case 2:
			q.header = append(q.header, fmt.Sprintf("Authorization: Bearer log-%d", i))
		case 3:
			q.header = append(q.header, fmt.Sprintf("Impersonate-User: log-%d", i))
		}
		x.send(ctx, q)
	}); err != nil {
		return err
	}
	more := linesOf(x.hub(1)) - before
	x.judge(more <= 100, "%d lines", more)
	return nil
}

// bomb sends little that is much when it is inflated.
func bomb(ctx context.Context, x *scene) error {
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return err
	}
	zeros := make([]byte, 1<<20)
	for range 512 {
		if _, err := z.Write(zeros); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	one := packed.String() // members of gzip may follow each other
	body := strings.Repeat(one, 8)
	return x.watchMemory(ctx, fmt.Sprintf("4 GiB in %d MB", len(body)>>20), func() error {
		for _, q := range []ask{
			{
				as: "kubelet", method: http.MethodPut, path: leaseOfOwn,
			}, {as: "kubelet", method: http.MethodPatch, path: "/api/v1/nodes/{node}/status"}, {
				as: "kubelet", method: http.MethodPost, path: "/api/v1/namespaces/a/events",
			},
			{as: "kubelet", method: http.MethodPost, path: "/api/v1/namespaces/a/serviceaccounts/reader/token"},
			{as: "reader", method: http.MethodPost, path: plainMaps}, {
				as: "reader", method: http.MethodPost, path: slicesOfA,
			},
			{method: http.MethodPost, path: plainMaps},
		} {
			q.header, q.body = []string{kubeletAgent, "Content-Encoding: gzip", "Content-Type: application/json"}, body
			a := x.send(ctx, q)
			x.note("%s as %s: %s", q, q.as, a)
		}
		return nil
	})
}

func manyWatches(ctx context.Context, x *scene) error {
	who, err := x.who("reader")
	if err != nil {
		return err
	}
	return x.watchMemory(ctx, "1,800 watches of one token", func() error {
		watching, stop := context.WithCancel(ctx)
		defer stop()
		var open, refused atomic.Int32
		var wg sync.WaitGroup
		defer wg.Wait()
		defer stop()
		begin := func(client *http.Client, base string) {
			wg.Go(func() {
				req, err := http.NewRequestWithContext(watching, http.MethodGet, base+slices1+"?watch=1", nil)
				if err != nil {
					return
				}
				req.Header.Set("Authorization", "Bearer "+who.token)
				resp, err := client.Do(req)
				if err != nil {
					refused.Add(1)
					return
				}
				defer resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					refused.Add(1)
					return
				}
				open.Add(1)
				_, _ = io.Copy(io.Discard, resp.Body)
			})
		}
		one, base, err := x.client(hubDoor, who, false)
		if err != nil {
			return err
		}
		one.Timeout = 0
		defer one.CloseIdleConnections()
		for range 1500 {
			begin(one, base)
		}
		for range 300 {
			c, base, err := x.client(hubDoor, who, false)
			if err != nil {
				return err
			}
			c.Timeout = 0
			defer c.CloseIdleConnections()
			begin(c, base)
		}
		within(ctx, 20*time.Second, func() bool { return open.Load()+refused.Load() >= 1800 })
		x.note("%d are open, %d refused", open.Load(), refused.Load())
		return nil
	})
}

// littleRoom is a place of one hub that has 8 MiB for callers, of which one alone may take three quarters.
func littleRoom(number string) *place {
	p := own(number)
	p.flags["callers-max-bytes"] = limit.LeastCallersBytes
	return p
}

// upgradedWatches opens watches that leave HTTP behind, and holds them.
func upgradedWatches(ctx context.Context, x *scene) error {
	const share = limit.LeastCallersBytes / 4 * 3 / limit.WatchBytes
	who, err := x.who("reader")
	if err != nil {
		return err
	}
	codes := map[int]int{}
	for range 200 {
		c, err := x.dial(ctx, hubDoor, actor{}, "http/1.1")
		if err != nil {
			return err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(answerPatience))
		if _, err := io.WriteString(c, "GET "+plainMaps+"?watch=1 HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer "+who.token+
			"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nOrigin: http://hub\r\n"+
			"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"); err != nil {
			return err
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil) //nolint:bodyclose // its connection is closed
		if err != nil {
			return err
		}
		codes[resp.StatusCode]++
	}
	open, refused := codes[http.StatusSwitchingProtocols], codes[http.StatusTooManyRequests]
	x.judge(open <= share && open+refused == 200, "answers by code: %v, want at most %d upgraded and 429", codes, share)
	x.control(open > 0, "watches that were upgraded: %d", open)
	return nil
}
