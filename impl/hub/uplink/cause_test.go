package uplink

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/digest"
)

// TestCause: what a probe of a real socket fails by is one of the words that a digest has for it.
func TestCause(t *testing.T) {
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
		stranger.URL:                   digest.Certificate,
		"https://no-such-name.invalid": digest.Unnamed,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
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
		if got := Cause(fmt.Errorf("probe: %w", err)); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
	if got := Cause(errors.New("503")); got != digest.Other {
		t.Errorf("an answer: %s", got)
	}
}
