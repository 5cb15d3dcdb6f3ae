package documents

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestForgedCopy: a copy of the pool that is not what its ETag says is not used, though the cloud says that the ETag is
// current.
func TestForgedCopy(t *testing.T) {
	c := &cloud{sent: map[string]int{}}
	c.add("honest.example.com")
	srv := httptest.NewServer(c.handler(t))
	defer srv.Close()
	for _, newer := range []bool{false, true} {
		c.newer = newer
		document, etag := c.json(t)
		forged := strings.ReplaceAll(document, "honest.example.com", "forged.example.com")
		for name, body := range map[string]string{
			"another body": forged, "no discovery document": "{}", "cut": document[:40], "two": document + document,
		} {
			tr := &Transport{
				Base: http.DefaultTransport, Store: &Store{},
				Fetch: func(context.Context, Key) (*Document, error) { return &Document{etag, jsonType, []byte(body)}, nil },
			}
			if got := ask(t, tr, srv.URL+"/apis", "me"); got != "200 "+strings.TrimSpace(document) {
				t.Errorf("%s, newer %t: got %s", name, newer, got)
			}
		}
		tr := &Transport{
			Base: http.DefaultTransport, Store: &Store{},
			Fetch: func(context.Context, Key) (*Document, error) { return &Document{etag, jsonType, []byte(document)}, nil },
		}
		clear(c.sent)
		if got := ask(t, tr, srv.URL+"/apis", "me"); got != "200 "+strings.TrimSpace(document) || len(c.sent) != 0 {
			t.Errorf("a good copy, newer %t: sent %v, got %s", newer, c.sent, got)
		}
	}
}

// TestSpellings: how a client spells its Accept header costs others no copy.
func TestSpellings(t *testing.T) {
	s := &Store{}
	kept := map[Key]*Document{}
	for _, path := range Shared {
		k := Key{Path: path, Accept: Accept}
		kept[k] = &Document{ETag: path}
		s.Put(k, kept[k])
	}
	for i := range 100 {
		s.Put(Key{Path: "/api", Accept: fmt.Sprintf("application/json;q=0.%d", i)}, &Document{})
		s.Get(Key{Path: "/apis", Accept: Accept})
	}
	s.Put(Key{Path: "/api", Accept: strings.Repeat("x", 1<<20)}, &Document{})
	for k, d := range kept {
		if s.Get(k) != d {
			t.Errorf("%s is lost", k.Path)
		}
	}
	if len(s.docs) > MaxDocuments {
		t.Errorf("%d documents", len(s.docs))
	}
	last := Key{Path: "/api", Accept: "application/json;q=0.99"}
	if s.Get(last) == nil {
		t.Error("the newest spelling is not kept")
	}
	for _, same := range []string{" application/json ; q=0.99", "Application/JSON;q=0.99"} {
		if s.Get(Key{Path: "/api", Accept: same}) != s.Get(last) {
			t.Errorf("%q is taken for another one", same)
		}
	}
	if s.Get(Key{Path: "/api", Accept: strings.ReplaceAll(Accept, ",", " , ")}) != kept[Key{
		Path: "/api", Accept: Accept,
	}] {
		t.Error("blanks make another spelling")
	}
}
