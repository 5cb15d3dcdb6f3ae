package door

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/request"
)

func asks(path string) *request.Request {
	return request.Parse(httptest.NewRequest(http.MethodGet, path, nil))
}

// TestWhole: what counts is a list or watch of all namespaces that is the same on each node.
func TestWhole(t *testing.T) {
	for path, want := range map[string]bool{
		"/api/v1/services": true, "/api/v1/services?watch=1&resourceVersion=7": true, "/api/v1/namespaces": true,
		"/apis/cilium.io/v2/ciliumidentities?watch=true": true, "/api/v1/pods?limit=500": true,
		"/api/v1/services?labelSelector=%21service.kubernetes.io%2Fheadless":                 true,
		"/api/v1/pods?labelSelector=app%3Dweb":                                               true,
		"/api/v1/pods?labelSelector=node%21%3Dedge-1":                                        true,
		"/api/v1/pods?fieldSelector=metadata.namespace%21%3Dkube-system":                     true,
		"/api/v1/pods?fieldSelector=spec.nodeName%3Dedge-1":                                  false,
		"/api/v1/nodes?fieldSelector=metadata.name%3Dedge-1":                                 false,
		"/api/v1/pods?fieldSelector=metadata.namespace%3Ddefault":                            false,
		"/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3Dedge-1":       false,
		"/apis/example.com/v1/widgets?labelSelector=kubernetes.io%2Fhostname%3Dedge-1":       false,
		"/apis/example.com/v1/widgets?labelSelector=kubernetes.io%2Fhostname+in+(a,+edge-1)": false,
		"/api/v1/namespaces/default/pods":                                                    false,
		"/api/v1/namespaces/default":                                                         false,
		"/api/v1/nodes/edge-1":                                                               false,
		"/api/v1/nodes/edge-1/status":                                                        false,
		"/api/v1":                                                                            false,
		"/version":                                                                           false,
		"/api/v1/pods/":                                                                      false,
		"/api/v1/watch/pods":                                                                 false,
		"/api/v1/pods?fieldSelector=%3D%3D%3D":                                               false,
	} {
		if got := ofCluster(asks(path), "edge-1"); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
	upgrade := httptest.NewRequest(http.MethodGet, "/api/v1/pods?watch=1", nil)
	upgrade.Header.Set("Upgrade", "websocket")
	for _, req := range []*http.Request{upgrade, httptest.NewRequest(http.MethodDelete, "/api/v1/pods", nil)} {
		if ofCluster(request.Parse(req), "edge-1") {
			t.Errorf("%s %s counts", req.Method, req.URL)
		}
	}
}

type desk struct {
	*Demand
	t   *testing.T
	clk *clocktesting.FakePassiveClock
}

func newDesk(t *testing.T) *desk {
	clk := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))
	return &desk{NewDemand("edge-1", clk), t, clk}
}

func (d *desk) step(by time.Duration) { d.clk.SetTime(d.clk.Now().Add(by)) }

// opens is an answer that comes, of so many bytes.
func (d *desk) opens(path string, n int, code int) io.ReadCloser {
	d.t.Helper()
	resp := &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader(strings.Repeat("x", n)))}
	d.Passed(asks(path), resp)
	if got, err := io.ReadAll(resp.Body); err != nil || len(got) != n {
		d.t.Fatalf("%d bytes, %v", len(got), err)
	}
	return resp.Body
}

func (d *desk) lists(path string, n int) {
	d.t.Helper()
	if err := d.opens(path, n, http.StatusOK).Close(); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) tells(what string, want digest.Reads, shared ...string) {
	d.t.Helper()
	if got := d.Reads(shared); !reflect.DeepEqual(got, want) {
		d.t.Errorf("%s: told are %+v, want %+v", what, got, want)
	}
}

