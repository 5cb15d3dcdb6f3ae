package documents

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// cloud counts what it sends, and refuses strangers.
type cloud struct {
	etag, body string
	sent       int
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Header.Get("Authorization") == "" {
		http.Error(w, "who are you", http.StatusUnauthorized)
		return
	}
	w.Header().Set("Etag", c.etag)
	w.Header().Set("Content-Type", "application/json;as=APIGroupDiscoveryList")
	if req.Header.Get("If-None-Match") == c.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	n, _ := io.WriteString(w, c.body)
	c.sent += n
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

func TestOneCopyCrosses(t *testing.T) {
	c := &cloud{etag: `"1"`, body: strings.Repeat("x", 1000)}
	srv := httptest.NewServer(c)
	defer srv.Close()
	pool := &Store{}
	fetch := func(_ context.Context, k Key) (*Document, error) { return pool.Get(k), nil }
	leader := &Transport{Base: http.DefaultTransport, Store: pool}
	want := "200 " + c.body
	for range 3 {
		if got := ask(t, leader, srv.URL+"/apis", "me"); got != want {
			t.Fatal(got)
		}
	}
	follower := &Transport{Base: http.DefaultTransport, Store: &Store{}, Fetch: fetch}
	if got := ask(t, follower, srv.URL+"/apis?timeout=32s", "other"); got != want {
		t.Fatal(got)
	}
	if c.sent != len(c.body) {
		t.Errorf("%d bytes sent, want one copy of %d", c.sent, len(c.body))
	}
	if got := ask(t, follower, srv.URL+"/apis", ""); got != "401 who are you" {
		t.Errorf("a stranger got %s", got)
	}
	c.etag, c.body = `"2"`, "new"
	if got := ask(t, follower, srv.URL+"/apis", "me"); got != "200 new" {
		t.Errorf("after a change: %s", got)
	}
}

func TestStoreOverHTTP(t *testing.T) {
	s := &Store{}
	srv := httptest.NewServer(s)
	defer srv.Close()
	k := Key{"/api", Accept}
	put := func(query, etag, body string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, srv.URL+"?"+query, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Etag", etag)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if got := ask(t, http.DefaultTransport, srv.URL+"?"+k.Query(), ""); !strings.HasPrefix(got, "404") {
		t.Error(got)
	}
	for _, bad := range []int{put("path=/secrets", "e", "b"), put(k.Query(), "", "b"), put(k.Query(), "e", "")} {
		if bad != http.StatusBadRequest {
			t.Error(bad)
		}
	}
	if code := put(k.Query(), "e", "body"); code != http.StatusNoContent {
		t.Error(code)
	}
	if got := ask(t, http.DefaultTransport, srv.URL+"?"+k.Query(), ""); got != "200 body" {
		t.Error(got)
	}
	for i := range 100 {
		s.Put(Key{"/api", fmt.Sprint(i)}, &Document{})
	}
	if len(s.docs) > maxDocuments {
		t.Errorf("%d documents", len(s.docs))
	}
}
