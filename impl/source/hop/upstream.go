package hop

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weir-edge/weir/impl/contract"
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
	// Consistent says that reads without a version are consistent, as those of a kube-apiserver: they show whether its
	// history is the one that the relay knows. A relay says so by itself (rest.HistoryHeader).
	Consistent bool
	// Progress asks for every bookmark as it comes (rest.ProgressHeader): right for a relay, unknown to a kube-apiserver.
	Progress bool
	// Calm is how rarely a relay that is quiet has to say that it lives, in whole seconds. 0: as often as it hears so.
	Calm time.Duration
	// Delta asks for watches as differences (package wire), which a relay knows and a kube-apiserver does not. No part of
	// a pool does: in the scenario pool-cache it cost a hub 3.9 MB and a coordinator 4.3 MB, and bytes inside a pool are
	// cheap.
	Delta bool
	// Ask carries small questions, and should not share a connection with Client: behind what pours there an answer would
	// wait for as long as that takes. Default Client.
	Ask *http.Client
	// Aside carries watches that are left before their end, and should let little of them be under way: it comes for
	// nothing. Default Client.
	Aside *http.Client
	// Arrived, if set, counts bytes as they come over the connections. While it grows, what is waited for may be behind
	// them. Default: the bytes of bodies that were read.
	Arrived func() int64
	// Silent, if set, tells that the connection does not even answer pings. What is asked then waits in it, and its answer
	// comes when the link is back, too late to be of use: what is not needed is not asked.
	Silent func() bool
	// Admit, if set, is asked before each change of the relay, and ends it by its error: this upstream may have ceased to
	// be the one that counts, and what it brings is on its way.
	Admit func() error
	// Unconfirmed says that the upstream is no source: nobody hears from the cloud, and it holds more than others. What it
	// brings moves the relay forward only, in its own history, and makes nothing fresh.
	Unconfirmed bool

	bodies atomic.Int64 // bytes of bodies that were read
}

// Bytes counts what has come so far: see Arrived.
func (u *Upstream) Bytes() int64 {
	if u.Arrived != nil {
		return u.Arrived()
	}
	return u.bodies.Load()
}

// Admits is the error by which the upstream has ceased to be the one that counts.
func (u *Upstream) Admits() error {
	if u.Admit == nil {
		return nil
	}
	return u.Admit()
}

// IsSilent reports whether the connection is known to answer nothing.
func (u *Upstream) IsSilent() bool { return u.Silent != nil && u.Silent() }

