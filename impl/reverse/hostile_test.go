package reverse

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/testkit"
)

// upgraded is the connection of a hub that is taken, and does what the test wants.
func (b *bed) upgraded(node string) net.Conn {
	b.t.Helper()
	as := b.tls(contract.HubUserPrefix + "harbour:" + node)
	c, err := (&tls.Dialer{Config: as}).DialContext(context.Background(), "tcp", b.addr())
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.Close() })
	b.ask(c)
	says(b.t, c, fmt.Sprintf(switched, b.ways.name))
	return c
}

// ask asks for the upgrade.
func (b *bed) ask(c net.Conn) {
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: gate\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n",
		contract.ReversePath, protocol)
}

// heap is what lives.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestWrongRequests: what is no upgrade is refused, and so is a hub that speaks first.
func TestWrongRequests(t *testing.T) {
	b := newBed(t, WaysConfig{}, FrontConfig{})
	for name, req := range map[string]*http.Request{
		"GET":         httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil),
		"no upgrade":  httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil),
		"another one": httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil),
	} {
		req.Header.Set("Upgrade", map[string]string{"GET": protocol, "another one": "websocket"}[name])
		w := httptest.NewRecorder()
		if b.ways.Admit(w, req, "harbour", "edge-1"); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
	req.Header.Set("Upgrade", protocol)
	if w := httptest.NewRecorder(); true { // cannot be hijacked
		if b.ways.Admit(w, req, "harbour", "edge-1"); w.Code != http.StatusInternalServerError {
			t.Errorf("%d", w.Code)
		}
	}
	as := b.tls(contract.HubUserPrefix + "harbour:edge-1")
	c, err := (&tls.Dialer{Config: as}).DialContext(t.Context(), "tcp", b.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b.ask(c)
	_, _ = io.WriteString(c, "first")
	if _, err := io.ReadAll(c); err != nil {
		t.Log(err)
	}
	if n := len(b.ways.State().Ways); n != 0 {
		t.Errorf("%d ways", n)
	}
}

// TestGarbage: a hub that answers with bytes of no meaning is dropped, before and after its connection counts, and
// others are not touched.
func TestGarbage(t *testing.T) {
	b := newBed(t, WaysConfig{}, FrontConfig{})
	b.lead("edge-1", nil)
	b.listen(kubelet, echo)
	seed := seeded(t)
	for i := range uint64(20) {
		c := b.upgraded("edge-2")
		_, _ = c.Write(bytesOf(seed+i, 1+rand.IntN(2000)))
		_ = c.(*tls.Conn).CloseWrite()
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
	}
	testkit.Until(t, time.Minute, "all to be dropped", func() bool {
		b.ways.mu.Lock()
		defer b.ways.mu.Unlock()
		return b.ways.pools["harbour"].greeted == 0
	})
	if node := b.current(); node != "edge-1" {
		t.Errorf("%q counts", node)
	}
	c := b.dial(kubelet)
	go io.WriteString(c, "hello")
	says(t, c, "hello")
}

// TestSilent: hubs that are taken and say nothing, or by bytes, take a place for some time only, no other one's, and
// not too many places.
func TestSilent(t *testing.T) {
	b := newBed(t, WaysConfig{}, FrontConfig{})
	b.ways.answered = 2 * time.Second
	var all []net.Conn
	for range maxGreeted {
		all = append(all, b.upgraded("edge-2"))
	}
	as := b.tls(contract.HubUserPrefix + "harbour:edge-2")
	c, err := (&tls.Dialer{Config: as}).DialContext(t.Context(), "tcp", b.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b.ask(c)
	says(t, c, "HTTP/1.1 429")
	began := time.Now()
	for i, c := range all {
		if i%2 == 0 { // by bytes
			go func() {
				for settings := []byte{0, 0, 0, 4, 0, 0, 0, 0, 0}; ; time.Sleep(300 * time.Millisecond) {
					for j := range settings {
						if _, err := c.Write(settings[j : j+1]); err != nil {
							return
						}
						time.Sleep(100 * time.Millisecond)
					}
				}
			}()
		}
		_, _ = io.Copy(io.Discard, c)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("they were dropped after %v", took)
	}
	b.lead("edge-1", nil)
}

// TestSlowGate: a leader waits for a gate that says nothing, or without end, within bounds only, and does as told when
// it is told to come later.
func TestSlowGate(t *testing.T) {
	answers := make(chan string, 1)
	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := lis.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				_, _ = io.WriteString(c, <-answers)
				_, _ = io.Copy(io.Discard, c)
			})
		}
	})
	defer all.Wait()
	defer lis.Close()
	l, err := NewLeader(LeaderConfig{
		Gate: "gate:1", Reach: reaches(testReach),
		Dial: func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", lis.Addr().String())
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	l.answered = time.Second
	for answer, want := range map[string]string{
		"HTTP/1.1 403 Forbidden\r\nContent-Length: 8\r\n\r\nnot you\n":               "403 Forbidden, want 101: not you",
		"HTTP/1.1 200 OK\r\n\r\n":                                                    "want 101",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n":             "want 101",
		"HTTP/1.1 101 Switching Protocols\r\nX: " + strings.Repeat("x", 4*maxAnswer): "EOF",
		strings.Repeat("x", 4*maxAnswer):                                             "EOF",
		"HTTP/1.1 503 Busy\r\nRetry-After: 3600\r\nContent-Length: 5\r\n\r\nbusy\n":  "503 Busy",
		switched: "nothing after its 101",
	} {
		answers <- answer
		if err := l.once(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", answer, err, want)
		} else if later := (*laterError)(nil); strings.Contains(answer, "Retry-After") &&
			(!errors.As(err, &later) || later.after != maxAfter) {
			t.Errorf("%v: it comes again too early, or never", err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := l.once(ctx); err == nil {
		t.Error("no error")
	}
	answers <- ""
}

// framer speaks HTTP/2 to the gate as a hub that answers the first request, and reads what the gate says.
func (b *bed) framer(node string) (*http2.Framer, net.Conn) {
	b.t.Helper()
	c := b.upgraded(node)
	says(b.t, c, preface)
	fr := http2.NewFramer(c, c)
	_ = fr.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1000})
	for { // until it has asked
		f, err := fr.ReadFrame()
		if err != nil {
			b.t.Fatal(err)
		}
		if f.Header().Type == http2.FrameHeaders {
			break
		}
	}
	b.headers(fr, 1, true, ":status", "204")
	go func() {
		for {
			f, err := fr.ReadFrame()
			if err != nil {
				return
			}
			if f.Header().Type == http2.FrameHeaders {
				b.requests <- struct{}{}
			}
		}
	}()
	untilT(b.t, "the way through "+node, func() bool { return b.current() == node })
	return fr, c
}

func (b *bed) headers(fr *http2.Framer, id uint32, end bool, fields ...string) {
	var buf bytes.Buffer
	enc := hpack.NewEncoder(&buf)
	for i := 0; i < len(fields); i += 2 {
		_ = enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	_ = fr.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: buf.Bytes(), EndHeaders: true, EndStream: end,
	})
}

// TestBombs: a hub that sends more than it may is dropped, and what it costs is bounded.
func TestBombs(t *testing.T) {
	write := func(c net.Conn, b []byte, n int) {
		for range n {
			if _, err := c.Write(b); err != nil {
				return
			}
		}
	}
	frame := func(kind http2.FrameType, flags http2.Flags, id uint32, n int) []byte {
		var buf bytes.Buffer
		_ = http2.NewFramer(&buf, nil).WriteRawFrame(kind, flags, id, make([]byte, n))
		return buf.Bytes()
	}
	for name, bomb := range map[string]func(fr *http2.Framer, c net.Conn){
		"data beyond the window": func(_ *http2.Framer, c net.Conn) {
			write(c, frame(http2.FrameData, 0, 3, 16<<10), 2000)
		},
		"a header without end": func(_ *http2.Framer, c net.Conn) {
			write(c, frame(http2.FrameHeaders, 0, 3, 100), 1)
			write(c, frame(http2.FrameContinuation, 0, 3, 16<<10), 4000)
		},
		"a frame of 16 MB": func(_ *http2.Framer, c net.Conn) {
			write(c, append([]byte{0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 3},
				make([]byte, 1<<20)...), 64)
		},
		"a large header": func(fr *http2.Framer, c net.Conn) {
			_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, EndHeaders: false, BlockFragment: []byte{0x88}})
			var one bytes.Buffer
			enc := hpack.NewEncoder(&one)
			_ = enc.WriteField(hpack.HeaderField{Name: "x", Value: strings.Repeat("y", 3000)})
			_ = enc.WriteField(hpack.HeaderField{Name: "x", Value: strings.Repeat("y", 3000)})
			again := bytes.Repeat([]byte{0xbe}, 10_000) // an index: 3 kB each
			for range 1000 {
				if fr.WriteContinuation(3, false, append(one.Bytes(), again...)) != nil {
					return
				}
			}
		},
		"pings": func(_ *http2.Framer, c net.Conn) {
			write(c, bytes.Repeat(frame(http2.FramePing, 0, 0, 8), 1000), 300)
		},
		"settings": func(_ *http2.Framer, c net.Conn) {
			write(c, bytes.Repeat(frame(http2.FrameSettings, 0, 0, 0), 1000), 300)
		},
		"resets": func(_ *http2.Framer, c net.Conn) {
			write(c, bytes.Repeat(frame(http2.FrameRSTStream, 0, 3, 4), 1000), 300)
		},
		"unknown": func(_ *http2.Framer, c net.Conn) {
			write(c, frame(0xee, 0, 3, 16<<10), 2000)
		},
		"interim answers": func(fr *http2.Framer, _ net.Conn) {
			for range 10_000 {
				b := bytes.Buffer{}
				enc := hpack.NewEncoder(&b)
				_ = enc.WriteField(hpack.HeaderField{Name: ":status", Value: "103"})
				_ = enc.WriteField(hpack.HeaderField{Name: "link", Value: strings.Repeat("x", 1000)})
				if fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: b.Bytes(), EndHeaders: true}) != nil {
					return
				}
			}
		},
		"no pieces": func(fr *http2.Framer, c net.Conn) {
			var b bed
			b.headers(fr, 3, false, ":status", "200")
			write(c, []byte{0, 0, 2, 0, 0, 0, 0, 0, 3, 0xff, 0xff}, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, WaysConfig{DialWithin: 2 * time.Second}, FrontConfig{})
			fr, c := b.framer("edge-2")
			before := heap()
			asked := make(chan error, 1)
			go func() {
				s, err := b.ways.Dial(t.Context(), Place{Pool: "harbour"}, kubelet)
				if err == nil {
					_, err = io.Copy(io.Discard, s)
					_ = s.Close()
				}
				asked <- err
			}()
			testkit.Value(t, time.Minute, "the request", b.requests)
			bomb(fr, c)
			if grown := int64(heap()) - int64(before); grown > 8<<20 {
				t.Errorf("it costs %d bytes", grown)
			}
			_ = c.Close()
			if err := <-asked; err == nil {
				t.Error("it has worked")
			} else {
				t.Log(err)
			}
			testkit.Until(t, time.Minute, "nothing to be held", func() bool {
				return b.ways.slots.Held() == 0 && b.current() == ""
			})
		})
	}
}

