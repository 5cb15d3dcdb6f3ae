package bubble

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net/http"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/sim/testca"
)

// resource is what pools of this package hold.
const resource = "endpointslices.v1.discovery.k8s.io"

func newRelay() (*relay.Relay, error) {
	res, err := relay.ParseResource(resource)
	if err != nil {
		return nil, err
	}
	return relay.New(relay.Config{Resource: res})
}

// certificate is one for the host's name.
func certificate(h Host, ca *testca.Authority) (tls.Certificate, error) {
	pair, err := ca.Issue(testca.Request{CommonName: h.name, Hosts: []string{h.name}})
	if err != nil {
		return tls.Certificate{}, err
	}
	return pair.TLS()
}

// serve answers TLS with a certificate for the host's name until stop is called.
func serve(h Host, port string, ca *testca.Authority, handler http.Handler) (stop func(), err error) {
	cert, err := certificate(h, ca)
	if err != nil {
		return nil, err
	}
	l, err := h.Listen(context.Background(), "tcp", h.name+":"+port)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{cert}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: ca.Pool(),
		MinVersion: tls.VersionTLS13, NextProtos: []string{"h2", "http/1.1"},
	}
	s := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0), TLSConfig: config}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.ServeTLS(l, "", "")
	}()
	return func() {
		_ = s.Close()
		<-done
	}, nil
}
