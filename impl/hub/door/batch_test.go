package door

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// countedListener counts the writes to the connections it accepts.
type countedListener struct {
	net.Listener
	writes, bytes atomic.Int64
}

type countedConn struct {
	net.Conn
	l *countedListener
}

func (l *countedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &countedConn{c, l}, nil
}

func (c *countedConn) Write(p []byte) (int, error) {
	c.l.writes.Add(1)
	c.l.bytes.Add(int64(len(p)))
	return c.Conn.Write(p)
}

func client(t *testing.T, config *tls.Config, http2 bool) *http.Client {
	tr := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: http2, DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 2 * time.Minute}
}

// serveBatched serves a handler as the hub does, and returns its URL, and what counts its writes.
func serveBatched(t *testing.T, h http.Handler) (url string, roots *tls.Config, l *countedListener, stop func()) {
	t.Helper()
	raw, err := Listen(&net.ListenConfig{}, "--secure-port", "127.0.0.1", 0)
	check(t, err)
	known := httptest.NewTLSServer(nil) // for its certificate
	known.Close()
	l = &countedListener{Listener: raw}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, Certificates: known.TLS.Certificates,
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Serve(ctx, l, config, h, nil, slog.New(slog.DiscardHandler))
	}()
	stop = func() {
		cancel()
		check(t, <-done)
	}
	return "https://" + raw.Addr().String(), &tls.Config{
		RootCAs: known.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs,
	}, l, stop
}

func TestBatchesArriveWhole(t *testing.T) {
	sent := make([]byte, 20<<20)
	_, err := rand.Read(sent)
	check(t, err)
	url, roots, l, stop := serveBatched(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		for i, p := 0, sent; len(p) > 0; i++ { // writes of all sizes
			n := min(1+i*7919%(100<<10), len(p))
			if _, err := w.Write(p[:n]); err != nil {
				t.Error(err)
			}
			p = p[n:]
		}
	}))
	defer stop()
	for _, http2 := range []bool{true, false} {
		before := l.writes.Load()
		c := client(t, roots.Clone(), http2)
		resp, err := c.Get(url)
		check(t, err)
		got, err := io.ReadAll(resp.Body)
		check(t, err)
		check(t, resp.Body.Close())
		if (resp.ProtoMajor == 2) != http2 || !bytes.Equal(got, sent) {
			t.Errorf("%s: %d bytes, not those sent", resp.Proto, len(got))
		}
		if writes := l.writes.Load() - before; http2 && writes > 2000 { // 1,300 frames; one by one they take 2,600 and more
			t.Errorf("%d writes", writes)
		}
		c.CloseIdleConnections()
	}
}

func TestBatchedStreamsEndWithTheirClients(t *testing.T) {
	ended := make(chan error, 1)
	chunk := make([]byte, 64<<10)
	url, roots, _, stop := serveBatched(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		for {
			if _, err := w.Write(chunk); err != nil {
				ended <- err
				return
			}
		}
	}))
	defer stop()
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		check(t, err)
		resp, err := client(t, roots.Clone(), true).Do(req)
		check(t, err)
		_, err = io.CopyN(io.Discard, resp.Body, 5<<20)
		check(t, err)
		cancel()
		_ = resp.Body.Close()
		<-ended
	})
	t.Run("connection lost while nothing is read", func(t *testing.T) {
		var lost net.Conn
		tr := &http.Transport{TLSClientConfig: roots.Clone(), ForceAttemptHTTP2: true}
		tr.DialContext = func(ctx context.Context, network, addr string) (c net.Conn, err error) {
			lost, err = (&net.Dialer{}).DialContext(ctx, network, addr)
			return lost, err
		}
		resp, err := (&http.Client{Transport: tr}).Get(url)
		check(t, err)
		defer resp.Body.Close()
		check(t, lost.Close())
		<-ended
	})
}

// A stop does not cut off an answer that its client is about to read.
func TestBatchedAnswersAreFinishedAtAStop(t *testing.T) {
	sent := make([]byte, 300<<10)
	began := make(chan struct{})
	url, roots, _, stop := serveBatched(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(began)
		_, _ = w.Write(sent)
	}))
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-began
		stop()
	}()
	resp, err := client(t, roots, true).Get(url)
	check(t, err)
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || len(got) != len(sent) {
		t.Errorf("%d of %d bytes: %v", len(got), len(sent), err)
	}
	<-stopped
}
