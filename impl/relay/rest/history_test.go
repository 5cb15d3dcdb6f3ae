package rest

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// askIn is a request of a relay that is in a history.
func askIn(t *testing.T, srv *httptest.Server, query, history string) (code int, theirs string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		srv.URL+slicesPath+"?watch=1&timeoutSeconds=1&"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	if history != "" {
		req.Header.Set(HistoryHeader, history)
	}
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Header.Get(HistoryHeader)
}

func TestAnotherHistory(t *testing.T) {
	r := newRelay(t)
	replace(t, r, 1000, slice(t, "a/x", 5), slice(t, "a/ghost", 950))
	srv := serve(t, r)
	open := watch(t, srv, "resourceVersion=1000")
	ahead := watch(t, srv, "resourceVersion=1010") // of a client that saw more, elsewhere
	eventually(t, "the watches", func() bool { return r.Status().Watchers == 2 })

	if err := r.ReplaceIn(r.Status().History.Next(1000), 900, []*wire.Object{slice(t, "a/x", 5)}); err != nil {
		t.Fatal(err)
	}
	if s := r.Status(); s.Version != 900 || s.Objects != 1 || s.History != (relay.History{Number: 1, Lost: 1000}) {
		t.Fatalf("%+v", s)
	}
	open.want("ERROR 410", "EOF")
	ahead.want("ERROR 410", "EOF")
	apply(t, r, wire.Added, slice(t, "a/y", 905))
	apply(t, r, wire.Added, slice(t, "a/z", 910))

	for name, c := range map[string]struct{ query, first string }{
		"from the list":              {"resourceVersion=900", "ADDED a/y 905"},
		"from an event":              {"resourceVersion=905", "ADDED a/z 910"},
		"of the lost history":        {"resourceVersion=1000", "ERROR 410"},
		"of it, and known to others": {"resourceVersion=1010", "ERROR 410"},
		"between two events":         {"resourceVersion=907", "ERROR 410"},
		"before the list":            {"resourceVersion=850", "ERROR 410"},
		"with initial events": {
			"resourceVersion=0&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", "ADDED a/x 5",
		},
		"with initial events from old": {
			"resourceVersion=1000&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", "ERROR 410",
		},
	} {
		t.Run(name, func(t *testing.T) { watch(t, srv, c.query).want(c.first) })
	}
	for query, want := range map[string]int{
		"":                      http.StatusOK,
		"?resourceVersion=1000": http.StatusGone,
		"?resourceVersion=905":  http.StatusOK,
		"?resourceVersion=907&resourceVersionMatch=Exact": http.StatusGone,
		"?resourceVersion=905&resourceVersionMatch=Exact": http.StatusOK,
	} {
		if resp, _ := get(t, srv, slicesPath+query, ""); resp.StatusCode != want ||
			resp.Header.Get(HistoryHeader) != "1/1000" {
			t.Errorf("list %q: %d, want %d; history %q", query, resp.StatusCode, want, resp.Header.Get(HistoryHeader))
		}
	}

	apply(t, r, wire.Added, slice(t, "a/later", 1001)) // the lost versions are passed: a client may be ahead again
	w := watch(t, srv, "resourceVersion=1002")
	apply(t, r, wire.Modified, slice(t, "a/later", 1003))
	w.want("MODIFIED a/later 1003")
	watch(t, srv, "resourceVersion=1000").want("ERROR 410", "EOF")
}

func TestRelaysAgreeOnTheHistory(t *testing.T) {
	r := newRelay(t)
	if err := r.ReplaceIn(relay.History{Number: 2, Lost: 1000}, 900, nil); err != nil {
		t.Fatal(err)
	}
	srv := serve(t, r)
	for name, c := range map[string]struct {
		history, query string
		code           int
	}{
		"a client":          {"", "resourceVersion=900", http.StatusOK},
		"the same":          {"2/700", "resourceVersion=900", http.StatusOK},
		"ahead in the same": {"2/700", "resourceVersion=920", http.StatusOK}, // rule 2
		"earlier":           {"1/700", "resourceVersion=900", http.StatusGone},
		"the first":         {"0/0", "resourceVersion=2000", http.StatusGone},
		"later":             {"3/1000", "resourceVersion=890", http.StatusServiceUnavailable},
		"later, a list": {
			"3/1000", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan", http.StatusServiceUnavailable,
		},
		"no number": {"x", "resourceVersion=900", http.StatusBadRequest},
	} {
		if code, theirs := askIn(t, srv, c.query, c.history); code != c.code || theirs != "2/1000" {
			t.Errorf("%s: %d, want %d; history %q", name, code, c.code, theirs)
		}
	}
}

// TestRenumber: clients go on, relays come again.
func TestRenumber(t *testing.T) {
	r := newRelay(t)
	replace(t, r, 1000, slice(t, "a/x", 5))
	srv := serve(t, r)
	w := watch(t, srv, "resourceVersion=1000")
	eventually(t, "the watch", func() bool { return r.Status().Watchers == 1 })
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+slicesPath+"?watch=1&resourceVersion=1000",
		nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(HistoryHeader, "0/0")
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	eventually(t, "the relay's watch", func() bool { return r.Status().Watchers == 2 })
	r.Renumber(relay.History{Number: 1, Lost: 9000})
	if shown, err := io.ReadAll(resp.Body); err != nil || len(shown) > 0 {
		t.Errorf("the relay was shown %q, %v", shown, err)
	}
	apply(t, r, wire.Added, slice(t, "a/y", 1001))
	w.want("ADDED a/y 1001")
	if code, theirs := askIn(t, srv, "resourceVersion=1000", "0/0"); code != http.StatusGone || theirs != "1/9000" {
		t.Errorf("answer %d in %s", code, theirs)
	}
}

// TestAheadInANewHistory: who has heard a little more of the new history than the relay waits, as in any other.
func TestAheadInANewHistory(t *testing.T) {
	for name, query := range map[string]string{
		"get": "", "list": "?resourceVersion=906", "watch": "?watch=1&timeoutSeconds=1&resourceVersion=906",
		"streaming list": "?watch=1&timeoutSeconds=1&allowWatchBookmarks=true&sendInitialEvents=true&" +
			"resourceVersionMatch=NotOlderThan&resourceVersion=906",
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Now())
			r := newRelay(t, withClock(clock))
			replace(t, r, 1000, slice(t, "a/x", 5))
			if err := r.ReplaceIn(r.Status().History.Next(1000), 900, []*wire.Object{slice(t, "a/x", 5)}); err != nil {
				t.Fatal(err)
			}
			srv := serve(t, r)
			path := slicesPath + query
			if name == "get" {
				path = "/apis/discovery.k8s.io/v1/namespaces/a/endpointslices/x?resourceVersion=906"
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			answer := make(chan string, 1)
			go func() {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+path, nil)
				if err != nil {
					t.Error(err)
				}
				resp, err := srv.Client().Do(req)
				if err != nil {
					answer <- err.Error()
					return
				}
				defer resp.Body.Close()
				line, _ := bufio.NewReader(resp.Body).ReadString('}')
				answer <- resp.Status + " " + line
			}()
			eventually(t, "the request to wait, or to be answered", func() bool { return clock.HasWaiters() || len(answer) > 0 })
			apply(t, r, wire.Added, slice(t, "a/y", 906))
			apply(t, r, wire.Added, slice(t, "a/z", 907))
			if a := <-answer; !strings.HasPrefix(a, "200") || strings.Contains(a, "ERROR") {
				t.Error(a)
			}
		})
	}
}
