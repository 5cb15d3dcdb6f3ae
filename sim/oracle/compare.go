package oracle

import (
	"bytes"
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
	Body   []byte
}

// Ask sends a request and reads the whole answer.
func (s Side) Ask(ctx context.Context, r Request) (*Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+r.Path+"?"+r.Query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	if r.Accept != "" {
		req.Header.Set("Accept", r.Accept)
	}
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := s.Client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: read answer: %w", s.Name, err)
	}
	a := &Answer{Code: resp.StatusCode, Type: resp.Header.Get("Content-Type"), Body: body}
	if a.Code != http.StatusOK {
		a.Reason = reason(a)
	}
	return a, nil
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
		return mismatch(r, "%d %s (%.200s), kube-apiserver says %d %s (%.200s)", got.Code, got.Reason, got.Body, want.Code, want.Reason, want.Body)
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
		exact := Request{Path: r.Path, Query: clone(r.Query), Accept: r.Accept}
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
		if !same(got.Body, want.Body) {
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

// age is the last cell of a table's row: it depends on when it is asked for.
var age = regexp.MustCompile(`"[0-9smhdy]+"\],"object":`)

// same compares bodies, but for the ages in tables.
func same(a, b []byte) bool {
	return bytes.Equal(a, b) || bytes.Equal(age.ReplaceAll(a, nil), age.ReplaceAll(b, nil))
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

// compareGet compares an object at equal version: while it changes, the two sides may be asked in between.
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
		last = nil
		for _, want := range []*Answer{before, after} {
			if got.Code == want.Code && got.Reason == want.Reason && got.Type == want.Type && (got.Code != 200 || same(got.Body, want.Body)) {
				return nil
			}
			last = mismatch(r, "%d %s %s, kube-apiserver says %d %s %s: %s", got.Code, got.Reason, got.Type, want.Code, want.Reason, want.Type, difference(got.Body, want.Body))
		}
	}
	return last
}

func difference(got, want []byte) string {
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	cut := func(b []byte) string { return strconv.Quote(string(b[max(0, min(i-60, len(b))):min(len(b), i+120)])) }
	return fmt.Sprintf("at byte %d (of %d and %d):\n  relay          %s\n  kube-apiserver %s", i, len(got), len(want), cut(got), cut(want))
}

// IsMismatch tells a wrong answer from a failure to ask.
func IsMismatch(err error) bool {
	var m *MismatchError
	return errors.As(err, &m)
}
