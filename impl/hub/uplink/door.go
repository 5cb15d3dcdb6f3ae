package uplink

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"
)

// Class is a class of traffic to the cloud. Each has connections of its own, so that bulk never delays a heartbeat and
// bytes can be counted by class.
type Class string

// The classes.
const (
	ClassPool      Class = "pool"      // what the pool has one copy of: feeds of relays, API discovery
	ClassNode      Class = "node"      // requests of the node's clients
	ClassHeartbeat Class = "heartbeat" // the Lease of this node, and those that a leader forwards
	ClassControl   Class = "control"   // probes, and small reads of the hub itself
	ClassReach     Class = "reach"     // what the cloud reaches in the pool through this hub
)

// Classes are those of what is sent to the cloud's servers.
var Classes = []Class{ClassPool, ClassNode, ClassHeartbeat, ClassControl}

// Counted are all, by which bytes are counted.
var Counted = append(slices.Clip(Classes), ClassReach)

// Credential is whose certificate a connection carries.
type Credential uint8

// A hub has certificates of its own and lends them to nobody else: what its node's kubelet asks goes on as the node,
// never as the hub.
const (
	AsCaller    Credential = iota // nobody's
	AsNode                        // of this node, for its kubelet's requests, and the hub's for certificates
	AsHub                         // of the hub's own user, for all that the hub reads for itself and for its pool
	AsForwarder                   // of anyone who forwards heartbeats of this pool
	asNobody                      // nobody's, for requests without a token
	asUnproven                    // nobody's, for tokens of which nothing is known, see package access
)

// poolWindow bounds what a stream of class pool has under way. What was sent for a watch that is over still takes its
// time of a thin link. A link of 10 Mbit/s and 200 ms is kept busy by it.
const poolWindow = 256 << 10

// poolIdle is how long a connection of class pool stays on which nothing runs: a hub that follows has no use for the
// one by which it filled its relays, and each would cost the cloud a connection, and the link its pings.
const poolIdle = time.Minute

// serverIdle is the same of connections for callers with tokens, and for heartbeats. It is what kube-apiserver allows
// (IdleTimeout of its server): a longer one would change nothing. What a pool shares callers read in it. The pool
// brings most heartbeats, and the pings of class node show that the way is there.
const serverIdle = 90 * time.Second

// A connection for questions about callers stays open for the next question (package access). Nothing that comes over
// it is waited for between two, so it is pinged rarely: two pings a minute would cost more than its handshakes. It may
// be dead when it is needed. Then a question waits for reviewLate, and is asked once more over another connection.
const (
	reviewPing = 5 * time.Minute
	reviewLate = 5 * time.Second
)

// narrowWindow is the same of a stream that is left before its end: all that is under way then is paid for nothing.
const narrowWindow = 32 << 10

type doorKey struct {
	class Class
	as    Credential
	over  protocol
}

// protocol is what a door's connections speak.
type protocol uint8

const (
	overHTTP2  protocol = iota // or HTTP/1.1, where the server speaks no other
	overHTTP1                  // HTTP/1.1 only
	overNarrow                 // HTTP/2 with little under way, of class pool: for streams that are left early
	overSilent                 // HTTP/2 with rare pings, of callers: for questions about them, see Cloud.Reviews
)

// ErrNoServer says that no kube-apiserver is healthy.
var ErrNoServer = errors.New("no cloud server is healthy")

// ErrNoTurn says that a request ended while it waited for its turn.
var ErrNoTurn = errors.New("the request did not get its turn")

// Unsent tells of the error of a request that nothing of it was sent: there was no server, no connection, or no turn.
func Unsent(err error) bool {
	var connect *connectError
	return errors.Is(err, ErrNoServer) || errors.Is(err, ErrNoTurn) || errors.As(err, &connect)
}

// door is the way to the cloud for one class and identity: an http.RoundTripper that picks the server.
type door struct {
	candidates func() []*server
	class      Class
	transport  *Transport
	shows      Bearer // nil: the certificate of its connections is all
}

// Bearer has what a request shows beside the certificate of its connection, or in the place of one.
type Bearer interface {
	// Token is that; "": nothing. It may take as long as ctx lasts.
	Token(ctx context.Context) (string, error)
	// Counts reports whether there is something to show, for the one that does not want to wait.
	Counts() bool
	// Refused says that the cloud has answered 401 to it; "": to the certificate of its connection.
	Refused(token string)
}

// RoundTrip sends a request to a server that is worth a try; scheme and host of its URL do not matter. Only if no
// connection comes about, so that nothing was sent, the next server is tried.
func (d *door) RoundTrip(req *http.Request) (*http.Response, error) {
	servers := d.candidates()
	if len(servers) == 0 {
		CloseBody(req)
		return nil, ErrNoServer
	}
	var err error
	for _, s := range servers {
		var resp *http.Response
		if resp, err = d.at(s, req); err == nil {
			return resp, nil
		}
		var connect *connectError
		if !errors.As(err, &connect) || req.Context().Err() != nil {
			break
		}
		s.Kick()
	}
	CloseBody(req)
	return nil, err
}

// at sends a request to one server.
func (d *door) at(s *server, req *http.Request) (*http.Response, error) {
	if IsLapsed(req.Context()) {
		return nil, &connectError{s.name(), ErrLapsed}
	}
	at := s.at(d.class)
	if at == nil {
		return nil, &connectError{s.name(), errNowhere}
	}
	out := req.WithContext(req.Context())
	u := *req.URL
	u.Scheme, u.Host = "https", at.Host
	out.URL, out.Host = &u, ""
	token := ""
	if d.shows != nil {
		var err error
		if token, err = d.shows.Token(req.Context()); err != nil {
			return nil, &connectError{s.name(), err}
		}
	}
	sent := out
	if token != "" {
		sent = out.WithContext(out.Context())
		sent.Header = req.Header.Clone()
		sent.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := d.transport.RoundTrip(sent)
	if err == nil {
		resp.Request = out // who reads the answer sees whose question it was, and no token
		s.answered(resp.StatusCode)
		if d.shows != nil && resp.StatusCode == http.StatusUnauthorized {
			d.shows.Refused(token)
		}
	}
	return resp, err
}

// CloseBody closes the body of a request that is not sent, as an http.RoundTripper has to.
func CloseBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// route picks the kind of connection for a request: HTTP/1.1 for upgrades, and for requests without a token, because
// kube-apiserver closes the HTTP/2 connection that carries one (its mitigation of HTTP/2 floods), under the feet of
// others.
type route struct {
	http2, http1 http.RoundTripper
	nobody       http.RoundTripper // for requests without a token; nil: a certificate of the hub stands for one
}

// RoundTrip implements http.RoundTripper.
func (r route) RoundTrip(req *http.Request) (*http.Response, error) {
	switch {
	case r.nobody != nil && !HasToken(req.Header):
		return r.nobody.RoundTrip(req)
	case len(req.Header["Upgrade"]) > 0:
		return r.http1.RoundTrip(req)
	}
	return r.http2.RoundTrip(req)
}

// server is one kube-apiserver.
type server struct {
	address atomic.Pointer[map[Class]*url.URL]
	*Checker
}

// errNowhere says that it is not known yet where the cloud is.
var errNowhere = errors.New("it is not known where the cloud is: " + KubeconfigFlag + " cannot be read")

// at is its address for a class; nil: it is not known yet.
func (s *server) at(c Class) *url.URL { return (*s.address.Load())[c] }

// name is its address, for people.
func (s *server) name() string {
	if u := s.at(ClassControl); u != nil {
		return u.Host
	}
	return "unknown"
}
