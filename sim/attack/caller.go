package attack

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	// answerPatience bounds one request. A watch is read for as long.
	answerPatience = 30 * time.Second
	watchRead      = 1500 * time.Millisecond
	answerBytes    = 4 << 20
)

// actor is who sends something: with a token, a certificate, both, or nothing.
type actor struct {
	token string
	cert  *tls.Certificate
}

// ask is one request, as data.
type ask struct {
	as     string   // an identity of the ground by its name, "" is nobody
	at     door     // hubDoor when empty
	method string   // GET when empty
	path   string   // and query, sent as it stands here
	header []string // "Name: value"
	body   string
	h1     bool   // HTTP/1.1 instead of HTTP/2
	wire   string // instead of all this but as and at: a request as it stands on the wire, HTTP/1.1
	times  int    // 1 when 0

	codes []int  // any of these has to come; 0 is no answer at all; none: whatever comes
	has   string // what the answer has to contain
	lacks string // what it must not contain
}

// named is the ask with the names of nodes and pool in their places: {node}, {node 2}, {pool}; {now} is
// the time.
func (q ask) named(g *ground) ask {
	r := strings.NewReplacer("{node}", g.node(1), "{node 2}", g.node(2), "{pool}", g.place.name,
		"{now}", time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"))
	q.path, q.body, q.wire, q.header = r.Replace(q.path), r.Replace(q.body), r.Replace(q.wire), slices.Clone(q.header)
	for i, h := range q.header {
		q.header[i] = r.Replace(h)
	}
	return q
}

// answer is what came back.
type answer struct {
	code   int // 0: none
	header http.Header
	body   string
	err    error
}

// String is the answer in a few words.
func (a answer) String() string {
	if a.code == 0 {
		return fmt.Sprintf("no answer (%s)", short(errorText(a.err)))
	}
	if a.code < http.StatusInternalServerError {
		return fmt.Sprint(a.code)
	}
	_, message, _ := strings.Cut(a.body, `"message":"`)
	message, _, _ = strings.Cut(message, `"`)
	return fmt.Sprintf("%d (%s)", a.code, message[:min(len(message), 100)])
}

func errorText(err error) string {
	if err == nil {
		return "none"
	}
	return err.Error()
}

func short(s string) string {
	if i := strings.LastIndex(s, ": "); i >= 0 && len(s) > 80 {
		s = s[i+2:]
	}
	return s[:min(len(s), 80)]
}

// right reports whether an answer is what an ask wants.
func (a answer) right(q ask) bool {
	return (len(q.codes) == 0 || slices.Contains(q.codes, a.code)) && strings.Contains(a.body, q.has) &&
		(q.lacks == "" || !strings.Contains(a.body, q.lacks))
}

// String is the request in a few words.
func (q ask) String() string {
	if q.wire != "" {
		line, _, _ := strings.Cut(q.wire, "\r\n")
		return fmt.Sprintf("%q", line[:min(len(line), 80)])
	}
	method := q.method
	if method == "" {
		method = http.MethodGet
	}
	path := q.path
	if len(path) > 80 {
		path = path[:60] + fmt.Sprintf("… (%d bytes)", len(path))
	}
	return method + " " + path
}

// client speaks to a door as somebody. The caller closes its idle connections.
func (g *ground) client(d door, who actor, h1 bool) (*http.Client, string, error) {
	address, config, err := g.address(d)
	if err != nil {
		return nil, "", err
	}
	base := "http://" + address
	tr := &http.Transport{ForceAttemptHTTP2: !h1, DisableCompression: true, MaxConnsPerHost: 0}
	if config != nil {
		base = "https://" + address
		if who.cert != nil {
			config.Certificates = []tls.Certificate{*who.cert}
		}
		if h1 {
			config.NextProtos = []string{"http/1.1"}
			tr.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
		}
		tr.TLSClientConfig = config
	}
	return &http.Client{
		Transport: tr, Timeout: answerPatience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, base, nil
}

// insist sends a request as often as a limit of rates refuses it: such a refusal says nothing of the one that asks.
func (g *ground) insist(ctx context.Context, q ask) (a answer) {
	within(ctx, patience, func() bool {
		a = g.send(ctx, q)
		return a.code != http.StatusTooManyRequests || slices.Contains(q.codes, a.code)
	})
	return a
}

// send sends one request and reads its answer: all of it, or of a watch what comes in a moment.
func (g *ground) send(ctx context.Context, q ask) answer {
	q = q.named(g)
	who, err := g.who(q.as)
	if err != nil {
		return answer{err: err}
	}
	if q.at == "" {
		q.at = hubDoor
	}
	if q.wire != "" {
		answers := g.onWire(ctx, q.at, who, q.wire, 1)
		return answers[0]
	}
	client, base, err := g.client(q.at, who, q.h1)
	if err != nil {
		return answer{err: err}
	}
	defer client.CloseIdleConnections()
	return do(ctx, client, base, who, q)
}

func do(ctx context.Context, client *http.Client, base string, who actor, q ask) answer {
	method := q.method
	if method == "" {
		method = http.MethodGet
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, base, bytes.NewReader([]byte(q.body)))
	if err != nil {
		return answer{err: err}
	}
	path, query, _ := strings.Cut(q.path, "?")
	req.URL.Opaque, req.URL.RawQuery = "//"+req.URL.Host+path, query // as it stands
	if u, err := url.Parse(base + q.path); err == nil && u.EscapedPath() == path {
		req.URL = u
	}
	if who.token != "" {
		req.Header.Set("Authorization", "Bearer "+who.token)
	}
	if q.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range q.header {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	a := answer{code: resp.StatusCode, header: resp.Header}
	// it may not end.
	if (strings.Contains(query, "atch") || strings.Contains(path, "/watch/")) && resp.StatusCode == http.StatusOK {
		stop := time.AfterFunc(watchRead, cancel)
		defer stop.Stop()
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerBytes))
	if !errors.Is(err, context.Canceled) {
		a.err = err
	}
	a.body = string(body)
	return a
}
