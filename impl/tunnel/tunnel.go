// Package tunnel opens connections through an HTTP proxy, by CONNECT, as browsers and client-go do for HTTPS. It starts
// no goroutine.
//
// Whether there is a proxy for an address is said by the environment (HTTPS_PROXY and NO_PROXY, in capitals or not), by
// the rules of golang.org/x/net/http/httpproxy: addresses of this machine are never called through one. A proxy may
// want a name and a password, which stand in its URL and in no error, and it may speak TLS itself.
package tunnel

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"golang.org/x/net/http/httpproxy"
)

// maxAnswer bounds what a proxy answers, in bytes.
const maxAnswer = 64 << 10

// Choice is by what proxy an address, host:port, is called; nil: by none.
type Choice func(address string) (*url.URL, error)

// FromEnvironment is the choice of the environment as it is now.
func FromEnvironment() Choice { return choice(httpproxy.FromEnvironment()) }

// Of is the choice of two variables, HTTPS_PROXY and NO_PROXY.
func Of(proxy, noProxy string) Choice {
	return choice(&httpproxy.Config{HTTPSProxy: proxy, NoProxy: noProxy})
}

func choice(c *httpproxy.Config) Choice {
	of := c.ProxyFunc()
	return func(address string) (*url.URL, error) {
		u, err := of(&url.URL{Scheme: "https", Host: address})
		if err != nil { // its words have the value, which may hold a password
			return nil, errors.New("HTTPS_PROXY: want http://host:port or https://host:port")
		}
		return u, Check(u)
	}
}

// Always is the choice of one proxy for all addresses.
func Always(u *url.URL) Choice { return func(string) (*url.URL, error) { return u, nil } }

// Check reports what is wrong with the URL of a proxy. nil is none, which is well.
func Check(u *url.URL) error {
	if u != nil && (u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("a proxy of the scheme %.20q: want http://host:port or https://host:port", u.Scheme)
	}
	return nil
}

// Address is where a proxy listens, host:port.
func Address(u *url.URL) string {
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), map[string]string{"https": "443"}[u.Scheme], "80"))
}

// Name is what may be told of a proxy: all but its password.
func Name(u *url.URL) string { return u.Scheme + "://" + Address(u) }

// Open asks a proxy, over a connection to it, for one to an address, host:port. The connection is closed after an
// error, and when ctx ends before.
func Open(ctx context.Context, conn net.Conn, proxy *url.URL, address string) (net.Conn, error) {
	through, err := open(ctx, conn, proxy, address)
	if err != nil {
		_ = conn.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("proxy %s: %w", Name(proxy), err)
	}
	return through, nil
}

func open(ctx context.Context, conn net.Conn, proxy *url.URL, address string) (net.Conn, error) {
	raw := conn
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	if proxy.Scheme == "https" {
		secure := tls.Client(conn, &tls.Config{ServerName: proxy.Hostname(), MinVersion: tls.VersionTLS12})
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		conn = secure
	}
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if u := proxy.User; u != nil {
		password, _ := u.Password()
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	in := bufio.NewReader(io.LimitReader(conn, maxAnswer))
	//nolint:bodyclose // of a CONNECT that is well it is the tunnel; else the connection is closed
	answer, err := http.ReadResponse(in, req)
	if err != nil {
		return nil, err
	}
	switch {
	case answer.StatusCode == http.StatusProxyAuthRequired:
		return nil, fmt.Errorf("CONNECT %s: %.100s: want its name and password in the URL of the proxy", address,
			answer.Status)
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("CONNECT %s: %.100s", address, answer.Status)
	case in.Buffered() > 0: // a server of TLS is silent until it is spoken to
		return nil, fmt.Errorf("CONNECT %s: it sends more than its answer", address)
	}
	if !stop() {
		return nil, ctx.Err()
	}
	return conn, nil
}
