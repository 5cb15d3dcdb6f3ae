package store

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/authz"
)

// TestRevoked: who is no longer valid is answered nothing more over what it has open, also before its links are looked
// at. Nobody looks here.
func TestRevoked(t *testing.T) {
	pair := func(name string) *tls.Certificate {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		of := &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		}
		der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	}
	var revoked atomic.Bool
	mine := pair("1")
	c := &MeshConfig{
		Self: "1", Certificate: func() (*tls.Certificate, error) { return mine, nil },
		NameOf: func(cert *x509.Certificate) string { return cert.Subject.CommonName },
		Verify: func(string, string, []*x509.Certificate) error {
			if revoked.Load() {
				return errors.New("revoked")
			}
			return nil
		},
		Logger: slog.New(slog.DiscardHandler),
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	i := &in{MeshConfig: c, callers: authz.Listen(l, nil)}
	s := i.server()
	served := make(chan error, 1)
	go func() {
		served <- s.ServeTLS(&accepted{i.callers, &links{logger: c.Logger, open: map[*link]struct{}{}}}, "", "")
	}()
	defer func() { _ = s.Close(); <-served }()
	var dials atomic.Int32
	tr := &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*pair("2")}},
		ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			dials.Add(1)
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}
	defer tr.CloseIdleConnections()
	url := "https://" + l.Addr().String() + contract.MeshPath
	ask := func() int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			return 0
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if first, second := ask(), ask(); first != http.StatusNoContent || second != first || dials.Load() != 1 {
		t.Fatalf("a replica is answered %d and %d over %d connections", first, second, dials.Load())
	}
	revoked.Store(true)
	for range 2 { // over what it has open, and then over another connection
		if got := ask(); got == http.StatusNoContent {
			t.Error("who is revoked is answered")
		}
	}
}
