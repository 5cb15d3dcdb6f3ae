package access

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/limit"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/testkit"
)

// admitted is a request of somebody without a credential that has passed a gate. leave ends it.
func admitted(t *testing.T, g *Gate, address, method, uri, body string) (
	req *http.Request, a *Admission, leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req = httptest.NewRequest(method, uri, strings.NewReader(body)).WithContext(ctx)
	req.RemoteAddr = address + ":1"
	req, a, refusal := g.Admit(httptest.NewRecorder(), req, request.Parse(req), Caller{Kind: Anonymous}, false)
	if refusal != nil {
		t.Fatal(refusal)
	}
	return req, a, func() {
		cancel()
		a.Leave()
	}
}

// TestWay: requests of a caller wait for each other, those about objects not for those about collections. What lasts
// does not wait, nor does a request whose body is large. Bodies stay as they came.
func TestWay(t *testing.T) {
	g, _ := newTestGate()
	g.Anonymous = true
	small, large := strings.Repeat("s", limit.WaitingBody), strings.Repeat("l", limit.WaitingBody+1)
	const pods = "/api/v1/namespaces/a/pods"
	for range limit.CallerWays {
		for _, uri := range []string{pods, pods + "/b"} {
			req, a, leave := admitted(t, g, "192.0.2.1", http.MethodGet, uri, "")
			defer leave()
			_, give, err := a.Way(req)
			check(t, err)
			defer give()
		}
	}
	for name, c := range map[string]struct {
		method, uri, body string
		unknown           bool // how long the body is
		waits             bool
	}{
		"list":              {http.MethodGet, pods, "", false, true},
		"get":               {http.MethodGet, pods + "/b", "", false, true},
		"no resource":       {http.MethodGet, "/version", "", false, true},
		"deletecollection":  {http.MethodDelete, pods, "", false, true},
		"small write":       {http.MethodPost, pods, small, false, true},
		"small, no length":  {http.MethodPost, pods, small, true, true},
		"large write":       {http.MethodPost, pods, large, false, false},
		"large, no length":  {http.MethodPost, pods, large, true, false},
		"watch":             {http.MethodGet, pods + "?watch=1", "", false, false},
		"log":               {http.MethodGet, pods + "/b/log", "", false, false},
		"exec":              {http.MethodPost, pods + "/b/exec", "", false, false},
		"through a Service": {http.MethodGet, "/api/v1/namespaces/a/services/b/proxy/", "", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			req, a, leave := admitted(t, g, "192.0.2.1", c.method, c.uri, c.body)
			defer leave()
			if c.unknown {
				req.ContentLength = -1
			}
			if c.waits {
				failed := make(chan error)
				go func() {
					_, _, err := a.Way(req)
					failed <- err
				}()
				testkit.Until(t, time.Minute, "it to wait", func() bool { return g.Waiting() == 1 })
				leave()
				if err := <-failed; !uplink.Unsent(err) || !errors.Is(err, context.Canceled) || g.Waiting() != 0 {
					t.Errorf("one that leaves: %v, %d wait", err, g.Waiting())
				}
				return
			}
			req, give, err := a.Way(req)
			check(t, err)
			defer give()
			if came, err := io.ReadAll(req.Body); err != nil || string(came) != c.body {
				t.Errorf("%d bytes of the body are left, want %d; %v", len(came), len(c.body), err)
			}
		})
	}
	other, a, leave := admitted(t, g, "192.0.2.2", http.MethodPost, pods, small)
	defer leave()
	other, give, err := a.Way(other)
	check(t, err)
	defer give()
	if came, err := io.ReadAll(other.Body); err != nil || string(came) != small {
		t.Errorf("%d bytes of the body came through, want %d; %v", len(came), len(small), err)
	}
}
