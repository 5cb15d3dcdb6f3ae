package access

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// TestWatchReview: what the cloud answers to a watch, and what that says about who asks. Only a stream of a watch
// grants it.
func TestWatchReview(t *testing.T) {
	const stream = runtime.ContentTypeProtobuf + ";stream=watch"
	tests := []struct {
		name        string
		code        int
		contentType string
		allowed     bool
		refused     int32
		unavailable bool
		asked       bool // by an access review then, which allows it
	}{
		{name: "granted", code: 200, contentType: stream, allowed: true},
		{name: "not a stream", code: 200, contentType: runtime.ContentTypeProtobuf, asked: true},
		{name: "something that is no answer of kube-apiserver", code: 200, contentType: "text/html", asked: true},
		{name: "who is that", code: 401, refused: 401},
		{name: "forbidden", code: 403, refused: 403},
		{name: "too many", code: 429, unavailable: true},
		{name: "broken", code: 500, unavailable: true},
		{name: "a selector that is none", code: 400, asked: true},
		{name: "gone", code: 410, asked: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			left := make(chan struct{})
			asked := false
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.Header.Get("Authorization") != "Bearer alice" || req.Header.Get("Impersonate-User") != "bob" ||
					req.Header.Get("Cookie") != "" {
					t.Errorf("credentials: %v", req.Header)
				}
				if req.Method == http.MethodPost {
					asked = true
					raw, _ := (&authorizationv1.SelfSubjectAccessReview{
						Status: authorizationv1.SubjectAccessReviewStatus{Allowed: true},
					}).Marshal()
					_, _ = w.Write(wire.Envelope(ReviewKind, raw))
					return
				}
				q := req.URL.Query()
				if req.URL.Path != "/apis/discovery.k8s.io/v1/namespaces/a/endpointslices" || q.Get("watch") != "1" ||
					q.Get("labelSelector") != "x in (y,z)" ||
					q.Get("fieldSelector") != "metadata.name=b" || q.Get("resourceVersion") != never {
					t.Errorf("asked for %s", req.URL)
				}
				w.Header().Set("Content-Type", test.contentType)
				w.WriteHeader(test.code)
				if test.allowed {
					w.(http.Flusher).Flush()
					<-req.Context().Done()
					close(left)
				}
			}))
			srv.EnableHTTP2 = true
			srv.StartTLS()
			defer srv.Close()
			u, err := url.Parse(srv.URL)
			check(t, err)
			tr := srv.Client().Transport
			r := Reviewer{AsCaller: roundTripper(func(req *http.Request) (*http.Response, error) {
				req.URL.Host = u.Host
				return tr.RoundTrip(req)
			})}
			header := token("alice")
			header.Set("Impersonate-User", "bob")
			header.Set("Cookie", "x")
			a := identity.Attributes{
				Verb: "watch", Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices", Namespace: "a", Name: "b",
				FieldSelector: "metadata.name=b", LabelSelector: "x in (y,z)",
			}
			allowed, _, refused, err := r.Review(t.Context(), Caller{Kind: Bearer}, header, a)
			var unavailable *unavailableError
			if allowed != (test.allowed || test.asked) || errors.As(err, &unavailable) != test.unavailable ||
				err != nil && !test.unavailable || asked != test.asked {
				t.Errorf("allowed %v, asked %v, %v", allowed, asked, err)
			}
			if (refused != nil) != (test.refused != 0) || refused != nil && refused.ErrStatus.Code != test.refused {
				t.Errorf("refused: %v", refused)
			}
			if test.allowed {
				<-left // the watch does not stay
			}
		})
	}
	r := Reviewer{AsCaller: roundTripper(func(*http.Request) (*http.Response, error) { return nil, uplink.ErrNoServer })}
	if allowed, _, _, err := r.Review(t.Context(), Caller{Kind: Bearer}, token("a"),
		identity.Attributes{Verb: "watch"}); allowed || !errors.Is(err, uplink.ErrNoServer) {
		t.Errorf("without a cloud: %v %v", allowed, err)
	}
}