// Get opens a list or watch; the caller closes the body.
func (u *Upstream) Get(ctx context.Context, res relay.Resource, q Question, check Check) (*Answer, error) {
	target := u.URL.JoinPath(res.Path())
	if q.Namespace != "" {
		target = target.JoinPath("namespaces", q.Namespace)
	}
	target = target.JoinPath(res.Resource)
	target.RawQuery = q.Query.Encode()
	a := &Answer{}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) { a.Conn = i.Conn },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	accept := acceptProtobuf
	if res.Encoding() == wire.JSON {
		accept = acceptJSON
	}
	if q.History != nil && u.Progress {
		req.Header.Set(rest.HistoryHeader, q.History.String())
	}
	accept += string(q.Of)
	if q.Delta {
		form := wire.DeltaMedia + ";stream=watch"
		if q.Since > 0 {
			form += ";" + wire.DeltaSince + "=" + wire.FormatVersion(q.Since)
		}
		accept = form + ", " + accept
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("User-Agent", contract.UserAgent)
	if u.Progress {
		req.Header.Set(rest.ProgressHeader, strconv.Itoa(max(1, int(u.Calm/time.Second))))
		if q.Past {
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
	case q.Aside && u.Aside != nil:
		client = u.Aside
	}
	resp, err := client.Do(req) //nolint:bodyclose // handed to the caller, who closes it
	if err != nil {
		return nil, err
	}
	body := &countedBody{ReadCloser: resp.Body, up: u}
	a.Arrived = body.n.Load
	if u.Progress {
		if a.History, err = readHistory(resp, check); err != nil {
			body.Close()
			return nil, err
		}
	}
	if resp.StatusCode != http.StatusOK {
		defer body.Close()
		return nil, readStatus(resp, body)
	}
	a.Body, a.Delta = body, strings.HasPrefix(resp.Header.Get("Content-Type"), wire.DeltaMedia)
	if a.Compressed = resp.Header.Get("Content-Encoding") == "gzip"; a.Compressed {
		a.Body = newGzipBody(body)
	}
	return a, nil
}

// countedBody counts what is read of a body.
type countedBody struct {
	io.ReadCloser
	up *Upstream
	n  atomic.Int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.Add(int64(n))
	b.up.bodies.Add(int64(n))
	if b.up.OnBytes != nil && n > 0 {
		b.up.OnBytes(n)
	}
	return n, err
}

// readHistory reads what a relay says of its history.
func readHistory(resp *http.Response, check Check) (relay.History, error) {
	theirs, _, err := rest.ParseHistory(resp.Header)
	if err != nil {
		return theirs, err
	}
	age := time.Duration(-1)
	if seconds, err := strconv.Atoi(resp.Header.Get(contract.AgeHeader)); err == nil {
		age = time.Duration(seconds) * time.Second
	}
	return theirs, check(theirs, age)
}

// Look reads the metadata of one object as it is now, nil if there is none, and the version of the answer. No name:
// only the version counts. It is a consistent read of some hundred bytes if the upstream is a kube-apiserver.
func (u *Upstream) Look(ctx context.Context, res relay.Resource, namespace, name string) (version uint64,
	found *wire.Object, err error) {
	return u.LookAt(ctx, res, namespace, name, 0)
}

// LookAt is Look as it was at a version; 0: as it is now.
func (u *Upstream) LookAt(ctx context.Context, res relay.Resource, namespace, name string, at uint64) (version uint64,
	found *wire.Object, err error) {
	q := Question{Of: MetadataList, Query: url.Values{"limit": {"1"}}, small: true}
	if name != "" {
		q.Namespace, q.Query = namespace, url.Values{"fieldSelector": {"metadata.name=" + name}}
	}
	meta, err := u.glance(ctx, res, q, at, func(o *wire.Object) {
		if name != "" && o.Name == name && o.Namespace == namespace {
			found = o
		}
	})
	return meta.Version, found, err
}

// CountAt is how many objects there were at a version, known if the upstream tells it. That too is a read of some
// hundred bytes.
func (u *Upstream) CountAt(ctx context.Context, res relay.Resource, at uint64) (n int, known bool, err error) {
	meta, err := u.glance(ctx, res, Question{Of: MetadataList, Query: url.Values{"limit": {"1"}}, small: true}, at,
		func(*wire.Object) { n++ })
	switch {
	case err != nil:
		return 0, false, err
	case meta.Remaining != nil:
		n += int(*meta.Remaining)
	}
	return n, meta.Remaining != nil || meta.Continue == "", nil
}

// ListKind is what lists of a resource declare.
func (u *Upstream) ListKind(ctx context.Context, res relay.Resource) (string, error) {
	q := Question{Query: url.Values{"limit": {"1"}, "resourceVersion": {"0"}}, small: true}
	a, err := u.Get(ctx, res, q, func(relay.History, time.Duration) error { return nil })
	if err != nil {
		return "", err
	}
	defer a.Body.Close()
	m, err := wire.ReadList(a.Body, res.Encoding(), res.WireKind(), func(*wire.Object) error { return nil })
	return m.Kind, err
}

// glance reads a short list, as it was at a version; 0: as it is now.
func (u *Upstream) glance(ctx context.Context, res relay.Resource, q Question, at uint64, take func(*wire.Object)) (
	wire.ListMeta, error) {
	if at != 0 {
		q.Query.Set("resourceVersion", wire.FormatVersion(at))
		q.Query.Set("resourceVersionMatch", "Exact")
	}
	a, err := u.Get(ctx, res, q, func(relay.History, time.Duration) error { return nil })
	if err != nil {
		return wire.ListMeta{}, err
	}
	defer a.Body.Close()
	return wire.ReadList(a.Body, res.Encoding(), MetadataKind, func(o *wire.Object) error {
		take(o)
		return nil
	})
}
