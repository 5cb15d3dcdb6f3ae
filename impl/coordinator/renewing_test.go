package coordinator

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func selfSigned(t *testing.T, serial int64) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ok(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	ok(t, err)
	leaf, err := x509.ParseCertificate(der)
	ok(t, err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// TestRenewing: after a renewal another replica is asked by the new certificate, over another connection. A stream that
// is open goes on. A pair that is half written changes nothing.
func TestRenewing(t *testing.T) {
	serial := int64(0)
	pair := func() *tls.Certificate {
		serial++
		return selfSigned(t, serial)
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
		ok(t, err)
		resp, err := r.RoundTrip(req)
		ok(t, err)
		body := bufio.NewReader(resp.Body)
		serial, err := body.ReadString('\n')
		ok(t, err)
		return serial, body, resp.Body
	}
	wantOf := func(p *tls.Certificate) {
		t.Helper()
		got, _, body := ask("/")
		if want := p.Leaf.SerialNumber.String() + "\n"; got != want {
			t.Errorf("asked by certificate %s, want %s", got, want)
		}
		ok(t, body.Close())
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

// TestHalfPeerCertificate: a replica goes on with the certificate that it had while its files are half written, or of
// two pairs.
func TestHalfPeerCertificate(t *testing.T) {
	p := &peers{set: &settings{peerFile: filepath.Join(t.TempDir(), "replica.pem")}}
	if _, err := p.certificate(); err == nil {
		t.Error("a certificate of no file")
	}
	shows := func(want int64, when string) {
		t.Helper()
		c, err := p.certificate()
		ok(t, err)
		if got := c.Leaf.SerialNumber.Int64(); got != want {
			t.Errorf("%s it shows certificate %d, want %d", when, got, want)
		}
	}
	text := func(key, cert *tls.Certificate) []byte {
		der, err := x509.MarshalPKCS8PrivateKey(key.PrivateKey)
		ok(t, err)
		return slices.Concat(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
			pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]}))
	}
	put := func(data []byte) { ok(t, os.WriteFile(p.set.peerFile, data, 0o600)) }
	first, second := selfSigned(t, 1), selfSigned(t, 2)
	put(text(first, first))
	shows(1, "at first")
	put(text(first, second))
	shows(1, "with the key of before")
	whole := text(second, second)
	put(whole[:len(whole)-len(whole)/4])
	shows(1, "with half a certificate")
	put(whole)
	shows(2, "in the end")
}
