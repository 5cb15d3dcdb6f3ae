package door

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"sync"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/hub/relayed"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/quiet"
	"github.com/weir-edge/weir/impl/request"
)

// Proxy sends requests on to the cloud and streams the answers back. Bodies, encodings, trailers and upgrades pass
// through.
type Proxy struct {
	ProxyConfig
	asCaller, asNode passages
	failures         *quiet.Log
}

// ProxyConfig is what a Proxy is made of.
type ProxyConfig struct {
	AsCaller, AsNode http.RoundTripper
	Shelter          Shelter
	Judge            *identity.Judge
	Written          written
	Left             func(resource string) bool // a relay has shown it until now
	Clock            clock.Clock
	Logger           *slog.Logger
}

// written is told what became of each write of a relayed resource.
type written interface {
	Observe(t *relayed.Target, resp *http.Response) error // before the writer sees the answer
	Lost(t *relayed.Target)                               // there is none, and the cloud may have done it
}

// passages are the ways to the cloud of one credential. A watch keeps its buffer as long as it is open. What tells its
// length is sent in packets that are full, all else as it comes: a watch event is worth one.
type passages struct{ watch, other *httputil.ReverseProxy }

func (p passages) of(asked *request.Request) http.Handler {
	if asked.Verb == "watch" {
		return p.watch
	}
	return p.other
}

// passage is a request on its way through ReverseProxy; passageKey carries it to its answer.
type passage struct {
	asked  *request.Request
	target *relayed.Target // nil: it is about no relayed resource
	over   answer.Over     // of a watch that a relay may go on with; nil: none does
}

type passageKey struct{}

func passageOf(req *http.Request) passage {
	p, _ := req.Context().Value(passageKey{}).(passage)
	return p
}

// NewProxy makes what sends on.
func NewProxy(c ProxyConfig) *Proxy {
	p := &Proxy{ProxyConfig: c, failures: quiet.New(c.Clock, c.Logger)}
	watches, others := &bufferPool{size: watchBuffer}, &bufferPool{size: otherBuffer}
	build := func(rt http.RoundTripper, buffers *bufferPool) *httputil.ReverseProxy {
		return &httputil.ReverseProxy{
			Transport:  rt,
			Rewrite:    rewrite,
			BufferPool: buffers,
			ModifyResponse: func(resp *http.Response) error {
				if resp.StatusCode == http.StatusUnauthorized {
					a, _ := identity.AttributesOf(passageOf(resp.Request).asked)
					p.Judge.Refuse(resp.Request.Header, a)
				}
				if t := writeOf(resp.Request); t != nil {
					if err := c.Written.Observe(t, resp); err != nil {
						return err
					}
				}
				if passed := passageOf(resp.Request); passed.asked.Verb == "watch" {
					answer.Whole(resp, passed.over, c.Clock)
				}
				return p.Shelter.Observe(resp)
			},
			ErrorHandler: p.fail,
			ErrorLog:     slog.NewLogLogger(c.Logger.Handler(), slog.LevelDebug),
		}
	}
	p.asCaller = passages{build(c.AsCaller, watches), build(c.AsCaller, others)}
	p.asNode = passages{build(c.AsNode, watches), build(c.AsNode, others)}
	return p
}

// writeOf is the write of a relayed resource that a request is, nil if it is none.
func writeOf(req *http.Request) *relayed.Target {
	if t := passageOf(req).target; t != nil && t.Writes() {
		return t
	}
	return nil
}

// rewrite leaves a request as it came, but for hop-by-hop headers, which ReverseProxy has removed, and what the door
// has (illFormed, clean).
func rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "https", "cloud", "" // doors choose the server
	r.Out.URL.RawQuery = r.In.URL.RawQuery
}

// Serve sends a request on as its caller. t is set if it is about a relayed resource.
func (p *Proxy) Serve(w http.ResponseWriter, req *http.Request, asked *request.Request, who access.Caller,
	t *relayed.Target) {
	p.ServeUntil(w, req, asked, who, t, nil)
}

// ServeUntil is Serve for a watch that ends, in order, when over says so.
func (p *Proxy) ServeUntil(w http.ResponseWriter, req *http.Request, asked *request.Request, who access.Caller,
	t *relayed.Target, over answer.Over) {
	req = req.WithContext(context.WithValue(req.Context(), passageKey{}, passage{asked, t, over}))
	next, via := p.asCaller.of(asked), p.AsCaller
	if who.Kind == access.ThisNode {
		next, via = p.asNode.of(asked), p.AsNode
	}
	// A watch that goes on where a relay ended which there was passes by the store, too: the hub would have to list what
	// the store lacks, on each node. The store takes the resource up when a client lists it.
	continued := asked.GoesOn() && p.Left(asked.Resource.String())
	if !continued && (t == nil || t.Writes()) { // what relays hold is kept by them
		p.Shelter.Serve(w, req, asked, who, via, next)
		return
	}
	next.ServeHTTP(w, req)
}

func (p *Proxy) fail(w http.ResponseWriter, req *http.Request, err error) {
	if busy := access.BusyStatus(err); busy != nil {
		answer.Write(w, busy)
		return
	}
	if p.Shelter.Rescue(req.Context(), w, err) {
		return
	}
	if t := writeOf(req); t != nil && !uplink.Unsent(err) {
		p.Written.Lost(t)
	}
	why := ": " + err.Error() // it names addresses
	if access.AdmissionOf(req.Context()).Unproven() {
		why = ""
	}
	asked := passageOf(req).asked
	switch {
	case req.Context().Err() != nil: // the client is gone, or the hub ends
		answer.Write(w, answer.Unavailable("the request was cancelled"))
	case uplink.Unsent(err) || asked.GoesOn():
		p.Logger.Debug("the cloud cannot be reached", "method", req.Method, "path", req.URL.Path, "err", err)
		refusal := answer.Unavailable("the hub cannot reach the cloud" + why)
		if asked.GoesOn() {
			refusal = answer.ComeAgain(refusal)
		}
		answer.Write(w, refusal)
	default:
		p.failures.Say(slog.LevelInfo, "", "a request to the cloud failed", "method", req.Method, "path", req.URL.Path, "err",
			err.Error())
		read := req.Method == http.MethodGet || req.Method == http.MethodHead
		answer.Write(w, answer.BadGateway(read, "the hub lost the cloud's answer"+why))
	}
}

// Sizes of buffers: most events fit into one.
const (
	watchBuffer = 8 << 10
	otherBuffer = 32 << 10
)

// bufferPool lends the buffers that bodies are copied through.
type bufferPool struct {
	size int
	pool sync.Pool
}

func (b *bufferPool) Get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, b.size)
}

func (b *bufferPool) Put(p []byte) { b.pool.Put(&p) }
