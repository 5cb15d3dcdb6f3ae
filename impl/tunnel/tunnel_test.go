package tunnel

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestChoice: NO_PROXY and addresses of this machine are called straight, and an error holds no password.
func TestChoice(t *testing.T) {
	of := Of("http://me:secret@proxy:3128", "10.0.0.0/8,.inside.example,exact.example:6443")
	for address, want := range map[string]string{
		"cloud.example:6443": "http://proxy:3128", "10.1.2.3:6443": "", "a.inside.example:6443": "", "exact.example:6443": "",
		"exact.example:443": "http://proxy:3128",
		"127.0.0.1:6443":    "", "localhost:6443": "", "[::1]:6443": "", "192.0.2.1:6443": "http://proxy:3128",
	} {
		u, err := of(address)
		got := ""
		if u != nil {
			got = Name(u)
		}
		if err != nil || got != want {
			t.Errorf("%s: %q, %v: want %q", address, got, err, want)
		}
	}
	for _, wrong := range []string{"socks5://me:secret@proxy:1080", "ftp://proxy"} {
		if _, err := Of(wrong, "")("cloud.example:443"); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	if u, err := Of("", "")("cloud.example:443"); u != nil || err != nil {
		t.Errorf("no proxy: %v, %v", u, err)
	}
	for text, want := range map[string]string{
		"http://p": "p:80", "https://p": "p:443", "http://p:3128": "p:3128", "http://[::1]": "[::1]:80",
	} {
		u, err := url.Parse(text)
		if err != nil || Address(u) != want {
			t.Errorf("%s: %s, %v", text, Address(u), err)
		}
	}
}

// asks opens a tunnel at a proxy that reads a request and then answers with a text.
func asks(ctx context.Context, t *testing.T, answer string) (conn net.Conn, req *http.Request, err error) {
	t.Helper()
	here, there := net.Pipe()
	asked := make(chan *http.Request, 1)
	go func() {
		req, err := http.ReadRequest(bufio.NewReader(there))
		if err == nil {
			asked <- req
			_, _ = io.WriteString(there, answer)
		}
		if !strings.HasPrefix(answer, "HTTP/1.1 200") && answer != "" {
			there.Close()
		}
	}()
	t.Cleanup(func() { here.Close(); there.Close() })
	conn, err = Open(ctx, here, &url.URL{Scheme: "http", Host: "proxy:3128", User: url.UserPassword("me", "secret")},
		"cloud.example:6443")
	return conn, <-asked, err
}

// TestOpen: a proxy is asked as it wants to be; what it does wrong is one line without the password.
func TestOpen(t *testing.T) {
	_, req, err := asks(t.Context(), t, "HTTP/1.1 200 Connection established\r\n\r\n")
	if err != nil || req.Method != http.MethodConnect || req.Host != "cloud.example:6443" ||
		req.RequestURI != "cloud.example:6443" || req.Header.Get("Proxy-Authorization") != "Basic bWU6c2VjcmV0" {
		t.Errorf("%v, %+v", err, req)
	}
	for answer, want := range map[string]string{
		"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n": "name and password",
		"HTTP/1.1 403 Forbidden\r\n\r\n":                     "403 Forbidden", "HTTP/1.1 200 OK\r\n\r\nmore": "sends more",
		"nonsense\r\n\r\n": "malformed", "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 2*maxAnswer): "",
	} {
		_, _, err := asks(t.Context(), t, answer)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40q: %v", answer, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, _, err := asks(ctx, t, ""); err == nil || !strings.Contains(err.Error(), "deadline") {
		t.Errorf("a proxy that says nothing: %v", err)
	}
}
