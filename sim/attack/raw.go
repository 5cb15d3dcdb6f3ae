package attack

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"time"
)

// dial opens a bare connection to a door, with TLS if that is spoken there.
func (g *ground) dial(ctx context.Context, d door, who actor, protocol string) (net.Conn, error) {
	address, config, err := g.address(d)
	if err != nil {
		return nil, err
	}
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil || config == nil {
		return c, err
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	config.ServerName, config.NextProtos = host, []string{protocol}
	if who.cert != nil {
		config.Certificates = []tls.Certificate{*who.cert}
	}
	t := tls.Client(c, config)
	if err := t.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return t, nil
}

// onWire writes bytes to a connection of HTTP/1.1 and reads n answers.
func (g *ground) onWire(ctx context.Context, d door, who actor, bytes string, n int) []answer {
	answers := make([]answer, n)
	c, err := g.dial(ctx, d, who, "http/1.1")
	if err != nil {
		answers[0].err = err
		return answers
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(answerPatience))
	go func() { _, _ = io.WriteString(c, bytes) }()
	r := bufio.NewReader(c)
	for i := range answers {
		if i > 0 { // it may be that none comes
			_ = c.SetDeadline(time.Now().Add(watchRead))
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			answers[i].err = err
			return answers
		}
		answers[i].code, answers[i].header = resp.StatusCode, resp.Header
		if resp.StatusCode == http.StatusSwitchingProtocols {
			return answers
		}
		body, err := io.ReadAll(io.LimitReader(resp.Body, answerBytes))
		answers[i].body, answers[i].err = string(body), err
		_ = resp.Body.Close()
	}
	return answers
}