// TestLies: what a hub says as a reason is one short line.
func TestLies(t *testing.T) {
	b := newBed(t, WaysConfig{}, FrontConfig{})
	fr, c := b.framer("edge-2")
	asked := make(chan error, 1)
	go func() {
		_, err := b.ways.Dial(t.Context(), Place{Pool: "harbour"}, kubelet)
		asked <- err
	}()
	testkit.Value(t, time.Minute, "the request", b.requests)
	b.headers(fr, 3, false, ":status", "403")
	_ = fr.WriteData(3, true, []byte("no\r\nSet-Cookie: x\x1b[31m\xff"+strings.Repeat("y", 5000)))
	err := <-asked
	if kindOfError(err) != Refused || len(err.Error()) > maxText || clean(err.Error()) != err.Error() {
		t.Errorf("%q", err)
	}
	_ = c.Close()
}

// TestGateMisbehaves: a gate that asks for other things, or for too much at once, is told so.
func TestGateMisbehaves(t *testing.T) {
	b := newBed(t, WaysConfig{}, FrontConfig{})
	l, _ := b.lead("edge-1", func(c *LeaderConfig) { c.Streams = 1 })
	b.listen(kubelet, echo)
	b.ways.mu.Lock()
	conn := b.ways.pools["harbour"].ways[0].conn
	b.ways.mu.Unlock()
	for path, want := range map[string]int{"/": http.StatusNotFound, contract.ReversePath: http.StatusNoContent} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://hub"+path, nil)
		resp, err := conn.RoundTrip(req)
		if err != nil || resp.StatusCode != want {
			t.Errorf("%s: %v, %v", path, resp, err)
		}
		_ = resp.Body.Close()
	}
	b.dial(kubelet)
	if _, err := b.ways.Dial(t.Context(), Place{Pool: "harbour"}, kubelet); kindOfError(err) != Busy ||
		!strings.Contains(err.Error(), "the hub has as many connections") {
		t.Errorf("%v", err)
	}
	if s := l.State(); s.Open != 1 || s.Connections != 1 {
		t.Errorf("%+v", s)
	}
}
