package bench

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/sim/proc"
)

const slicesPath = "/apis/discovery.k8s.io/v1/endpointslices"

var pieces = sync.Pool{New: func() any { b := make([]byte, 256<<10); return &b }}

// target is a server under measurement.
type target struct {
	name  string
	url   string
	trust rest.TLSClientConfig // who signed its certificate
	token string
	part  interface{ Usage() (proc.Usage, error) }
	http1 bool // the client speaks HTTP/1.1
}

// client has connections of its own, so that targets and watchers share none. Whom to trust is read for each
// connection: a hub with an empty disk makes a new authority when it starts.
func (t target) client() *http.Client {
	protocols := []string{"h2", "http/1.1"}
	if t.http1 {
		protocols = protocols[1:]
	}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		config, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: t.trust})
		if err != nil {
			return nil, fmt.Errorf("who signed the certificate of %s: %w", t.name, err)
		}
		config.NextProtos = protocols
		return (&tls.Dialer{Config: config}).DialContext(ctx, network, address)
	}
	return &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: !t.http1, DialTLSContext: dial}}
}

// get opens a read in protobuf, uncompressed.
func (t target) get(ctx context.Context, c *http.Client, path string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url+path, nil)
	if err != nil {
		return nil, err
	}
	if t.token != "" {
		req.Header.Set("Authorization", "Bearer "+t.token)
	}
	req.Header.Set("Accept", "application/vnd.kubernetes.protobuf")
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := c.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	if resp.StatusCode != http.StatusOK {
		msg, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
		again, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return nil, errors.Join(&statusError{
			resp.StatusCode, time.Duration(again) * time.Second,
			fmt.Sprintf("%s: GET %s: %s: %s", t.name, path, resp.Status, msg),
		}, resp.Body.Close())
	}
	return resp.Body, nil
}

// statusError is an answer that is not what was asked for.
type statusError struct {
	code  int
	again time.Duration // after which the server wants to be asked again; 0: it does not say
	text  string
}

func (e *statusError) Error() string { return e.text }

// discard reads an answer to its end, in large pieces: client-go reads it into one slice. In pieces of 8 KiB, those of
// io.Discard, a client sends its server thousands of window updates.
func (t target) discard(ctx context.Context, c *http.Client, path string) (int64, error) {
	body, err := t.get(ctx, c, path)
	if err != nil {
		return 0, err
	}
	var n int64
	piece := pieces.Get().(*[]byte)
	defer pieces.Put(piece)
	for err == nil {
		var k int
		k, err = body.Read(*piece)
		n += int64(k)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, errors.Join(err, body.Close())
}

// cpu is the CPU time that the server used while f ran.
func (t target) cpu(f func() error) (time.Duration, error) {
	before, err := t.part.Usage()
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	after, err := t.part.Usage()
	return after.CPU - before.CPU, err
}
