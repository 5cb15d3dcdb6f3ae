package oracle

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// Side is one of the two servers.
type Side struct {
	Name   string
	URL    string
	Client *http.Client
}

// Answer is what a side said.
type Answer struct {
	Code   int
	Reason metav1.StatusReason
	Type   string // Content-Type
	// Encoding is Content-Encoding; Body is as it was before.
	Encoding string
	Body     []byte
}

// Ask sends a request and reads the whole answer.
func (s Side) Ask(ctx context.Context, r Request) (*Answer, error) {
	resp, err := s.open(ctx, r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return readAnswer(s, resp)
}

func (s Side) open(ctx context.Context, r Request) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+r.Path+"?"+r.Query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	if r.Accept != "" {
		req.Header.Set("Accept", r.Accept)
	}
	req.Header.Set("Accept-Encoding", "identity")
	if r.Gzip {
		req.Header.Set("Accept-Encoding", "gzip")
	}
	resp, err := s.Client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	return resp, nil
}

func readAnswer(s Side, resp *http.Response) (*Answer, error) {
	a := &Answer{
		Code: resp.StatusCode, Type: resp.Header.Get("Content-Type"), Encoding: resp.Header.Get("Content-Encoding"),
	}
	body := io.Reader(resp.Body)
	var err error
	if a.Encoding == "gzip" {
		if body, err = gzip.NewReader(body); err != nil {
			return nil, fmt.Errorf("%s: read answer: %w", s.Name, err)
		}
	}
	if a.Body, err = io.ReadAll(body); err != nil {
		return nil, fmt.Errorf("%s: read answer: %w", s.Name, err)
	}
	if a.Code != http.StatusOK {
		a.Reason = reason(a)
	}
	return a, nil
}

// plain is the body, that of a refusal without white space: kube-apiserver indents a Status when it cannot write it in
// the form asked for.
func (a *Answer) plain() []byte {
	var b bytes.Buffer
	if a.Code == http.StatusOK || a.Type != "application/json" || json.Compact(&b, a.Body) != nil {
		return a.Body
	}
	return b.Bytes()
}

func reason(a *Answer) metav1.StatusReason {
	var s metav1.Status
	if strings.HasPrefix(a.Type, "application/vnd.kubernetes.protobuf") {
		if _, raw, err := wire.SplitEnvelope(a.Body); err == nil {
			_ = s.Unmarshal(raw)
		}
	} else {
		_ = json.Unmarshal(a.Body, &s)
	}
	return s.Reason
}

// Pair is the relay and its oracle.
type Pair struct {
	Cloud, Relay Side
	Kind         wire.Kind
}

// MismatchError is an answer of the relay that kube-apiserver would not give.
type MismatchError struct {
	Request Request
	What    string
}

func (m *MismatchError) Error() string { return m.Request.String() + ": " + m.What }

func mismatch(r Request, format string, args ...any) error {
	return &MismatchError{r, fmt.Sprintf(format, args...)}
}

// Compare sends one request to both sides and returns a *MismatchError if the relay's answer is not kube-apiserver's.
func (p Pair) Compare(ctx context.Context, r Request) error {
	switch {
	case r.Refused:
		return p.compareRefusal(ctx, r)
	case r.Watch():
		return p.compareWatch(ctx, r)
	case strings.Count(r.Path, "/") > strings.Count(p.root(r), "/")+1:
		return p.compareGet(ctx, r)
	default:
		return p.compareList(ctx, r)
	}
}

// root is the path of a request's collection without its resource.
func (p Pair) root(r Request) string {
	parts := strings.Split(strings.TrimPrefix(r.Path, "/"), "/")
	n := 2 // api/v1
	if parts[0] == "apis" {
		n = 3
	}
	if len(parts) > n+1 && parts[n] == "namespaces" {
		n += 2
	}
	return "/" + strings.Join(parts[:n], "/")
}

func (p Pair) compareRefusal(ctx context.Context, r Request) error {
	want, err := p.Cloud.Ask(ctx, r)
	if err != nil {
		return err
	}
	got, err := p.Relay.Ask(ctx, r)
	if err != nil {
		return err
	}
	if r.Watch() && want.Code == http.StatusOK {
		return fmt.Errorf("%v: kube-apiserver accepts it: the generator is wrong", r)
	}
	if got.Code != want.Code || got.Reason != want.Reason {
		return mismatch(r, "%d %s (%.200s), kube-apiserver says %d %s (%.200s)", got.Code, got.Reason, got.Body, want.Code,
			want.Reason, want.Body)
	}
	return nil
}

