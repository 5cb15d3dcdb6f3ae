package store

import (
	"context"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
)

// out is what the etcd of this replica asks another one.
type out struct {
	config *MeshConfig
	links  *links
	name   string
	to     *url.URL
	close  func() // nil: its socket is not open

	mu      sync.Mutex
	way     *way // for what begins now
	streams map[*stream]struct{}
}

func newOut(c *MeshConfig, l *links, name string, to *url.URL) *out {
	return &out{config: c, links: l, name: name, to: to, way: newWay(c, l, name, to), streams: map[*stream]struct{}{}}
}

// handler hands what etcd asks of the replica on.
func (o *out) handler() http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = o.to.Scheme, o.to.Host, ""
		},
		Transport:     o,
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			o.config.Logger.Debug("another replica is not reached", "replica", o.name, "err", err)
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
		ErrorLog: o.config.quietly(),
	}
}

// RoundTrip implements http.RoundTripper. A stream of raft's messages is one that moves.
func (o *out) RoundTrip(req *http.Request) (*http.Response, error) {
	w := o.now()
	resp, err := w.transport.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusOK || !strings.HasPrefix(req.URL.Path, "/raft/stream/") {
		return resp, err
	}
	s := &stream{logger: o.config.Logger, req: req, way: w, body: resp.Body}
	s.ended = func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.streams, s)
	}
	resp.Body = s
	o.mu.Lock()
	defer o.mu.Unlock()
	o.streams[s] = struct{}{}
	return resp, nil
}

func (o *out) now() *way {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.way
}

// follow makes another connection when one of its ends has another certificate, and moves the streams there, so that
// the one before can end without a loss: etcd does not say again what was under way when a stream broke, and a write
// would fail.
func (o *out) follow(ctx context.Context) {
	w := o.now()
	theirs, ours := w.certificates()
	if theirs == "" { // etcd has not been there yet
		return
	}
	shows, err := w.ask(ctx)
	pair, mine := o.config.Certificate()
	if err != nil || mine != nil {
		return
	}
	if shows != theirs || short(pair.Certificate[0]) != ours {
		next := newWay(o.config, o.links, o.name, o.to)
		if _, err := next.ask(ctx); err != nil {
			o.config.Logger.Warn("a replica cannot be met with the certificates of now: the connection of before goes on",
				"replica", o.name, "err", err)
			next.transport.CloseIdleConnections()
			return
		}
		o.mu.Lock()
		o.way = next
		o.mu.Unlock()
		theirs, ours = next.certificates()
		o.config.Logger.Info("a replica is met with other certificates from now on", "replica", o.name, "theirs", theirs,
			"ours", ours)
		w = next
	}
	o.mu.Lock()
	var behind []*stream
	for s := range o.streams {
		if s.on() != w {
			behind = append(behind, s)
		}
	}
	o.mu.Unlock()
	for _, s := range behind {
		s.move(w)
	}
}
