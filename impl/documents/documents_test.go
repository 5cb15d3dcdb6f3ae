package documents

import (
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// cloud serves a discovery document as kube-apiserver does, counts what it sends, and refuses strangers.
type cloud struct {
	groups apidiscoveryv2.APIGroupDiscoveryList
	newer  bool // the document has a field that is not in the types here
	sent   map[string]int
}

func (c *cloud) json(t *testing.T) (document, etag string) {
	t.Helper()
	digested, full := c.groups, c.groups
	full.APIVersion, full.Kind = "apidiscovery.k8s.io/v2", "APIGroupDiscoveryList"
	var raw [2]string
	for i, v := range []any{digested, full} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		raw[i] = string(b)
		if c.newer {
			raw[i] = strings.TrimSuffix(raw[i], "}") + `,"new":true}`
		}
	}
	return raw[1] + "\n", fmt.Sprintf(`"%X"`, sha512.Sum512([]byte(raw[0])))
}

func (c *cloud) handler(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		proto := strings.HasPrefix(req.Header.Get("Accept"), "application/vnd.kubernetes.protobuf")
		if req.Header.Get("Authorization") == "" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, "refused, protobuf: ", proto)
			return
		}
		document, etag := c.json(t)
		w.Header().Set("Etag", etag)
		if req.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		if !proto {
			w.Header().Set("Content-Type", jsonType)
			_, _ = io.WriteString(w, document)
			c.sent["json"]++
			return
		}
		raw, err := c.groups.Marshal()
		if err != nil {
			t.Error(err)
		}
		kind := wire.Kind{APIVersion: "apidiscovery.k8s.io/v2", Kind: "APIGroupDiscoveryList"}
		raw = wire.Envelope(kind, raw)
		w.Header().Set("Content-Type", compact)
		c.sent["protobuf"]++
		if len(raw) > 1000 && req.Header.Get("Accept-Encoding") == "gzip" {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write(raw)
			_ = z.Close()
			return
		}
		_, _ = w.Write(raw)
	}
}

func (c *cloud) add(group string) {
	c.groups.Items = append(c.groups.Items, apidiscoveryv2.APIGroupDiscovery{
		ObjectMeta: metav1.ObjectMeta{Name: group},
		Versions: []apidiscoveryv2.APIVersionDiscovery{
			{
				Version: "v1", Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent,
				Resources: []apidiscoveryv2.APIResourceDiscovery{{
					Resource: "things", Scope: apidiscoveryv2.ScopeNamespace, SingularResource: "thing",
					Verbs:        []string{"get", "list"},
					ResponseKind: &metav1.GroupVersionKind{Group: group, Version: "v1", Kind: "Thing"},
				}},
			},
		},
	})
}

func ask(t *testing.T, rt http.RoundTripper, url, token string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", Accept)
	if token != "" {
		req.Header.Set("Authorization", token)
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(resp.StatusCode, " ", strings.TrimSpace(string(body)))
}

// TestOneCopyCrosses: once, in protobuf, and everybody gets the JSON that the cloud would have sent, byte by byte.
func TestOneCopyCrosses(t *testing.T) {
	for _, groups := range []int{1, 50} { // 50 are compressed
		c := &cloud{sent: map[string]int{}}
		for i := range groups {
			c.add(fmt.Sprintf("g%d.example.com", i))
		}
		srv := httptest.NewServer(c.handler(t))
		defer srv.Close()
		pool := &Store{}
		fetch := func(_ context.Context, k Key) (*Document, error) { return pool.Get(k), nil }
		leader := &Transport{Base: http.DefaultTransport, Store: pool}
		document, _ := c.json(t)
		want := "200 " + strings.TrimSpace(document)
		for range 3 {
			if got := ask(t, leader, srv.URL+"/apis", "me"); got != want {
				t.Fatal(got)
			}
		}
		if d := pool.Get(Key{"/apis", Accept}); d == nil || string(d.Body) != document {
			t.Errorf("kept %v", d)
		}
		follower := &Transport{Base: http.DefaultTransport, Store: &Store{}, Fetch: fetch}
		if got := ask(t, follower, srv.URL+"/apis?timeout=32s", "other"); got != want {
			t.Fatal(got)
		}
		if c.sent["protobuf"] != 1 || c.sent["json"] != 0 {
			t.Errorf("%v sent, want one copy", c.sent)
		}
		if got := ask(t, follower, srv.URL+"/apis", ""); got != "401 refused, protobuf: false" {
			t.Errorf("a stranger got %s", got)
		}
		c.add("new.example.com")
		if got := ask(t, follower, srv.URL+"/apis", "me"); !strings.Contains(got, "new.example.com") ||
			c.sent["protobuf"] != 2 {
			t.Errorf("after a change: %s, sent %v", got, c.sent)
		}
	}
}

// TestNewerCloud: what the types here do not know is not lost; it comes as JSON, and protobuf is not tried for ever.
func TestNewerCloud(t *testing.T) {
	c := &cloud{newer: true, sent: map[string]int{}}
	srv := httptest.NewServer(c.handler(t))
	defer srv.Close()
	tr := &Transport{Base: http.DefaultTransport, Store: &Store{}}
	for _, group := range []string{"a.example.com", "b.example.com", "c.example.com"} {
		c.add(group)
		document, _ := c.json(t)
		for range 2 {
			if got := ask(t, tr, srv.URL+"/apis", "me"); got != "200 "+strings.TrimSpace(document) {
				t.Error(got)
			}
		}
	}
	if c.sent["protobuf"] != 1 || c.sent["json"] != 3 {
		t.Errorf("sent %v", c.sent)
	}
}

func TestStoreOverHTTP(t *testing.T) {
	s := &Store{}
	srv := httptest.NewServer(s)
	defer srv.Close()
	at, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	k := Key{"/api", Accept}
	want := func(k Key, why error) *Document {
		t.Helper()
		d, err := Fetch(t.Context(), http.DefaultTransport, at, k)
		if (err == nil) != (why == nil) || !errors.Is(err, why) {
			t.Errorf("%+v: %v, want %v", k, err, why)
		}
		return d
	}
	want(k, ErrNone)
	c := &cloud{}
	body, etag := c.json(t)
	for _, bad := range []*Document{{"e", "", []byte(body)}, {"", "", []byte(body)}, {etag, "", []byte("{}")}} {
		s.Put(k, bad)
		want(k, ErrForged)
	}
	if s.Put(k, &Document{etag, "", nil}); s.Get(k) == nil {
		t.Error("not kept")
	} else if _, err := Fetch(t.Context(), http.DefaultTransport, at, k); err == nil {
		t.Error("an empty one is taken")
	}
	s.Put(k, &Document{etag, "", []byte(body)})
	if d := want(k, nil); d != nil && (string(d.Body) != body || d.ETag != etag) {
		t.Errorf("%+v", d)
	}
	for path, code := range map[string]string{"?path=/secrets": "400", "?" + k.Query(): "200"} {
		if got := ask(t, http.DefaultTransport, srv.URL+path, ""); !strings.HasPrefix(got, code) {
			t.Errorf("%s: %s", path, got)
		}
	}
	resp, err := http.Post(srv.URL+"?"+k.Query(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body.Close(); resp.StatusCode != http.StatusMethodNotAllowed {
		t.Error(resp.Status)
	}
	for i := range 100 {
		s.Put(Key{"/api", fmt.Sprint(i)}, &Document{})
	}
	if len(s.docs) > MaxDocuments {
		t.Errorf("%d documents", len(s.docs))
	}
}
