package hub

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"sync"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/quiet"
	"github.com/weir-edge/weir/impl/request"
)

// proxy sends requests on to the cloud and streams the answers back. Bodies, encodings, trailers and upgrades pass through.
type proxy struct {
	asCaller, asHub   *httputil.ReverseProxy
	viaCaller, viaHub http.RoundTripper // below them
	shelter           *shelter          // nil: nothing is kept
	judge             *identity.Judge
	written           written
	logger            *slog.Logger
	failures          *quiet.Log
}

type proxyConfig struct {
	asCaller, asHub http.RoundTripper
	written         written
	clock           clock.PassiveClock
	logger          *slog.Logger
}

// written is told what became of each write of a relayed resource.
type written interface {
	observe(t *target, resp *http.Response) error // before the writer sees the answer
	lost(t *target)                               // there is none, and the cloud may have done it
}

// passage is a request on its way through ReverseProxy; passageKey carries it to its answer.
type passage struct {
	asked  *request.Request
	target *target // nil: it is about no relayed resource
}

type passageKey struct{}

func passageOf(req *http.Request) passage {
	p, _ := req.Context().Value(passageKey{}).(passage)
	return p
}

func newProxy(c proxyConfig) *proxy {
	p := &proxy{logger: c.logger, failures: quiet.New(c.clock, c.logger), viaCaller: c.asCaller, viaHub: c.asHub, written: c.written}
	buffers := &bufferPool{}
	build := func(rt http.RoundTripper) *httputil.ReverseProxy {
		return &httputil.ReverseProxy{
			Transport:     rt,
			Rewrite:       rewrite,
			FlushInterval: -1, // a watch event is worth a packet
			BufferPool:    buffers,
			ModifyResponse: func(resp *http.Response) error {
				if resp.StatusCode == http.StatusUnauthorized {
					a, _ := identity.AttributesOf(passageOf(resp.Request).asked)
					p.judge.Refuse(resp.Request.Header, a)
				}
				if t := writeOf(resp.Request); t != nil {
					if err := c.written.observe(t, resp); err != nil {
						return err
					}
				}
				if p.shelter != nil {
					return p.shelter.observe(resp)
				}
				return nil
			},
			ErrorHandler: p.fail,
			ErrorLog:     log.New(logWriter{c.logger}, "", 0),
		}
	}
	p.asCaller, p.asHub = build(c.asCaller), build(c.asHub)
	return p
}

// writeOf is the write of a relayed resource that a request is, nil if it is none.
func writeOf(req *http.Request) *target {
	if t := passageOf(req).target; t != nil && t.Writes() {
		return t
	}
	return nil
}

// rewrite leaves a request as it came, but for hop-by-hop headers, which ReverseProxy has removed, and what front has (illFormed, clean).
func rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "https", "cloud", "" // doors choose the server
	r.Out.URL.RawQuery = r.In.URL.RawQuery
}

// serve sends a request on as its caller. t is set if it is about a relayed resource.
func (p *proxy) serve(w http.ResponseWriter, req *http.Request, asked *request.Request, who caller, t *target) {
	req = req.WithContext(context.WithValue(req.Context(), passageKey{}, passage{asked, t}))
	next, via := p.asCaller, p.viaCaller
	if who.kind == thisNode {
		next, via = p.asHub, p.viaHub
	}
	if p.shelter != nil && (t == nil || t.Writes()) { // what relays hold is kept by them
		p.shelter.serve(w, req, asked, who, via, next)
		return
	}
	next.ServeHTTP(w, req)
}

func (p *proxy) fail(w http.ResponseWriter, req *http.Request, err error) {
	if busy := busyStatus(err); busy != nil {
		writeStatus(w, busy)
		return
	}
	if p.shelter != nil && p.shelter.rescue(req.Context(), w, err) {
		return
	}
	var connect *connectError
	if t := writeOf(req); t != nil && !errors.Is(err, errNoServer) && !errors.As(err, &connect) {
		p.written.lost(t)
	}
	why := ": " + err.Error() // it names addresses
	if admissionOf(req.Context()).unproven() {
		why = ""
	}
	switch {
	case req.Context().Err() != nil: // the client is gone, or the hub ends
		writeStatus(w, unavailable("the request was cancelled"))
	case errors.Is(err, errNoServer), errors.As(err, &connect):
		p.logger.Debug("the cloud cannot be reached", "method", req.Method, "path", req.URL.Path, "err", err)
		writeStatus(w, unavailable("the hub cannot reach the cloud"+why))
	default:
		p.failures.Say(slog.LevelInfo, "", "a request to the cloud failed", "method", req.Method, "path", req.URL.Path, "err", err.Error())
		read := req.Method == http.MethodGet || req.Method == http.MethodHead
		writeStatus(w, badGateway(read, "the hub lost the cloud's answer"+why))
	}
}

// logWriter turns lines of ReverseProxy and http.Server into records.
type logWriter struct{ logger *slog.Logger }

func (w logWriter) Write(p []byte) (int, error) {
	w.logger.Debug("http", "msg", string(p))
	return len(p), nil
}

// bufferPool lends the buffers that bodies are copied through.
type bufferPool struct{ pool sync.Pool }

const bufferSize = 32 << 10

func (b *bufferPool) Get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, bufferSize)
}

func (b *bufferPool) Put(p []byte) { b.pool.Put(&p) }