// TestPassed: bytes of the last day count by resource, to the byte. Of what clients do not stay with, of errors, and
// of what is private nothing is told by name.
func TestPassed(t *testing.T) {
	d := newDesk(t)
	d.tells("at first", digest.Reads{})
	watch := d.opens("/apis/cilium.io/v2/ciliumidentities?watch=1", 1000, http.StatusOK)
	d.lists("/apis/cilium.io/v2/ciliumidentities", 500)
	d.lists("/api/v1/pods", 70) // a person's
	d.lists("/api/v1/secrets", 5)
	secrets := d.opens("/api/v1/secrets?watch=1", 2, http.StatusOK)
	d.opens("/apis/example.com/v1/widgets?watch=1", 10_000, http.StatusForbidden)
	d.opens("/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dedge-1", 10_000, http.StatusOK)
	identities := digest.Passed{Resource: "ciliumidentities.v2.cilium.io", Bytes: 1500}
	d.tells("a watch is open", digest.Reads{Passed: []digest.Passed{identities}, Rest: 77})
	d.tells("it is shared", digest.Reads{Rest: 77}, identities.Resource)
	for _, b := range []io.Closer{watch, watch, secrets} { // closed twice it is not open less than once
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	d.tells("it is closed", digest.Reads{Rest: 1577})
	d.step(time.Hour)
	d.lists("/apis/cilium.io/v2/ciliumidentities", 1)
	identities.Bytes++
	d.tells("it comes again", digest.Reads{Passed: []digest.Passed{identities}, Rest: 77})
	d.step(22 * time.Hour)
	d.tells("23 hours later", digest.Reads{Passed: []digest.Passed{identities}, Rest: 77})
	d.step(time.Hour)
	d.tells("24 hours later", digest.Reads{Rest: 1})
	d.step(24000 * time.Hour)
	d.tells("much later", digest.Reads{})
	d.lists("/api/v1/nodes", 9)
	d.tells("and again", digest.Reads{Rest: 9})
}

// TestPassedBound: whatever clients ask for, the names are bounded, no byte is lost, and what counts most stays.
func TestPassedBound(t *testing.T) {
	d := newDesk(t)
	quiet := d.opens("/apis/example.com/v1/quiets?watch=1", 1, http.StatusOK)
	for range 2 {
		d.lists("/apis/example.com/v1/bigs", 1000)
		d.step(time.Hour)
	}
	all := int64(2001)
	for i := range 500 {
		d.lists(fmt.Sprintf("/apis/example.com/v1/r%d", i), 10)
		all += 10
		if len(d.passed.names) > mostNames {
			t.Fatalf("%d names", len(d.passed.names))
		}
	}
	got := d.Reads(nil)
	want := []digest.Passed{{Resource: "bigs.v1.example.com", Bytes: 2000}, {Resource: "quiets.v1.example.com", Bytes: 1}}
	if !reflect.DeepEqual(got.Passed, want) || got.Rest != all-2001 {
		t.Errorf("%+v, want %+v and %d", got, want, all-2001)
	}
	if err := quiet.Close(); err != nil {
		t.Fatal(err)
	}

	d = newDesk(t)
	for i := range mostNames + 5 { // all of them are open
		d.opens(fmt.Sprintf("/apis/example.com/v1/r%d?watch=1", i), 10, http.StatusOK)
	}
	if got := d.Reads(nil); len(got.Passed) != mostNames || got.Rest != 50 {
		t.Errorf("%d names, and a rest of %d", len(got.Passed), got.Rest)
	}
	for name, path := range map[string]string{
		"too long": "/apis/" + strings.Repeat("g", 60) + "." + strings.Repeat("g", 60) + "/v1/x", "odd": "/api/v1/a=b",
	} {
		before := d.Reads(nil).Rest
		d.lists(path, 3)
		if got := d.Reads(nil); got.Rest != before+3 {
			t.Errorf("%s: a rest of %d", name, got.Rest)
		}
	}
}

// TestUnread: a shared resource is told as unread when no client has read it for a day, and not before one could have.
func TestUnread(t *testing.T) {
	d := newDesk(t)
	const a, b = "endpoints.v1.", "widgets.v1.example.com"
	d.tells("at the start", digest.Reads{}, a, b)
	d.step(day - 1)
	done := d.Relayed(a) // a watch
	d.tells("within the first day", digest.Reads{}, a, b)
	d.step(1)
	d.tells("after a day", digest.Reads{Unread: []string{b}}, a, b)
	d.step(3 * day)
	d.tells("as long as the watch goes on", digest.Reads{Unread: []string{b}}, b, a)
	done()
	d.Relayed(b)()
	d.tells("both were just read", digest.Reads{}, a, b)
	d.step(day)
	d.tells("and a day later", digest.Reads{Unread: []string{a, b}}, b, a)
	d.tells("of what is shared no more nothing", digest.Reads{Unread: []string{a}}, a)
	d.tells("what is shared again begins anew", digest.Reads{Unread: []string{a}}, a, b)
	if d.tells("nothing", digest.Reads{}); len(d.shared) != 0 {
		t.Errorf("%d are remembered", len(d.shared))
	}
}
