package door

import (
	"log"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"sync"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/hub/ownwatch"
	"github.com/weir-edge/weir/impl/hub/relayed"
	"github.com/weir-edge/weir/impl/hub/shelter"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/limit"
	"github.com/weir-edge/weir/impl/request"
)

// Proxy sends requests on to the cloud and streams the answers back. Bodies, encodings, trailers and upgrades pass
// through. What tells its length is sent in packets that are full, all else as it comes: a watch event is worth one.
type Proxy struct {
	ProxyConfig
	watches, others *bufferPool // a watch keeps its buffer as long as it is open
	failures        *limit.Quiet
	Own             *ownwatch.Watches // the way AsNode
	errors          *log.Logger
}

// ProxyConfig is what a Proxy is made of.
type ProxyConfig struct {
	Node             string
	AsCaller, AsNode http.RoundTripper
	NodePlace        func() any // see ownwatch.Config.Place
	Shelter          *shelter.Shelter
	Kubelet          *shelter.Kubelet // nil: nothing of it is passed on
	Judge            *identity.Judge
	Written          written
	Demand           *Demand
	Left             func(resource string) bool // a relay has shown it until now
	Clock            clock.WithDelayedExecution
	Logger           *slog.Logger
}

// written is told what became of each write of a relayed resource.
type written interface {
	Observe(t *relayed.Target, resp *http.Response) error // before the writer sees the answer
	Lost(t *relayed.Target)                               // there is none, and the cloud may have done it
}

// NewProxy makes what sends on.
func NewProxy(c ProxyConfig) *Proxy {
	return &Proxy{
		ProxyConfig: c, watches: &bufferPool{size: watchBuffer}, others: &bufferPool{size: otherBuffer},
		Own: ownwatch.New(ownwatch.Config{
			Node: c.Node, Cloud: c.AsNode, Place: c.NodePlace, Clock: c.Clock, Logger: c.Logger,
		}),
		failures: limit.NewQuiet(c.Clock, c.Logger), errors: slog.NewLogLogger(c.Logger.Handler(), slog.LevelDebug),
	}
}

// Passage is a request on its way to the cloud, and back.
type Passage struct {
	Asked  *request.Request
	Who    access.Caller
	Target *relayed.Target // nil: it is about no relayed resource
	Over   answer.Over     // of a watch that ends, in order, when a relay can go on with it; nil: none can

	proxy   *Proxy
	attempt *shelter.Attempt // nil: the store has no part in it
	give    func()           // the way to the cloud back
}

// Serve sends a request on as its caller.
func (p *Proxy) Serve(w http.ResponseWriter, req *http.Request, x Passage) {
	x.proxy = p
	via, buffers := p.AsCaller, p.others
	if x.Who.Kind == access.ThisNode {
		via = p.Own.For(x.Asked)
	}
	if x.Asked.Verb == "watch" {
		buffers = p.watches
	}
	// A watch that goes on where a relay ended which there was passes by the store, too: the hub would have to list what
	// the store lacks, on each node. The store takes the resource up when a client lists it.
	continued := x.Asked.GoesOn() && p.Left(x.Asked.Resource.String())
	if !continued && (x.Target == nil || x.Target.Writes()) { // what relays hold is kept by them
		x.attempt = p.Shelter.Try(req, x.Asked, x.Who, via)
		if x.attempt.Served(w) {
			return
		}
		ctx, done := x.attempt.Begin()
		defer done()
		req, via = req.WithContext(ctx), x.attempt.Way()
	}
	req, give, err := access.AdmissionOf(req.Context()).Way(req)
	if err != nil {
		x.fail(w, req, err)
		return
	}
	defer give()
	x.give = give
	deepen(0)
	(&httputil.ReverseProxy{
		Transport: via, Rewrite: rewrite, BufferPool: buffers, ModifyResponse: x.observe, ErrorHandler: x.fail,
		ErrorLog: p.errors,
	}).ServeHTTP(w, req)
}

// deepen gives the goroutine of a request the stack that it needs at once, while there is little on it to move. An
// HTTP/2 server begins one for each request, and on the way to the cloud its stack would double twice, each time with
// all that is on it. A request that waits does with a small one.
//
//go:noinline
func deepen(i uint8) byte {
	var room [10 << 10]byte
	return room[i]
}

// write is the write of a relayed resource that the request is; nil: it is none.
func (x *Passage) write() *relayed.Target {
	if x.Target != nil && x.Target.Writes() {
		return x.Target
	}
	return nil
}

// observe sees the answer before the client does.
func (x *Passage) observe(resp *http.Response) error {
	if resp.StatusCode == http.StatusUnauthorized {
		a, _ := identity.AttributesOf(x.Asked)
		x.proxy.Judge.Refuse(resp.Request.Header, a)
	}
	x.proxy.Kubelet.Observe(x.Asked, x.Who, resp)
	if t := x.write(); t != nil {
		if err := x.proxy.Written.Observe(t, resp); err != nil {
			return err
		}
	}
	if x.Target == nil { // else it is shared, and a relay cannot answer this one time
		x.proxy.Demand.Passed(x.Asked, resp)
	}
	if x.Asked.Verb == "watch" {
		answer.Whole(resp, x.Over, x.proxy.Clock)
	}
	if resp.StatusCode == http.StatusSwitchingProtocols { // it lasts
		x.give()
	}
	return x.attempt.Observe(resp)
}

// rewrite leaves a request as it came, but for hop-by-hop headers, which ReverseProxy has removed, and what the door
// has (illFormed, clean).
func rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "https", "cloud", "" // doors choose the server
	r.Out.URL.RawQuery = r.In.URL.RawQuery
}

// fail answers a request that has no answer of the cloud.
func (x *Passage) fail(w http.ResponseWriter, req *http.Request, err error) {
	p, asked := x.proxy, x.Asked
	if busy := access.BusyStatus(err); busy != nil {
		answer.Write(w, busy)
		return
	}
	if x.attempt.Rescue(w, err) {
		return
	}
	if t := x.write(); t != nil && !uplink.Unsent(err) {
		p.Written.Lost(t)
	}
	why := ": " + err.Error() // it names addresses
	if access.AdmissionOf(req.Context()).Unproven() {
		why = ""
	}
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
