package coordinator

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestRenewing: after a renewal another replica is asked by the new certificate, over another connection. A stream that is open goes on. A pair that is half
// written changes nothing.
func TestRenewing(t *testing.T) {
	check := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	serial := int64(0)
	pair := func() *tls.Certificate {
		serial++
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		check(t, err)
		template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		check(t, err)
		leaf, err := x509.ParseCertificate(der)
		check(t, err)
		return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
	}
	more := make(chan string)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.WriteString(w, req.TLS.PeerCertificates[0].SerialNumber.String()+"\n")
		if req.URL.Path != "/watch" {
			return
		}
		w.(http.Flusher).Flush()
		for text := range more {
			_, _ = io.WriteString(w, text+"\n")
			w.(http.Flusher).Flush()
		}
	}))
	s.EnableHTTP2, s.TLS = true, &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13}
	s.StartTLS()
	defer s.Close()
	now, failed := pair(), error(nil)
	certificate := func() (*tls.Certificate, error) { return now, failed }
	r := newRenewing(certificate, func() *http.Transport {
		config := s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate() }
		return &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: config, IdleConnTimeout: time.Minute}
	})
	defer r.CloseIdleConnections()
	ask := func(path string) (string, *bufio.Reader, io.Closer) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
		check(t, err)
		resp, err := r.RoundTrip(req)
		check(t, err)
		body := bufio.NewReader(resp.Body)
		serial, err := body.ReadString('\n')
		check(t, err)
		return serial, body, resp.Body
	}
	wantOf := func(p *tls.Certificate) {
		t.Helper()
		got, _, body := ask("/")
		if want := p.Leaf.SerialNumber.String() + "\n"; got != want {
			t.Errorf("asked by certificate %s, want %s", got, want)
		}
		check(t, body.Close())
	}
	first := now
	wantOf(first)
	_, stream, open := ask("/watch")
	defer open.Close()
	for range 2 {
		now = pair()
		wantOf(now)
		more <- "goes on"
		if got, err := stream.ReadString('\n'); err != nil || got != "goes on\n" {
			t.Fatalf("the stream of before: %q, %v", got, err)
		}
	}
	last := now
	failed = errors.New("private key does not match public key")
	wantOf(last)
	failed = nil
	close(more)
}
