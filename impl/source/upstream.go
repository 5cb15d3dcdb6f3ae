package source

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// Upstream is one place that a relay can be fed from. What is exported is immutable.
type Upstream struct {
	// Name is for people and metrics: "cloud", "coordinator".
	Name string
	// URL is the root of the Kubernetes API there.
	URL *url.URL
	// Client carries the credentials. It must not follow redirects or have a timeout of its own.
	Client *http.Client
	// OnBytes, if set, is told the bytes of bodies as they arrive, compressed if they are.
	OnBytes func(n int)
	// Gzip asks for compressed lists and streaming lists: right for the cloud, wrong inside a pool.
	Gzip bool
	// Consistent says that reads without a version are consistent, as those of a kube-apiserver: they show whether its history is
	// the one that the relay knows. A relay says so by itself (rest.HistoryHeader).
	Consistent bool
	// Progress asks for every bookmark as it comes (rest.ProgressHeader): right for a relay, unknown to a kube-apiserver.
	Progress bool
	// Ask carries small questions, and should not share a connection with Client: behind what pours there an answer would wait for as long as
	// that takes. Default Client.
	Ask *http.Client
	// Aside carries watches that are left before their end, and should let little of them be under way: it comes for nothing. Default Client.
	Aside *http.Client
	// Arrived, if set, counts bytes as they come over the connections. While it grows, what is waited for may be behind them. Default: the
	// bytes of bodies that were read.
	Arrived func() int64
	// Silent, if set, tells that the connection does not even answer pings. What is asked then waits in it, and its answer comes when
	// the link is back, too late to be of use: what is not needed is not asked.
	Silent func() bool
	// Admit, if set, is asked before each change of the relay, and ends it by its error: this upstream may have ceased to be the one that counts,
	// and what it brings is on its way.
	Admit func() error
	// Hearsay says that the upstream is no source: nobody hears from the cloud, and it holds more than others. What it brings moves the relay
	// forward only, in its own history, and makes nothing fresh.
	Hearsay bool

	bodies atomic.Int64 // bytes of bodies that were read
}

func (u *Upstream) arrived() int64 {
	if u.Arrived != nil {
		return u.Arrived()
	}
	return u.bodies.Load()
}

func (u *Upstream) admits() error {
	if u.Admit == nil {
		return nil
	}
	return u.Admit()
}

func (u *Upstream) silent() bool { return u.Silent != nil && u.Silent() }

// form is how much of each object is asked for.
type form string

