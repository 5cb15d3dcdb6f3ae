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

	"github.com/weir-edge/weir/impl/contract"
)

// callerKind is how a request goes on to the cloud.
type callerKind uint8

const (
	anonymous callerKind = iota // as it came, without credentials
	bearer                      // with the token it came with
	thisNode                    // proved by certificate to be this node: with the hub's certificate for the same user
	stranger                    // showed a certificate that cannot be passed on: refused
)

func (k callerKind) String() string {
	return [...]string{"anonymous", "token", "node", "refused"}[k]
}

// caller is who sends a request.
type caller struct {
	kind callerKind
	user string // if it is known here
	why  string // stranger: why it is refused
}

// identifier tells who calls. Rules, in this order:
//
//  1. A request that carries a token (Authorization, or a WebSocket token protocol) is its token's. A certificate beside it
//     is not looked at: kube-apiserver would let the certificate win, but then whoever forwards tokens of others over a
//     connection that has the node's certificate would lend them the node's identity.
//  2. A certificate of this node's user, signed by --client-ca-file, is sent on with the hub's certificate for that user.
//  3. Any other certificate is refused: its key is not here, so it cannot be passed on.
//  4. A request without credentials goes on without any.
type identifier struct {
	user  string // system:node:<this node>
	roots *bundle
	now   func() time.Time
}

// conn remembers the verification of a connection's certificate, which costs more than all else a request costs.
type conn struct {
	mu    sync.Mutex
	roots *x509.CertPool
	until time.Time
	who   caller
}

type connKey struct{}

// verifyAgain bounds how long a verification is remembered.
const verifyAgain = time.Minute

// withConn is http.Server.ConnContext.
func withConn(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, &conn{})
}

func (i *identifier) identify(req *http.Request) caller {
	if hasToken(req.Header) {
		return caller{kind: bearer}
	}
	if req.TLS == nil || len(req.TLS.PeerCertificates) == 0 || i.roots == nil {
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

func (i *identifier) verify(state *tls.ConnectionState) (caller, time.Time) {
	leaf := state.PeerCertificates[0]
	opts := x509.VerifyOptions{
		Roots: i.roots.get(), Intermediates: x509.NewCertPool(), CurrentTime: i.now(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, c := range state.PeerCertificates[1:] {
		opts.Intermediates.AddCert(c)
	}
	until := i.now().Add(verifyAgain)
	if leaf.NotAfter.Before(until) {
		until = leaf.NotAfter
	}
	switch _, err := leaf.Verify(opts); {
	case err != nil:
		return caller{kind: stranger, why: "the client certificate cannot be verified: " + err.Error()}, until
	case leaf.Subject.CommonName != i.user || !slices.Contains(leaf.Subject.Organization, contract.NodesGroup):
		return caller{kind: stranger, why: "a client certificate of " + leaf.Subject.CommonName +
			" cannot be passed on by the hub of " + strings.TrimPrefix(i.user, contract.NodeUserPrefix) + ": use a token"}, until
	}
	return caller{kind: thisNode, user: i.user}, until
}

// webSocketToken begins the protocol by which browsers send a token (kube-apiserver's authentication/request/websocket).
const webSocketToken = "base64url.bearer.authorization.k8s.io."

func hasToken(h http.Header) bool {
	if len(h["Authorization"]) > 0 {
		return true
	}
	for _, v := range h["Sec-Websocket-Protocol"] {
		if strings.Contains(v, webSocketToken) {
			return true
		}
	}
	return false
}

// clean removes headers by which a front proxy would tell who calls: nobody here is one.
func clean(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, "X-Remote-") {
			delete(h, name)
		}
	}
}
