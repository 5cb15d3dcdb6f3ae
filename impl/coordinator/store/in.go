package store

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync/atomic"

	"k8s.io/apiserver/pkg/authentication/user"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/authz"
)

var errStranger = errors.New("the certificate is of none of the other replicas")

// in is what other replicas ask this one.
type in struct {
	*MeshConfig
	callers *authz.Callers
	etcd    atomic.Pointer[http.Handler] // nil: it does not run yet
}

// server is for the other replicas.
func (i *in) server() *http.Server {
	protocols := []string{"h2", "http/1.1"}
	certificate := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return i.Certificate() }
	return &http.Server{
		Handler: http.HandlerFunc(i.enter),
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS13, NextProtos: protocols, GetCertificate: certificate,
			GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
				l, ok := hello.Conn.(*link)
				if !ok {
					return nil, errors.New("not a connection of the mesh")
				}
				return &tls.Config{
					MinVersion: tls.VersionTLS13, NextProtos: protocols, GetCertificate: certificate,
					ClientAuth: tls.RequireAnyClientCert,
					// One that was proved to another process, or before something changed, is not resumed.
					SessionTicketsDisabled: true,
					VerifyConnection: func(s tls.ConnectionState) error {
						name := i.NameOf(s.PeerCertificates[0])
						return l.admit(name, s.PeerCertificates, func() error {
							if name == "" || name == i.Self {
								return errStranger
							}
							return i.Verify(name, "", s.PeerCertificates)
						})
					},
				}, nil
			},
		},
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			l, _ := c.(*tls.Conn).NetConn().(*link)
			return context.WithValue(ctx, linkKey{}, l)
		},
		ReadHeaderTimeout: connect,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: MeshSilence, PingTimeout: MeshSilence, WriteByteTimeout: 2 * MeshSilence,
		},
		ErrorLog: i.quietly(),
	}
}

// linkKey is the key of the link over which a request came.
type linkKey struct{}

// enter hands a request of another replica to etcd. A link that is no longer valid ends a moment later than the word of
// that comes: who is quick asks nothing more over it.
func (i *in) enter(w http.ResponseWriter, req *http.Request) {
	if err := req.Context().Value(linkKey{}).(*link).verify(); err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	who := &user.DefaultInfo{Name: req.TLS.PeerCertificates[0].Subject.CommonName}
	i.callers.Proves(req.WithContext(genericrequest.WithUser(req.Context(), who)))
	if req.URL.Path == contract.MeshPath {
		if pair, err := i.Certificate(); err == nil {
			w.Header().Set(contract.MeshCertificate, short(pair.Certificate[0]))
		}
		w.WriteHeader(http.StatusNoContent)
		return
	}
	inner := i.etcd.Load()
	if inner == nil {
		http.Error(w, "the etcd of this replica does not run yet", http.StatusServiceUnavailable)
		return
	}
	(*inner).ServeHTTP(w, req)
}