const (
	whole        form = ""
	metadata     form = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	metadataList form = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// metadataKind is what objects of form metadata declare.
var metadataKind = wire.Kind{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}

const (
	acceptProtobuf = "application/vnd.kubernetes.protobuf"
	acceptJSON     = "application/json"
)

// StatusError is an answer other than 200.
type StatusError struct {
	Code       int
	Reason     metav1.StatusReason
	Message    string
	RetryAfter time.Duration
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("answer %d %s: %s", e.Code, e.Reason, e.Message)
}

// answered is the code of the answer that an error is about, 0 if there was none.
func answered(err error) int {
	var s *StatusError
	if errors.As(err, &s) {
		return s.Code
	}
	return 0
}

func gone(err error) bool { return answered(err) == http.StatusGone }

func fromStatus(s *metav1.Status) *StatusError {
	e := &StatusError{Code: int(s.Code), Reason: s.Reason, Message: s.Message}
	if s.Details != nil {
		e.RetryAfter = time.Duration(s.Details.RetryAfterSeconds) * time.Second
	}
	return e
}

// question is a list or watch.
type question struct {
	of        form
	namespace string // "": all
	query     url.Values
	history   *relay.History // that a relay has to be in; nil: any
	past      bool           // rest.PastHeader
	small     bool           // the answer is, and goes by Upstream.Ask
	aside     bool           // it is left early, and goes by Upstream.Aside
}

// answer is one that has begun.
type answer struct {
	body       io.ReadCloser // decompressed and counted
	compressed bool
	history    relay.History // of the answer of a relay
	conn       net.Conn      // that it came over; nil: not known
}

// get opens a list or watch; the caller closes the body.
func (u *Upstream) get(ctx context.Context, res relay.Resource, q question) (*answer, error) {
	target := u.URL.JoinPath(res.Path())
	if q.namespace != "" {
		target = target.JoinPath("namespaces", q.namespace)
	}
	target = target.JoinPath(res.Resource)
	target.RawQuery = q.query.Encode()
	a := &answer{}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { a.conn = i.Conn }})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	accept := acceptProtobuf
	if res.Encoding() == wire.JSON {
		accept = acceptJSON
	}
	if q.history != nil && u.Progress {
		req.Header.Set(rest.HistoryHeader, q.history.String())
	}
	req.Header.Set("Accept", accept+string(q.of))
	if u.Progress {
		req.Header.Set(rest.ProgressHeader, "1")
		if q.past {
			req.Header.Set(rest.PastHeader, "1")
		}
	}
	req.Header.Set("Accept-Encoding", "identity")
	if u.Gzip {
		req.Header.Set("Accept-Encoding", "gzip")
	}
	client := u.Client
	switch {
	case q.small && u.Ask != nil:
		client = u.Ask
	case q.aside && u.Aside != nil:
		client = u.Aside
	}
	resp, err := client.Do(req) //nolint:bodyclose // handed to the caller, who closes it
	if err != nil {
		return nil, err
	}
	body := &countedBody{resp.Body, u}
	if u.Progress {
		if a.history, err = readHistory(resp, q.history); err != nil {
			body.Close()
			return nil, err
		}
	}
	if resp.StatusCode != http.StatusOK {
		defer body.Close()
		return nil, readStatus(resp, body)
	}
	a.body = body
	if a.compressed = resp.Header.Get("Content-Encoding") == "gzip"; a.compressed {
		a.body = newGzipBody(body)
	}
	return a, nil
}

// gzipBody decompresses a body. kube-apiserver writes a gzip member per flush of a stream: what a member holds is handed on before
// the next one is waited for, which may be long in coming.
type gzipBody struct {
	body io.ReadCloser
	in   *bufio.Reader
	z    *gzip.Reader
	open bool // inside a member
}

func newGzipBody(body io.ReadCloser) *gzipBody {
	return &gzipBody{body: body, in: bufio.NewReader(body), z: new(gzip.Reader)}
}

func (b *gzipBody) Read(p []byte) (int, error) {
	for {
		if !b.open {
			if err := b.z.Reset(b.in); err != nil {
				return 0, err
			}
			b.z.Multistream(false)
			b.open = true
		}
		n, err := b.z.Read(p)
		if errors.Is(err, io.EOF) {
			b.open, err = false, nil
		}
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
	}
}

func (b *gzipBody) Close() error { return b.body.Close() }

func readStatus(resp *http.Response, body io.Reader) error {
	b, _ := io.ReadAll(io.LimitReader(body, 64<<10))
	var s metav1.Status
	if strings.HasPrefix(resp.Header.Get("Content-Type"), acceptProtobuf) {
		if k, raw, err := wire.SplitEnvelope(b); err == nil && k.Kind == "Status" {
			_ = s.Unmarshal(raw)
		}
	} else {
		_ = json.Unmarshal(b, &s)
	}
	e := fromStatus(&s)
	e.Code = resp.StatusCode
	if e.Message == "" {
		e.Message = strings.TrimSpace(string(b[:min(len(b), 200)]))
	}
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		e.RetryAfter = time.Duration(n) * time.Second
	}
	return e
}

type countedBody struct {
	io.ReadCloser
	up *Upstream
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.up.bodies.Add(int64(n))
	if b.up.OnBytes != nil && n > 0 {
		b.up.OnBytes(n)
	}
	return n, err
}
