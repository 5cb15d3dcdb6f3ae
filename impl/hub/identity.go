package hub

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/limit"
)

// callerKind is how a request goes on to the cloud.
type callerKind uint8

const (
	anonymous callerKind = iota // as it came, without credentials
	bearer                      // with the token it came with
	thisNode                    // proved by certificate to be this node: with the hub's certificate for the same user
	stranger                    // showed a certificate that does not count: refused
)

func (k callerKind) String() string {
	return [...]string{"anonymous", "token", "node", "refused"}[k]
}

// caller is who sends a request.
type caller struct {
	kind    callerKind
	user    string // if it is known here
	refusal *apierrors.StatusError
	lapsed  time.Time // a stranger who has shown this node's own certificate, in which nothing is wrong but its end: until when shelter.admit may take it
}

func strange(why string) caller { return caller{kind: stranger, refusal: unauthorized(why)} }

// identifier tells who calls. Rules, in this order:
//
//  1. A request that carries a token (Authorization, or a WebSocket token protocol) is its token's; if kube-apiserver does not take that for
//     a token, it is nobody's. A certificate beside it is not looked at: kube-apiserver would let the certificate win, but then whoever forwards tokens of others over a
//     connection that has the node's certificate would lend them the node's identity.
//  2. A certificate of this node's user, signed by --client-ca-file, is sent on with the hub's certificate for that user.
//  3. Any other certificate is refused: its key is not here, so it cannot be passed on. One of this node that has expired may
//     still count, while the cloud is away (shelter.admit).
//  4. A request without credentials goes on without any.
type identifier struct {
	user      string // system:node:<this node>
	roots     *bundle
	allowance time.Duration // for which a certificate may still count when it has expired
	now       func() time.Time
}

// conn remembers the verification of a connection's certificate, which costs more than all else a request costs.
type conn struct {
	below *limit.Conn // nil: it is not counted

	mu    sync.Mutex
	roots *x509.CertPool
	until time.Time
	who   caller
}

type connKey struct{}

// verifyAgain bounds how long a verification is remembered.
const verifyAgain = time.Minute

// withConn is http.Server.ConnContext.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, &conn{below: limit.ConnOf(c)})
}

func (i *identifier) identify(req *http.Request) caller {
	if hasToken(req.Header) {
		return caller{kind: bearer}
	}
	if meansToken(req.Header) || req.TLS == nil || len(req.TLS.PeerCertificates) == 0 || i.roots == nil {
		return caller{kind: anonymous, user: "system:anonymous"}
	}
	c, _ := req.Context().Value(connKey{}).(*conn)
	if c == nil {
		who, _ := i.verify(req.TLS)
		return who
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if roots := i.roots.get(); c.roots != roots || !i.now().Before(c.until) {
		c.who, c.until = i.verify(req.TLS)
		c.roots = roots
	}
	return c.who
}

func (i *identifier) verify(state *tls.ConnectionState) (who caller, until time.Time) {
	now, end := i.now(), state.PeerCertificates[0].NotAfter
	until = now.Add(verifyAgain)
	switch who = i.judge(state, now); {
	case who.kind == thisNode && end.Before(until):
		until = end
	case who.kind == stranger && now.After(end) && i.judge(state, end).kind == thisNode:
		who.user, who.lapsed = i.user, end.Add(i.allowance)
	}
	return who, until
}

// isNode tells whether a connection is this node's.
func (i *identifier) isNode(state *tls.ConnectionState) bool {
	if len(state.PeerCertificates) == 0 || i.roots == nil {
		return false
	}
	who, _ := i.verify(state)
	return who.kind == thisNode
}

// judge tells whose certificate it was at a time.
func (i *identifier) judge(state *tls.ConnectionState, at time.Time) caller {
	leaf := state.PeerCertificates[0]
	opts := x509.VerifyOptions{
		Roots: i.roots.get(), Intermediates: x509.NewCertPool(), CurrentTime: at,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, c := range state.PeerCertificates[1:] {
		opts.Intermediates.AddCert(c)
	}
	switch _, err := leaf.Verify(opts); {
	case err != nil:
		return strange("the client certificate cannot be verified: " + err.Error())
	case leaf.Subject.CommonName != i.user || !slices.Contains(leaf.Subject.Organization, contract.NodesGroup):
		return strange("a client certificate of " + leaf.Subject.CommonName +
			" cannot be passed on by the hub of " + strings.TrimPrefix(i.user, contract.NodeUserPrefix) + ": use a token")
	}
	return caller{kind: thisNode, user: i.user}
}

// webSocketToken begins the protocol by which browsers send a token (kube-apiserver's authentication/request/websocket).
const webSocketToken = "base64url.bearer.authorization.k8s.io."

// meansToken tells whether a request means to show a token: then it is not its certificate's.
func meansToken(h http.Header) bool { return len(h["Authorization"]) > 0 || hasProtocolToken(h) }

// hasToken tells whether kube-apiserver finds a token in a request. What it does not take for one makes the request anonymous, and it
// ends the HTTP/2 connection of such a request.
func hasToken(h http.Header) bool {
	scheme, token, _ := strings.Cut(strings.TrimSpace(h.Get("Authorization")), " ")
	if strings.EqualFold(scheme, "bearer") && token != "" && !strings.HasPrefix(token, " ") {
		return true
	}
	return len(h["Upgrade"]) > 0 && hasProtocolToken(h)
}

func hasProtocolToken(h http.Header) bool {
	for _, v := range h["Sec-Websocket-Protocol"] {
		if strings.Contains(v, webSocketToken) {
			return true
		}
	}
	return false
}
