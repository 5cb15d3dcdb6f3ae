package uplink

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Transport is an http.Transport that is replaced when credentials change.
type Transport struct {
	make    func() *http.Transport
	current atomic.Pointer[http.Transport]

	mu      sync.Mutex
	retired []*http.Transport
}

// NewTransport makes a transport by what builds one with the credentials of now.
func NewTransport(build func() *http.Transport) *Transport {
	t := &Transport{make: build}
	t.current.Store(build())
	return t
}

// RoundTrip implements http.RoundTripper, but after a *connectError the body of the request is as it was, and open.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	var body *heldBody
	if req.Body != nil && req.Body != http.NoBody {
		body = &heldBody{inner: req.Body}
		req = req.WithContext(req.Context())
		req.Body = body
	}
	for {
		resp, err := t.current.Load().RoundTrip(req)
		if errors.Is(err, errRaced) && req.Context().Err() == nil {
			time.Sleep(settling / 10)
			continue
		}
		var connect *connectError
		if body != nil && !errors.As(err, &connect) {
			body.settle()
		}
		return resp, err
	}
}

// heldBody keeps a body open over attempts that found no connection: http.Transport closes what it could not send.
type heldBody struct {
	inner io.ReadCloser

	mu      sync.Mutex
	used    bool // it was read, or its attempt was the last
	closing bool // Close was called before
}

func (b *heldBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	b.used = true
	b.mu.Unlock()
	return b.inner.Read(p)
}

func (b *heldBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closing = true
	if b.used {
		return b.inner.Close()
	}
	return nil
}

// settle says that no attempt follows.
func (b *heldBody) settle() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.used && b.closing {
		_ = b.inner.Close()
	}
	b.used = true
}

// Renew sends new requests over new connections. Streams that are open stay on theirs.
func (t *Transport) Renew() {
	t.mu.Lock()
	t.retired = append(t.retired, t.current.Swap(t.make()))
	t.mu.Unlock()
	t.Sweep()
}

// Sweep closes connections of before a renewal on which nothing runs any more.
func (t *Transport) Sweep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, old := range t.retired {
		old.CloseIdleConnections()
	}
}

// Close closes connections on which nothing runs.
func (t *Transport) Close() {
	t.Sweep()
	t.current.Load().CloseIdleConnections()
}

// TransportConfig says what connections of a transport are like.
type TransportConfig struct {
	Dialer      *Dialer
	http1       bool          // HTTP/1.1 only: see route
	IdlePing    time.Duration // HTTP/2: ask whether the peer is there after that much silence
	PingTimeout time.Duration // and give up if not a byte has come after as much again: an answer may be behind what pours
	window      int           // HTTP/2: bytes of a stream that may be under way; 0: what Go allows
	connections int           // to each server; 0: no bound
	late        time.Duration // after so long without an answer a request has failed; 0: it never has
	idle        time.Duration // after so long without a request a connection ends; 0: it stays. HTTP/1.1 has a minute
}

// pingBehind is how long the answer to a ping may be behind bytes that still come.
const pingBehind = 5 * time.Minute

// Build makes an http.Transport.
func (c TransportConfig) Build() *http.Transport {
	t := &http.Transport{
		DialTLSContext: c.Dialer.dial,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("plain HTTP upstreams are not supported")
		},
		DisableCompression:    true, // encodings pass untouched
		MaxIdleConnsPerHost:   8,
		ExpectContinueTimeout: time.Second,
		IdleConnTimeout:       c.idle,
		ResponseHeaderTimeout: c.late,
		MaxConnsPerHost:       c.connections,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: c.IdlePing, PingTimeout: pingBehind, MaxReceiveBufferPerStream: c.window,
		},
	}
	t.Protocols = new(http.Protocols)
	if c.http1 {
		t.Protocols.SetHTTP1(true)
		t.IdleConnTimeout = time.Minute
	} else {
		c.Dialer.turns, c.Dialer.silence = newTurns(), c.IdlePing+c.PingTimeout
		t.Protocols.SetHTTP1(true)
		t.Protocols.SetHTTP2(true)
	}
	return t
}
