package connectivity

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/digest"
)

// TestWord: what a probe of a real socket fails by is one of the words that a digest has for it.
func TestWord(t *testing.T) {
	listen := func(serve func(net.Conn)) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				serve(c)
			}
		}()
		return "https://" + l.Addr().String()
	}
	closed := listen(func(net.Conn) {})
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := "https://" + gone.Addr().String()
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	stranger := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(stranger.Close)
	for url, want := range map[string]string{
		refused: digest.Refused,
		closed:  digest.Timeout, // takes connections, and says nothing
		listen(func(c net.Conn) { _ = c.Close() }): digest.Broken,
		stranger.URL:                   digest.Stranger,
		"https://no-such-name.invalid": digest.Unnamed,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience(want))
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		tr := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS13}}
		resp, err := (&http.Client{Transport: tr}).Do(req)
		cancel()
		if err == nil {
			_ = resp.Body.Close()
			t.Fatalf("%s answers", url)
		}
		if got := Word(fmt.Errorf("probe: %w", err)); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
	if got := Word(errors.New("503")); got != digest.Other {
		t.Errorf("an answer: %s", got)
	}
}

// verified is the error of package x509 itself about a certificate, at a time.
func verified(t *testing.T, at time.Time, host string, roots *x509.CertPool) error {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	cert := server.Certificate()
	if roots != nil {
		roots.AddCert(cert)
	}
	_, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: at, DNSName: host})
	if err == nil {
		t.Fatal("it is valid")
	}
	return &tls.CertificateVerificationError{UnverifiedCertificates: []*x509.Certificate{cert}, Err: err}
}

// TestCause: how far an attempt came, and what it ended by, give one cause. What TLS refuses is told apart: a clock,
// another machine, and all else.
func TestCause(t *testing.T) {
	far := time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC)
	now := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		at   Stage
		err  error
		want string
	}{
		{Nothing, context.DeadlineExceeded, digest.Timeout},
		{Connected, context.DeadlineExceeded, digest.Mute},
		{Secured, context.DeadlineExceeded, digest.Stalls},
		{Nothing, syscall.ECONNREFUSED, digest.Refused},
		{Nothing, syscall.EHOSTUNREACH, digest.Unreachable},
		{Nothing, &net.DNSError{}, digest.Unnamed},
		{Connected, io.EOF, digest.Broken},
		{Connected, ErrStranger, digest.Stranger},
		{Connected, verified(t, now, "edge-1", x509.NewCertPool()), digest.Stranger},
		{Connected, verified(t, time.Unix(0, 0).Add(-time.Hour), "", x509.NewCertPool()), digest.Clock},
		{Connected, verified(t, far, "", x509.NewCertPool()), digest.Certificate},
		{Secured, tls.AlertError(42), digest.Certificate},
		{Secured, errors.New("401"), digest.Other},
	} {
		if got := Cause(c.at, fmt.Errorf("probe: %w", c.err)); got != c.want {
			t.Errorf("%v at stage %d: %s, want %s", c.err, c.at, got, c.want)
		}
	}
}

// patience is short only for an attempt that nothing answers.
func patience(want string) time.Duration {
	if want == digest.Timeout {
		return time.Second
	}
	return time.Minute
}
