package thief

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/audit"
	"github.com/weir-edge/weir/sim/testca"
)

const (
	answer     = 5 * time.Second // for one answer
	slicesPath = "/apis/discovery.k8s.io/v1/endpointslices"
)

// Config is what a thief has, and where he goes.
type Config struct {
	Pool, Node   string
	Hub          *testca.Pair            // of the hub, in its pool
	Cloud        map[string]*testca.Pair // by which kube-apiserver knows it, by a word for people
	PoolRoots    *x509.CertPool
	CloudRoots   *x509.CertPool
	CloudURL     string
	Coordinators []string // host:port
	Peers        []string // host:port where hubs beside it show to their pool
}

// want is something that the node may do.
type want struct {
	name   string
	method string
	url    string
	body   string
	client *http.Client
	codes  []int // that grant it; none: 200
	pool   bool  // a part of the pool is asked
}

// Thief is one.
type Thief struct {
	wants   []want
	streams []*stream
	clients []*http.Client
	stop    context.CancelFunc
	wait    sync.WaitGroup
}

// stream is an answer that goes on.
type stream struct {
	name string
	over atomic.Bool
}

// New tries all that the node may do, and keeps what is granted.
func New(ctx context.Context, c Config) (*Thief, error) {
	ctx, stop := context.WithCancel(ctx)
	t := &Thief{stop: stop}
	err := t.begin(ctx, c)
	if err != nil {
		t.Close()
		return nil, fmt.Errorf("thief of node %s: %w", c.Node, err)
	}
	return t, nil
}

// steal reads a file in which a hub keeps a certificate that it asked for.
func steal(path string) (*testca.Pair, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, rest := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s: no key in PEM", path)
	}
	return &testca.Pair{KeyPEM: pem.EncodeToMemory(block), CertPEM: rest}, nil
}

func (t *Thief) begin(ctx context.Context, c Config) error {
	all, open, err := t.plans(c)
	if err != nil {
		return err
	}
	for _, w := range all {
		if granted, _ := w.try(ctx); granted {
			t.wants = append(t.wants, w)
		}
	}
	for _, w := range open {
		if err := t.open(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// plans are requests, and streams to open.
func (t *Thief) plans(c Config) (all, open []want, err error) {
	both := func(about string, pair *testca.Pair, roots *x509.CertPool, method, url, body string, codes ...int) error {
		for _, once := range []bool{true, false} {
			client, err := t.client(pair, roots, once)
			if err != nil {
				return err
			}
			over := "over an open connection"
			if once {
				over = "anew"
			}
			all = append(all, want{about + ", " + over, method, url, body, client, codes, pair == c.Hub})
		}
		return nil
	}
	stream := func(about, url string) error {
		client, err := t.client(c.Hub, c.PoolRoots, true)
		open = append(open, want{name: about, method: http.MethodGet, url: url, client: client})
		return err
	}
	for _, at := range c.Coordinators {
		err = errors.Join(err,
			both("read at the coordinator", c.Hub, c.PoolRoots, http.MethodGet, "https://"+at+contract.StatusPath, ""),
			stream("a feed of the coordinator", "https://"+at+slicesPath+"?watch=1"),
			stream("a watch of Leases at the coordinator", "https://"+at+"/apis/coordination.k8s.io/v1/leases?watch=1"))
	}
	for _, at := range c.Peers {
		err = errors.Join(err,
			both("read at hub "+at, c.Hub, c.PoolRoots, http.MethodGet, "https://"+at+contract.StatusPath, ""),
			stream("a feed of hub "+at, "https://"+at+slicesPath+"?watch=1"))
	}
	node := fmt.Sprintf(
		`{"kind":"Node","apiVersion":"v1","metadata":{"name":%q,"labels":{"kubernetes.io/hostname":%[1]q}}}`, c.Node)
	for who, pair := range c.Cloud {
		err = errors.Join(err,
			both("whom to trust, as "+who, pair, c.CloudRoots, http.MethodGet,
				c.CloudURL+"/api/v1/namespaces/"+contract.KeyNamespace+"/configmaps/pool-"+c.Pool, ""),
			// A list is what the hub relays: its own user alone may read it.
			both("a new Node, as "+who, pair, c.CloudRoots, http.MethodPost, c.CloudURL+"/api/v1/nodes?dryRun=All", node,
				http.StatusConflict, http.StatusCreated))
		if strings.HasPrefix(who, "hub") {
			err = errors.Join(err, both("slices, as "+who, pair, c.CloudRoots, http.MethodGet, c.CloudURL+slicesPath+"?limit=1",
				""))
		}
	}
	return all, open, err
}

// client shows a certificate. One that asks once opens a connection for each request.
func (t *Thief) client(pair *testca.Pair, roots *x509.CertPool, once bool) (*http.Client, error) {
	cert, err := pair.TLS()
	if err != nil {
		return nil, err
	}
	c := &http.Client{Transport: &http.Transport{
		DialContext: (&net.Dialer{Timeout: answer}).DialContext, TLSHandshakeTimeout: answer, ForceAttemptHTTP2: true,
		DisableKeepAlives: once,
		// A hub answers under the name of its node; who it is does not matter to a thief.
		//nolint:gosec // see above
		TLSClientConfig: &tls.Config{
			RootCAs: roots, Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13, InsecureSkipVerify: true,
		},
	}}
	t.clients = append(t.clients, c)
	return c, nil
}

// try sends it. granted and refused are both false if nobody answered.
func (w want) try(ctx context.Context) (granted, refused bool) {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	resp, err := w.send(ctx)
	if err != nil {
		return false, alert(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	return w.grants(resp.StatusCode), resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden
}

func (w want) grants(code int) bool {
	for _, c := range w.codes {
		if c == code {
			return true
		}
	}
	return len(w.codes) == 0 && code == http.StatusOK
}

func (w want) send(ctx context.Context) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, w.method, w.url, strings.NewReader(w.body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", audit.Thief)
	if w.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	return w.client.Do(req)
}

// alert reports whether the other side ended a handshake.
func alert(err error) bool {
	var a tls.AlertError
	return errors.As(err, &a) || strings.Contains(err.Error(), "remote error: tls:")
}

// open opens a stream, which has to be granted.
func (t *Thief) open(ctx context.Context, w want) error {
	resp, err := w.send(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", w.name, err)
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return fmt.Errorf("%s: %s", w.name, resp.Status)
	}
	s := &stream{name: w.name}
	t.streams = append(t.streams, s)
	t.wait.Go(func() {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		s.over.Store(true)
	})
	return nil
}

// Granted is how many requests and streams were granted in the beginning.
func (t *Thief) Granted() int { return len(t.wants) + len(t.streams) }

// Left are those that are not refused, and streams that go on.
func (t *Thief) Left(ctx context.Context) (left []string) {
	for _, s := range t.streams {
		if !s.over.Load() {
			left = append(left, s.name)
		}
	}
	for _, w := range t.wants {
		if _, refused := w.try(ctx); !refused {
			left = append(left, w.name)
		}
	}
	return left
}

// InPool are the requests to coordinator and hubs that are granted now.
func (t *Thief) InPool(ctx context.Context) (granted []string) {
	for _, w := range t.wants {
		if !w.pool {
			continue
		}
		if ok, _ := w.try(ctx); ok {
			granted = append(granted, w.name)
		}
	}
	return granted
}

// Close ends it.
func (t *Thief) Close() {
	t.stop()
	t.wait.Wait()
	for _, c := range t.clients {
		c.CloseIdleConnections()
	}
}
