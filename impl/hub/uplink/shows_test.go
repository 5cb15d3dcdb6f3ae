package uplink

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"k8s.io/utils/clock"
)

// shown is a Bearer with one token.
type shown struct {
	token   string
	err     error
	refused []string
}

func (s *shown) Token(context.Context) (string, error) { return s.token, s.err }

func (s *shown) Counts() bool { return s.err == nil }

func (s *shown) Refused(token string) { s.refused = append(s.refused, token) }

// TestShows: a request shows the token of its door and nothing of it comes back with the answer; a 401 is told; without
// a token nothing is sent.
func TestShows(t *testing.T) {
	var got []string
	cloud := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		got = append(got, req.Header.Get("Authorization"))
		if req.Header.Get("Authorization") != "Bearer good" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(cloud.Close)
	address, err := url.Parse(cloud.URL)
	if err != nil {
		t.Fatal(err)
	}
	bearer := &shown{token: "good"}
	at := &server{}
	at.address.Store(&map[Class]*url.URL{ClassNode: address})
	at.Checker = NewChecker(CheckerConfig{
		Name: address.Host, Clock: clock.RealClock{}, Logger: slog.New(slog.DiscardHandler), Changed: func() {},
		Probe: func(context.Context) error { return nil },
	})
	d := &door{
		class: ClassNode, shows: bearer, candidates: func() []*server { return []*server{at} },
		transport: NewTransport(func() *http.Transport {
			return &http.Transport{
				TLSClientConfig: &tls.Config{RootCAs: cloud.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs},
			}
		}),
	}
	t.Cleanup(d.transport.Close)
	ask := func() (*http.Response, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://cloud/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := d.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		if req.Header.Get("Authorization") != "" {
			t.Error("the caller's request has the token")
		}
		return resp, err
	}
	resp, err := ask()
	if err != nil || resp.StatusCode != http.StatusOK || len(resp.Request.Header["Authorization"]) > 0 ||
		len(bearer.refused) > 0 {
		t.Errorf("%v, %v, refused %v", resp, err, bearer.refused)
	}
	bearer.token = "bad"
	if resp, err = ask(); err != nil || resp.StatusCode != http.StatusUnauthorized || len(bearer.refused) != 1 ||
		bearer.refused[0] != "bad" {
		t.Errorf("%v, %v, refused %v", resp, err, bearer.refused)
	}
	bearer.token = "" // the certificate of the connection is all
	if resp, err = ask(); err != nil || resp.StatusCode != http.StatusUnauthorized || len(bearer.refused) != 2 ||
		bearer.refused[1] != "" {
		t.Errorf("%v, %v, refused %v", resp, err, bearer.refused)
	}
	bearer.err = errors.New("no identity on this machine")
	if _, err = ask(); !errors.Is(err, bearer.err) || !Unsent(err) || len(got) != 3 {
		t.Errorf("%v after %v", err, got)
	}
}
