package access

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
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/limit"
)

// Kind is how a request goes on to the cloud.
type Kind uint8

// The kinds.
const (
	Anonymous Kind = iota // as it came, without credentials
	Bearer                // with the token it came with
	ThisNode              // proved by certificate to be this node: the request goes on with the node's
	Stranger              // showed a certificate that is ignored: refused
)

func (k Kind) String() string {
	return [...]string{"anonymous", "token", "node", "refused"}[k]
}

// Caller is who sends a request.
type Caller struct {
	Kind    Kind
	User    string // if it is known here
	token   *shown // of one with a token
	Refusal *apierrors.StatusError
	// a stranger who has shown this node's own certificate, in which nothing is wrong but its end: until when package
	// shelter may take it.
	Lapsed time.Time
	// a stranger who has shown a certificate of this node that its own authority signed; Lapsed is until when that counts.
	Local bool
}

func strange(why string) Caller {
	return Caller{Kind: Stranger, Refusal: apierrors.NewUnauthorized(why)}
}

// Identifier tells who calls. Rules, in this order:
//
//  1. A request that carries a token (Authorization, or a WebSocket token protocol) is its token's; if kube-apiserver
//     does not take that for a token, it is nobody's. A certificate beside it is not looked at: kube-apiserver would
//     let the certificate win, but then whoever forwards tokens of others over a connection that has the node's
//     certificate would lend them the node's identity.
//  2. A certificate of this node's user, signed by --client-ca-file, is sent on with the node's own,
//     --cloud-client-cert-file.
//  3. Any other certificate is refused: its key is not here, so it cannot be passed on. One of this node that has
//     expired may still be valid, while the cloud is away (package shelter).
//  4. A certificate of this node's user that the node's own authority has signed is like one that has expired. While
//     the cloud is there it is valid as long as the one is valid that the hub has of the node (package shelter).
//  5. A request without credentials goes on without any.
type Identifier struct {
	User      string         // system:node:<this node>
	Roots     *uplink.Bundle // nil: certificates of the cloud's authority are not looked at
	Own       Authority      // nil: this node has none
	Allowance time.Duration  // for which a certificate may still be valid when it has expired
	Now       func() time.Time
}

// Authority is that of this node.
type Authority interface {
	Pool() *x509.CertPool
	Now() time.Time // by which its certificates are judged
}

// conn remembers the verification of a connection's certificate, which costs more than all else a request costs, and
// the token that its last request showed, which the next one mostly shows, too.
type conn struct {
	below *limit.Conn // nil: it is not counted

	mu    sync.Mutex
	roots *x509.CertPool
	until time.Time
	who   Caller
	token *shown // of the last request with one
}

// maxShown bounds the token that a connection remembers: those of service accounts have about 1.2 kB.
const maxShown = 4 << 10

type connKey struct{}

// verifyAgain bounds how long a verification is remembered.
const verifyAgain = time.Minute

// WithConn is http.Server.ConnContext.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, &conn{below: limit.ConnOf(c)})
}

// Identify tells whose a request is.
func (i *Identifier) Identify(req *http.Request) Caller {
	c, _ := req.Context().Value(connKey{}).(*conn)
	if uplink.HasToken(req.Header) {
		return Caller{Kind: Bearer, token: c.tokenOf(req.Header)}
	}
	if uplink.MeansToken(req.Header) || req.TLS == nil || len(req.TLS.PeerCertificates) == 0 ||
		i.Roots == nil && i.Own == nil {
		return anonymous()
	}
	if c == nil {
		who, _ := i.verify(req.TLS)
		return who
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if roots := i.roots(); c.roots != roots || !i.Now().Before(c.until) {
		c.who, c.until = i.verify(req.TLS)
		c.roots = roots
	}
	return c.who
}

// tokenOf is the token of a request over the connection; c may be nil.
func (c *conn) tokenOf(h http.Header) *shown {
	if c == nil {
		return tokenOf(h)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token.shownBy(h) {
		return c.token
	}
	t := tokenOf(h)
	if c.token = nil; len(t.authorization)+len(t.protocol) <= maxShown {
		c.token = t
	}
	return t
}

// shows is the token that a caller shows with a request; nil: none.
func (c Caller) shows(h http.Header) *shown {
	if c.token == nil {
		return tokenOf(h)
	}
	return c.token
}

// Account is the service account that the caller's token says it is of, "" for other tokens. Only the cloud, or a
// proof, can say that it is.
func (c Caller) Account(h http.Header) string {
	if t := c.shows(h); t != nil {
		return t.claims().Subject
	}
	return ""
}

func (i *Identifier) verify(state *tls.ConnectionState) (who Caller, until time.Time) {
	now, end, roots := i.Now(), state.PeerCertificates[0].NotAfter, i.roots()
	until = now.Add(verifyAgain)
	if i.Own != nil && i.judge(state, i.Own.Pool(), i.Own.Now()).Kind == ThisNode {
		who = strange("a certificate of this node's own authority counts at its hub while the cloud is away; while it is " +
			"there, only as long as the certificate counts that the hub has of the node")
		who.User, who.Local, who.Lapsed = i.User, true, now.Add(end.Sub(i.Own.Now()))
		return who, until
	}
	if roots == nil {
		return anonymous(), until
	}
	switch who = i.judge(state, roots, now); {
	case who.Kind == ThisNode && end.Before(until):
		until = end
	case who.Kind == Stranger && now.After(end) && i.judge(state, roots, end).Kind == ThisNode:
		who.User, who.Lapsed = i.User, end.Add(i.Allowance)
	}
	return who, until
}

// roots are the cloud's authorities; nil: there are none.
func (i *Identifier) roots() *x509.CertPool {
	if i.Roots == nil {
		return nil
	}
	return i.Roots.Get()
}

func anonymous() Caller { return Caller{Kind: Anonymous, User: "system:anonymous"} }

// IsNode reports whether a connection is this node's.
func (i *Identifier) IsNode(state *tls.ConnectionState) bool {
	if len(state.PeerCertificates) == 0 {
		return false
	}
	who, _ := i.verify(state)
	return who.Kind == ThisNode || who.Local
}

// judge tells whose certificate it was at a time, by some authorities.
func (i *Identifier) judge(state *tls.ConnectionState, roots *x509.CertPool, at time.Time) Caller {
	leaf := state.PeerCertificates[0]
	opts := x509.VerifyOptions{
		Roots: roots, Intermediates: x509.NewCertPool(), CurrentTime: at,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, c := range state.PeerCertificates[1:] {
		opts.Intermediates.AddCert(c)
	}
	switch _, err := leaf.Verify(opts); {
	case err != nil:
		return strange("the client certificate cannot be verified: " + err.Error())
	case leaf.Subject.CommonName != i.User || !slices.Contains(leaf.Subject.Organization, contract.NodesGroup):
		return strange("a client certificate of " + leaf.Subject.CommonName +
			" cannot be passed on by the hub of " + strings.TrimPrefix(i.User, contract.NodeUserPrefix) + ": use a token")
	}
	return Caller{Kind: ThisNode, User: i.User}
}

// Impersonates reports whether a caller takes another name.
func Impersonates(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(name, "Impersonate-") {
			return true
		}
	}
	return false
}
