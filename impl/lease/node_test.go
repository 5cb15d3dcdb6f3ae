package lease

import (
	"net/http"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weir-edge/weir/impl/request"
)

// TestOwnLease: what is taken for a heartbeat.
func TestOwnLease(t *testing.T) {
	const own = Path + "/edge-1"
	for _, c := range []struct {
		method, uri, header string
		want                bool
	}{
		{http.MethodPut, own, "", true},
		{http.MethodPatch, own + "?fieldManager=x", "", true},
		{http.MethodGet, own + "?timeout=10s", "", true},
		{http.MethodPost, Path, "", true},
		{http.MethodDelete, own, "", false},
		{http.MethodGet, own + "?watch=1", "", false},
		{http.MethodPut, Path + "/edge-2", "", false},
		{http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/edge-1", "", false},
		{http.MethodGet, Path, "", false},
		{http.MethodPut, own, "Impersonate-User", false},
		{http.MethodPut, own, "Content-Encoding", false},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, "https://hub"+c.uri, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.header != "" {
			req.Header.Set(c.header, "x")
		}
		if got := IsOwn(req.Header, request.Parse(req), "edge-1"); got != c.want {
			t.Errorf("%s %s %s: got %t", c.method, c.uri, c.header, got)
		}
	}
}

// FuzzDecodeLease: whatever comes is a Lease with a name, or an error.
func FuzzDecodeLease(f *testing.F) {
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "edge-1", ResourceVersion: "1"}}
	for _, accept := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
		contentType, body, err := Encode(l, accept)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(contentType, body)
	}
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		if l, err := Decode(contentType, body); err == nil && l.Name == "" {
			t.Error("a Lease without a name")
		}
	})
}
