package offlinetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// floodEnv makes the test binary be the pod that floods: JSON of a flooder.
const floodEnv = "WEIR_OFFLINE_TEST_FLOOD"

// flooder is a pod that floods. It is a process of its own, with one processor and the last to get one: on a machine of
// two processors it would else take from the hub, and from the callers whose waits are measured, what the hub never
// spent. It writes frames and hardly looks at the answers, so a request costs it a few microseconds.
type flooder struct {
	Address, Host string
	CA            []byte
	Token         string // "random" is another one for each request; "": none
	Paths         []string
	Rate          int // requests a second, 0: it opens connections
}

// flooded is what became of it.
type flooded struct {
	Sent    int64
	Answers map[string]int64 // by code
}

// startFlood returns once so much of a flood is under way that it counts, however busy the machine is. stop ends it.
func (b *bed) startFlood(f flooder) (stop func() flooded) {
	t := b.t
	arg, err := json.Marshal(f)
	check(t, err)
	exe, err := os.Executable()
	check(t, err)
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), floodEnv+"="+string(arg), "GOMAXPROCS=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	check(t, err)
	stdout, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, cmd.Process.Pid, 19)
	out := json.NewDecoder(stdout)
	var done flooded
	check(t, out.Decode(&done))
	return func() (done flooded) {
		_ = stdin.Close()
		if err := out.Decode(&done); err != nil {
			t.Errorf("the flood: %v", err)
		}
		_ = cmd.Wait()
		return done
	}
}

// floodMain is the process of a flooder. It tells what it did when it has begun, and again when its input ends.
func floodMain(ctx context.Context, arg string) error {
	var f flooder
	if err := json.Unmarshal([]byte(arg), &f); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	var sent atomic.Int64
	counts := &counted{n: map[string]int64{}}
	var wg sync.WaitGroup
	if f.Rate == 0 {
		wg.Go(func() { f.connect(ctx, &sent) })
	} else {
		for range 4 {
			wg.Go(func() {
				for ctx.Err() == nil {
					if err := f.requests(ctx, &sent, counts); err != nil {
						counts.add("connection ended")
					}
				}
			})
		}
	}
	begun, out := context.WithCancel(ctx)
	each(begun, 10*time.Millisecond, func() {
		if sent.Load() >= 50 {
			out()
		}
	})
	out()
	tell := json.NewEncoder(os.Stdout)
	if err := tell.Encode(flooded{Sent: sent.Load()}); err != nil {
		return err
	}
	wg.Wait()
	return tell.Encode(flooded{sent.Load(), counts.n})
}

type counted struct {
	mu sync.Mutex
	n  map[string]int64
}

func (c *counted) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[what]++
}

func (f *flooder) config(protocol string) *tls.Config {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(f.CA)
	return &tls.Config{RootCAs: roots, ServerName: f.Host, NextProtos: []string{protocol}, MinVersion: tls.VersionTLS13}
}

// maxOpen is how many streams the hub allows on a connection.
const maxOpen = 100

// requests sends a quarter of the rate over one connection. What the hub does not answer soon enough is reset for the
// next one.
func (f *flooder) requests(ctx context.Context, sent *atomic.Int64, counts *counted) error {
	conn, err := (&tls.Dialer{Config: f.config("h2")}).DialContext(ctx, "tcp", f.Address)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	var mu sync.Mutex // of what is written, and of open
	open := map[uint32]bool{}
	var out bytes.Buffer
	framer := http2.NewFramer(&out, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	out.WriteString(http2.ClientPreface)
	_ = framer.WriteSettings()
	ended := make(chan error, 1)
	go func() { ended <- f.answers(framer, &mu, open, counts) }()
	const every = 10 * time.Millisecond
	var block bytes.Buffer
	encoder, n, due := hpack.NewEncoder(&block), 0, 0.0
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		mu.Lock()
		for due += float64(f.Rate) / 4 * every.Seconds(); due >= 1; due-- {
			sent.Add(1)
			if len(open) >= maxOpen {
				oldest := slices.Min(slices.Collect(maps.Keys(open)))
				_ = framer.WriteRSTStream(oldest, http2.ErrCodeCancel)
				delete(open, oldest)
				counts.add("reset")
			}
			block.Reset()
			f.head(encoder, f.Paths[n%len(f.Paths)])
			id := uint32(2*n + 1)
			_ = framer.WriteHeaders(http2.HeadersFrameParam{
				StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true,
			})
			open[id] = true
			n++
		}
		_, err := conn.Write(out.Bytes())
		out.Reset()
		mu.Unlock()
		if err != nil {
			return err
		}
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (f *flooder) head(encoder *hpack.Encoder, path string) {
	fields := []hpack.HeaderField{
		{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "hub"},
		{Name: ":path", Value: path},
	}
	switch f.Token {
	case "":
	case "random":
		var raw [32]byte
		_, _ = rand.Read(raw[:])
		fields = append(fields, hpack.HeaderField{
			Name: "authorization", Value: "Bearer " + hex.EncodeToString(raw[:]), Sensitive: true,
		})
	default:
		fields = append(fields, hpack.HeaderField{Name: "authorization", Value: "Bearer " + f.Token})
	}
	for _, h := range fields {
		_ = encoder.WriteField(h)
	}
}

// answers reads answers and forgets them.
func (f *flooder) answers(framer *http2.Framer, mu *sync.Mutex, open map[uint32]bool, counts *counted) error {
	taken := uint32(0)
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return err
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			counts.add(frame.PseudoValue("status"))
		case *http2.DataFrame:
			taken += frame.Length
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				mu.Lock()
				_ = framer.WriteSettingsAck()
				mu.Unlock()
			}
		case *http2.GoAwayFrame:
			return fmt.Errorf("GOAWAY: %v", frame.ErrCode)
		}
		if h := frame.Header(); h.Type == http2.FrameRSTStream ||
			h.Type <= http2.FrameHeaders && h.Flags.Has(http2.FlagDataEndStream) {
			mu.Lock()
			delete(open, h.StreamID)
			mu.Unlock()
		}
		if taken > 16<<10 {
			mu.Lock()
			_ = framer.WriteWindowUpdate(0, taken)
			mu.Unlock()
			taken = 0
		}
	}
}

// connect opens connections that do nothing, that send headers slowly, and that send a body slowly.
func (f *flooder) connect(ctx context.Context, sent *atomic.Int64) {
	config := f.config("http/1.1")
	begin := []string{
		"", "GET /version HTTP/1.1\r\nHost: hub\r\nX-Slow: ",
		"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer nobody\r\n" +
			"Content-Length: 100000\r\n\r\n",
	}
	var wg sync.WaitGroup
	for i := range 2000 {
		if ctx.Err() != nil {
			break
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", f.Address)
		if err != nil {
			continue
		}
		sent.Add(1)
		wg.Go(func() {
			defer conn.Close()
			first := begin[0]
			if i%4 == 0 {
				first = begin[1+i/4%2]
			}
			out := conn
			if first != "" {
				secure := tls.Client(conn, config)
				if secure.HandshakeContext(ctx) != nil {
					return
				}
				out = secure
			}
			_, _ = io.WriteString(out, first)
			each(ctx, time.Second, func() { _, _ = io.WriteString(out, strings.Repeat("x", min(1, len(first)))) })
		})
	}
	<-ctx.Done()
	wg.Wait()
}