// compareList asks the relay, and kube-apiserver for exactly the version that the relay named, page by page.
func (p Pair) compareList(ctx context.Context, r Request) error {
	for pages := 0; ; pages++ {
		got, err := p.Relay.Ask(ctx, r)
		if err != nil {
			return err
		}
		if got.Code != http.StatusOK {
			return mismatch(r, "%d %s: %.300s", got.Code, got.Reason, got.Body)
		}
		version, next, err := listMeta(got)
		if err != nil {
			return mismatch(r, "%v", err)
		}
		exact := Request{Path: r.Path, Query: clone(r.Query), Accept: r.Accept, Gzip: r.Gzip, Custom: r.Custom}
		if r.Query.Get("continue") == "" {
			exact.Query.Set("resourceVersion", version)
			exact.Query.Set("resourceVersionMatch", "Exact")
			if r.Query.Get("resourceVersion") == "0" {
				exact.Query.Del("limit") // kube-apiserver ignores it with version 0
			}
		}
		want, err := p.Cloud.Ask(ctx, exact)
		if err != nil {
			return err
		}
		if want.Code != http.StatusOK {
			return fmt.Errorf("%v: kube-apiserver: %d %.300s", exact, want.Code, want.Body)
		}
		if got.Type != want.Type {
			return mismatch(r, "Content-Type %q, kube-apiserver says %q", got.Type, want.Type)
		}
		if got.Encoding != want.Encoding {
			return mismatch(r, "Content-Encoding %q of %d bytes, kube-apiserver says %q", got.Encoding, len(got.Body),
				want.Encoding)
		}
		if !same(r, got.Body, want.Body) {
			return mismatch(r, "bodies differ at version %s: %s", version, difference(got.Body, want.Body))
		}
		if next == "" || pages > 50 {
			return nil
		}
		r.Query = clone(r.Query)
		r.Query.Set("continue", next)
		r.Query.Del("resourceVersion")
		r.Query.Del("resourceVersionMatch")
	}
}

// age is a cell of a table's row: it depends on when it is asked for.
var age = regexp.MustCompile(`"(?:[0-9]+[smhdy])+"`)

// same compares bodies, but for the ages in tables, and the order of fields in the metadata of custom resources: these
// are written in the order of their names or, when kube-apiserver made a Go type of them, in that of the type.
func same(r Request, a, b []byte) bool {
	table := []byte(`{"kind":"Table",`)
	switch {
	case bytes.Equal(a, b):
		return true
	case bytes.HasPrefix(a, table):
		return bytes.Equal(age.ReplaceAll(a, nil), age.ReplaceAll(b, nil))
	}
	return r.Custom && strings.Contains(r.Accept, "as=PartialObjectMetadata") && canonical(a) == canonical(b)
}

// canonical is a JSON value with its fields in order, and anything else as it is.
func canonical(body []byte) string {
	in := json.NewDecoder(bytes.NewReader(body))
	in.UseNumber()
	var v any
	if in.Decode(&v) != nil {
		return string(body)
	}
	out, _ := json.Marshal(v)
	return string(out)
}

func clone(q url.Values) url.Values {
	out := url.Values{}
	for k, v := range q {
		out[k] = v
	}
	return out
}

func listMeta(a *Answer) (version, next string, err error) {
	if a.Type == "application/json" {
		var l struct{ Metadata metav1.ListMeta }
		err = json.Unmarshal(a.Body, &l)
		return l.Metadata.ResourceVersion, l.Metadata.Continue, err
	}
	kind, _, err := wire.SplitEnvelope(a.Body)
	if err != nil {
		return "", "", err
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	m, err := wire.ReadList(bytes.NewReader(a.Body), wire.Protobuf, kind, func(*wire.Object) error { return nil })
	return wire.FormatVersion(m.Version), m.Continue, err
}

// compareGet compares an object at equal version: while it changes, the two sides may be asked in between. Other bytes
// at the version that kube-apiserver shows are wrong at once.
func (p Pair) compareGet(ctx context.Context, r Request) error {
	var last error
	for range 20 {
		before, err := p.Cloud.Ask(ctx, r)
		if err != nil {
			return err
		}
		got, err := p.Relay.Ask(ctx, r)
		if err != nil {
			return err
		}
		after, err := p.Cloud.Ask(ctx, r)
		if err != nil {
			return err
		}
		for _, want := range []*Answer{before, after} {
			last = mismatch(r, "%d %s %s, kube-apiserver says %d %s %s: %s", got.Code, got.Reason, got.Type, want.Code,
				want.Reason, want.Type,
				difference(got.Body, want.Body))
			if got.Code != want.Code || got.Reason != want.Reason {
				continue
			}
			equal, err := sameVersion(got, want)
			switch {
			case err != nil:
				return mismatch(r, "%v", err)
			case !equal:
				continue
			case got.Type != want.Type || !same(r, got.plain(), want.plain()):
				return last
			}
			return nil
		}
	}
	return last
}

// sameVersion reports whether two answers show the same version of an object, or are refusals.
func sameVersion(got, want *Answer) (bool, error) {
	if got.Code != http.StatusOK {
		return true, nil
	}
	a, err := objectVersion(got)
	if err != nil {
		return false, err
	}
	b, err := objectVersion(want)
	return a == b, err
}

func objectVersion(a *Answer) (string, error) {
	if strings.HasPrefix(a.Type, "application/vnd.kubernetes.protobuf") {
		_, raw, err := wire.SplitEnvelope(a.Body)
		if err != nil {
			return "", err
		}
		o, err := wire.ParseObject(wire.Protobuf, raw)
		if err != nil {
			return "", err
		}
		return wire.FormatVersion(o.Version), nil
	}
	var o struct{ Metadata metav1.ObjectMeta }
	err := json.Unmarshal(a.Body, &o)
	return o.Metadata.ResourceVersion, err
}

func difference(got, want []byte) string {
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	cut := func(b []byte) string { return strconv.Quote(string(b[max(0, min(i-60, len(b))):min(len(b), i+120)])) }
	return fmt.Sprintf("at byte %d (of %d and %d):\n  relay          %s\n  kube-apiserver %s", i, len(got), len(want),
		cut(got), cut(want))
}

// IsMismatch tells a wrong answer from a failure to ask.
func IsMismatch(err error) bool {
	var m *MismatchError
	return errors.As(err, &m)
}