// TestStay: the watch that was granted last stays open until the next one. So kube-apiserver does not end the
// connection between two questions. Nothing stays when the hub ends.
func TestStay(t *testing.T) {
	for _, stays := range []bool{true, false} {
		var connections atomic.Int32
		ended, left := make(chan struct{}, 100), make(chan struct{}, 10)
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path == "/idle" {
				return
			}
			w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch")
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-req.Context().Done()
			left <- struct{}{}
		}))
		srv.EnableHTTP2 = true
		srv.Config.IdleTimeout = 10 * time.Millisecond
		srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			switch s {
			case http.StateNew:
				connections.Add(1)
			case http.StateClosed:
				ended <- struct{}{}
			}
		}
		srv.StartTLS()
		u, err := url.Parse(srv.URL)
		check(t, err)
		tr := srv.Client().Transport
		r := Reviewer{AsCaller: roundTripper(func(req *http.Request) (*http.Response, error) {
			req.URL.Host = u.Host
			return tr.RoundTrip(req)
		})}
		hub, end := context.WithCancel(t.Context())
		idle := func() { // until the server has ended another connection, on which nothing runs
			connections.Add(-1)
			alone := tr.(*http.Transport).Clone()
			resp, err := (&http.Client{Transport: alone}).Get(srv.URL + "/idle")
			check(t, err)
			resp.Body.Close()
			<-ended
			alone.CloseIdleConnections()
		}
		if stays {
			r.Stay = &Stay{}
			r.Stay.Start(hub)
		}
		for i := range 2 {
			asking, over := context.WithCancel(t.Context())
			allowed, _, _, err := r.Review(asking, Caller{Kind: Bearer}, token("alice"),
				identity.Attributes{Verb: "watch", Version: "v1", Resource: "nodes"})
			check(t, err)
			if over(); !allowed {
				t.Error("not allowed")
			}
			if !stays || i > 0 { // with Stay the one before
				<-left
			}
			if !stays {
				<-ended
			}
			idle()
		}
		if want := map[bool]int32{true: 1, false: 2}[stays]; connections.Load() != want {
			t.Errorf("stays %v: %d connections, want %d", stays, connections.Load(), want)
		}
		if end(); stays {
			<-left
			<-ended
			_, _, _, err := r.Review(t.Context(), Caller{Kind: Bearer}, token("alice"),
				identity.Attributes{Verb: "watch", Version: "v1", Resource: "nodes"})
			check(t, err)
			<-ended // also what is granted after the end
		}
		srv.Close()
	}
}

// TestOddReview: what the cloud finds wrong with the question itself is told to the caller. It is nobody's outage.
func TestOddReview(t *testing.T) {
	tests := []struct {
		code    int
		refused bool
	}{
		{400, true}, {413, true}, {422, true}, {404, false}, {405, false}, {429, false}, {500, false}, {302, false},
	}
	for _, test := range tests {
		for _, verb := range []string{"list", "watch"} {
			r := Reviewer{AsCaller: roundTripper(func(req *http.Request) (*http.Response, error) {
				w := httptest.NewRecorder()
				answer.Write(w, &apierrors.StatusError{ErrStatus: metav1.Status{Code: int32(test.code), Message: "said the cloud"}})
				return w.Result(), nil
			})}
			_, _, refused, err := r.Review(t.Context(), Caller{Kind: Bearer}, token("a"), identity.Attributes{Verb: verb})
			if (refused != nil) != test.refused || (err != nil) == test.refused {
				t.Errorf("%d to a %s: %v, %v", test.code, verb, refused, err)
			}
			if refused != nil && (refused.ErrStatus.Code != int32(test.code) || refused.ErrStatus.Message != "said the cloud") {
				t.Errorf("%d to a %s: %v", test.code, verb, refused.ErrStatus)
			}
		}
	}
}

// TestAsk: what the cloud says when the hub asks again, of a resource and of a path, as a caller and as the node.
func TestAsk(t *testing.T) {
	for name, test := range map[string]struct {
		code    int // of the answer to the review
		allowed bool
		want    int
	}{
		"allowed": {201, true, 200}, "denied": {201, false, 403}, "who is that": {401, false, 401},
		"may not ask": {403, false, 403}, "broken": {500, false, 0},
	} {
		for _, certified := range []bool{false, true} {
			for _, a := range []identity.Attributes{
				{Verb: "get", Path: "/apis"}, {Verb: "get", Version: "v1", Resource: "secrets", Namespace: "a", Name: "x"},
			} {
				cloud := roundTripper(func(req *http.Request) (*http.Response, error) {
					w := httptest.NewRecorder()
					if test.code != 201 {
						answer.Write(w, &apierrors.StatusError{ErrStatus: metav1.Status{Code: int32(test.code)}})
						return w.Result(), nil
					}
					sent, err := io.ReadAll(req.Body)
					check(t, err)
					_, raw, err := wire.SplitEnvelope(sent)
					check(t, err)
					var r authorizationv1.SelfSubjectAccessReview
					check(t, r.Unmarshal(raw))
					if of := r.Spec.NonResourceAttributes; (of != nil) != (a.Path != "") || of != nil && of.Path != a.Path {
						t.Errorf("asked %+v", r.Spec)
					}
					if of := r.Spec.ResourceAttributes; (of == nil) != (a.Path != "") || of != nil && of.Name != a.Name {
						t.Errorf("asked %+v", r.Spec)
					}
					r.Status.Allowed = test.allowed
					raw, err = r.Marshal()
					check(t, err)
					body := wire.Envelope(ReviewKind, raw)
					w.WriteHeader(test.code)
					_, _ = w.Write(body)
					return w.Result(), nil
				})
				never := roundTripper(func(*http.Request) (*http.Response, error) {
					t.Error("asked as somebody else")
					return nil, uplink.ErrNoServer
				})
				r := Reviewer{AsCaller: cloud, AsNode: never}
				if certified {
					r = Reviewer{AsCaller: never, AsNode: cloud}
				}
				code, err := r.Ask(t.Context(), token("a"), certified, a)
				if (err != nil) != (test.want == 0) || err == nil && code != test.want {
					t.Errorf("%s, %s, node %v: %d, %v", name, a, certified, code, err)
				}
			}
		}
	}
}
