package filter

import (
	"iter"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
)

// FuzzAnswer: whatever an answer is made of, the client gets something, and nobody panics.
func FuzzAnswer(f *testing.F) {
	c := everything
	c.Node, c.Pool, c.Cloud = "edge-1", "pool-a", http.DefaultTransport
	c.Slices = func() (uint64, iter.Seq[*wire.Object]) { return 1, func(func(*wire.Object) bool) {} }
	filters, err := New(c)
	check(f, err)
	filters.setMembers([]string{"edge-2"})
	bare, err := service("kubernetes", nil).Marshal()
	check(f, err)
	list, err := (&corev1.ServiceList{Items: []corev1.Service{*service("a", nil)}}).Marshal()
	check(f, err)
	f.Add(wire.Envelope(kindOf(services), bare), uint8(0))
	f.Add(wire.Envelope(wire.Kind{APIVersion: "v1", Kind: "ServiceList"}, list), uint8(1))
	f.Add(wire.AppendProtobufFrame(nil, wire.Added, kindOf(services), bare), uint8(2))
	f.Add(
		[]byte(`{"type":"MODIFIED","object":{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1",`+
			`"metadata":{"name":"x","namespace":"d","resourceVersion":"1","labels":{"weir/topology":"node"}},`+
			`"endpoints":[{"nodeName":"a"}]}}`), uint8(14))
	f.Add(
		[]byte(`{"kind":"EndpointSliceList","apiVersion":"discovery.k8s.io/v1","items":[{"metadata":{"name":"x",`+
			`"labels":{"weir/topology":"node"}},"endpoints":[{"nodeName":"a"}]}]}`), uint8(13))
	f.Fuzz(func(t *testing.T, body []byte, how uint8) {
		path := []string{
			"/api/v1/namespaces/default/services/kubernetes", servicesPath, servicesPath + "?watch=1&resourceVersion=5",
		}[how%3]
		if how&8 != 0 {
			path = []string{
				"/apis/discovery.k8s.io/v1/namespaces/d/endpointslices/x", slicesPath, slicesPath + "?watch=1&resourceVersion=5",
			}[how%3]
		}
		req := httptest.NewRequest(http.MethodGet, path, nil)
		req.Header.Set("User-Agent", "kube-proxy")
		rec := httptest.NewRecorder()
		filters.Serve(rec, req, request.Parse(req), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if how&4 == 0 {
				w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
			}
			half := len(body) / 2
			for _, part := range [][]byte{body[:half], body[half:]} {
				if _, err := w.Write(part); err != nil {
					return
				}
			}
		})
		if rec.Code != http.StatusOK && rec.Code != http.StatusNotFound {
			t.Errorf("%d", rec.Code)
		}
	})
}
