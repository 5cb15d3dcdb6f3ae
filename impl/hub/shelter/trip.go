package shelter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
)

// maxBody bounds the bodies of requests that are made brief: a Node with all its images has some 20 kB.
const maxBody = 256 << 10

// Trip sends one request to the cloud, in brief if it can.
type Trip struct {
	b         *Brief
	deed      *deed
	component string
	asked     *request.Request
	via       http.RoundTripper
	version   uint64
	kept      bool
}

// TripOf is the way of a request that may be made brief; nil: it may not.
func TripOf(b *Brief, component string, q *request.Request, h http.Header, via http.RoundTripper) *Trip {
	d := b.of(q)
	if d == nil || d.off.Load() {
		return nil
	}
	t := &Trip{b: b, deed: d, component: component, asked: q, via: via}
	if !plain(q, h) {
		t.counts("other")
		return nil
	}
	return t
}

// Version is that of the object that the hub has answered with; 0: the cloud has answered.
func (t *Trip) Version() uint64 {
	if t == nil {
		return 0
	}
	return t.version
}

// Kept reports whether the hub has answered, and has asked nobody.
func (t *Trip) Kept() bool { return t != nil && t.kept }

func (t *Trip) counts(outcome string) { t.b.count.WithLabelValues(t.deed.name, outcome).Inc() }

// RoundTrip implements http.RoundTripper.
func (t *Trip) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body == nil { // a deletion without options
		t.counts("other")
		return t.via.RoundTrip(req)
	}
	body, err := io.ReadAll(io.LimitReader(req.Body, maxBody+1))
	if err != nil {
		return nil, fmt.Errorf("read the body: %w", err)
	}
	if len(body) > maxBody {
		t.counts("other")
		whole := req.Clone(req.Context())
		whole.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(body), req.Body), req.Body}
		return t.via.RoundTrip(whole)
	}
	if err := req.Body.Close(); err != nil {
		return nil, fmt.Errorf("read the body: %w", err)
	}
	a, p, remains := t.begin(req, body)
	switch {
	case remains != nil:
		return t.keep(req, remains)
	case a == nil:
		return t.via.RoundTrip(carries(req, body))
	}
	short := carries(req, p.body)
	media := wanted(req.Header)
	short.Header.Set("Accept", media+";as=PartialObjectMetadata;g=meta.k8s.io;v=v1,"+accepted(req.Header))
	short.Header.Set("Accept-Encoding", "identity")
	resp, err := t.via.RoundTrip(short)
	if err != nil {
		t.b.drop(a)
		t.counts("failed")
		return nil, err
	}
	switch resp.StatusCode {
	case http.StatusOK:
		return t.whole(a, media, resp)
	case http.StatusConflict: // perhaps of the version, which its client did not ask for
		t.counts("conflict")
	case http.StatusNotAcceptable, http.StatusUnsupportedMediaType:
		t.counts("refused")
	default:
		t.b.drop(a)
		t.counts("failed")
		return resp, nil
	}
	t.b.drop(a)
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, wire.MaxObject))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return t.via.RoundTrip(carries(req, body))
}

// begin plans a request in brief; nil: it passes as it came, unless the cloud need not be asked. Then the object
// remains what it is there.
func (t *Trip) begin(req *http.Request, body []byte) (a *due, p plan, remains object) {
	k := id{t.asked.Resource, t.asked.In(), t.asked.Name}
	held := t.b.Held(t.component, t.asked)
	if held == nil || wanted(req.Header) == "" {
		t.counts("not held")
		return nil, plan{}, nil
	}
	was, ok := t.deed.decode(held.Raw)
	if last := t.b.latest(k); last != nil && last.version > held.Version {
		// A kubelet deletes a pod as soon as it has the answer to its last status, which the watch is about to show.
		if ok = ok && t.asked.Method == http.MethodDelete; ok {
			was = last.becomes
		}
	}
	if !ok {
		t.counts("not held")
		return nil, plan{}, nil
	}
	p, err := t.deed.plan(was, mediaOf(req.Header), body)
	if err != nil {
		t.b.Logger.Debug("a write of the kubelet is sent as it came", "resource", t.deed.name, "name", t.asked.Name,
			"err", err)
		t.counts("other")
		return nil, plan{}, nil
	}
	if p.beats && onlyBeats(p.becomes, was, t.b.NodeStatusPeriod) {
		return nil, p, was
	}
	a = t.b.ledger.begin(&due{of: k, deed: t.deed, becomes: p.becomes, seen: []*wire.Object{held}})
	if a == nil {
		t.counts("other")
	}
	return a, p, nil
}

// whole makes the answer that the client wants of the cloud's.
func (t *Trip) whole(a *due, media string, resp *http.Response) (*http.Response, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, wire.MaxObject))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		t.b.drop(a)
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	m, version := metadataOf(mediaOf(resp.Header), body)
	if version == 0 { // of a cloud that answers otherwise: that is what the client gets
		t.b.drop(a)
		t.counts("refused")
		return resp, nil
	}
	is := with(a.becomes, m.ObjectMeta)
	if shown := t.b.answered(a, version, is); shown != nil {
		t.b.compare(a, shown)
		if o, ok := t.deed.decode(shown.Raw); ok {
			is = o
		}
	}
	t.counts("brief")
	t.version = version
	return resp, t.fill(resp, media, is)
}

// keep answers with the object as it is at the cloud.
func (t *Trip) keep(req *http.Request, remains object) (*http.Response, error) {
	resp := answer.OK(req, http.Header{}, nil)
	if err := t.fill(resp, wanted(req.Header), remains); err != nil {
		return nil, err
	}
	t.counts("kept")
	t.kept = true
	return resp, nil
}

// fill makes an object the body of an answer.
func (t *Trip) fill(resp *http.Response, media string, o object) error {
	body, err := t.deed.encode(media, o)
	if err != nil {
		return err
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	resp.Header.Set("Content-Type", media)
	return nil
}

// carries is a request with a body.
func carries(req *http.Request, body []byte) *http.Request {
	out := req.Clone(req.Context())
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	out.Header.Del("Content-Length")
	out.TransferEncoding = nil
	return out
}

func accepted(h http.Header) string { return strings.Join(h.Values("Accept"), ",") }

// wanted is the encoding that a client would like best, "" if it is none of the two, or the client wants no object.
func wanted(h http.Header) string {
	for _, c := range rest.ParseAccept(accepted(h)) {
		if c.Params["as"] != "" {
			return ""
		}
		switch c.Media {
		case runtime.ContentTypeProtobuf, runtime.ContentTypeJSON:
			return c.Media
		case "*/*", "application/*":
			return runtime.ContentTypeJSON
		}
	}
	return ""
}
