package rest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

func benchHandler(r *relay.Relay) http.Handler { return &Handler{Source: r} }

// sink is a client that counts the frames that it takes.
type sink struct {
	header http.Header
	got    func(int)
}

func (s *sink) Header() http.Header { return s.header }
func (s *sink) WriteHeader(int)     {}
func (s *sink) Flush()              {}
func (s *sink) Write(p []byte) (int, error) {
	s.got(len(p))
	return len(p), nil
}

func benchSlice(b *testing.B, key string, version uint64) *wire.Object {
	b.Helper()
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: "a", Name: key, UID: types.UID("uid-" + key), ResourceVersion: wire.FormatVersion(version),
		Labels: map[string]string{"kubernetes.io/service-name": key},
	}, Endpoints: make([]discoveryv1.Endpoint, 10)}
	for i := range s.Endpoints {
		s.Endpoints[i].Addresses = []string{fmt.Sprint("10.0.0.", i)}
	}
	raw, err := s.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	o, err := wire.ParseObject(wire.Protobuf, raw)
	if err != nil {
		b.Fatal(err)
	}
	return o
}

func benchRelay(b *testing.B) *relay.Relay {
	b.Helper()
	res, err := relay.ParseResource("endpointslices.v1.discovery.k8s.io")
	if err != nil {
		b.Fatal(err)
	}
	r, err := relay.New(relay.Config{Resource: res, Gather: -1})
	if err != nil {
		b.Fatal(err)
	}
	items := make([]*wire.Object, 0, 1000)
	for i := range 1000 {
		items = append(items, benchSlice(b, fmt.Sprint("s-", i), uint64(i+1)))
	}
	if err := r.Replace(1000, items); err != nil {
		b.Fatal(err)
	}
	return r
}

// BenchmarkList is a list of 1000 objects.
func BenchmarkList(b *testing.B) {
	for _, accept := range []string{"application/vnd.kubernetes.protobuf", "application/json"} {
		b.Run(accept[12:16], func(b *testing.B) {
			h := benchHandler(benchRelay(b))
			b.ReportAllocs()
			for b.Loop() {
				req := httptest.NewRequest(http.MethodGet, "/apis/discovery.k8s.io/v1/endpointslices", nil)
				req.Header.Set("Accept", accept)
				h.ServeHTTP(&sink{http.Header{}, func(int) {}}, req)
			}
		})
	}
}

// BenchmarkStream is a streaming list of 1000 objects.
func BenchmarkStream(b *testing.B) {
	r := benchRelay(b)
	h := benchHandler(r)
	b.ReportAllocs()
	for b.Loop() {
		ctx, cancel := context.WithCancel(context.Background())
		req := httptest.NewRequestWithContext(ctx, http.MethodGet,
			"/apis/discovery.k8s.io/v1/endpointslices?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&"+
				"allowWatchBookmarks=true", nil)
		req.Header.Set("Accept", "application/vnd.kubernetes.protobuf")
		size := 0
		h.ServeHTTP(&sink{http.Header{}, func(n int) {
			if size += n; size > 150000 {
				cancel()
			}
		}}, req)
		cancel()
	}
}

// BenchmarkWatch is one event that 100 watchers take.
func BenchmarkWatch(b *testing.B) {
	for _, accept := range []string{"application/vnd.kubernetes.protobuf", "application/json"} {
		b.Run(accept[12:16], func(b *testing.B) {
			r := benchRelay(b)
			h := benchHandler(r)
			ctx, cancel := context.WithCancel(context.Background())
			var ended, took sync.WaitGroup
			for range 100 {
				ended.Add(1)
				go func() {
					defer ended.Done()
					req := httptest.NewRequestWithContext(ctx, http.MethodGet,
						"/apis/discovery.k8s.io/v1/endpointslices?watch=1&resourceVersion=1000", nil)
					req.Header.Set("Accept", accept)
					h.ServeHTTP(&sink{http.Header{}, func(int) { took.Done() }}, req)
				}()
			}
			for r.Status().Watchers < 100 {
				continue
			}
			version := uint64(1000)
			b.ReportAllocs()
			for b.Loop() {
				version++
				took.Add(100)
				ev := &wire.Event{Type: wire.Modified, Version: version, Object: benchSlice(b, "s-5", version)}
				if err := r.Apply(ev); err != nil {
					b.Fatal(err)
				}
				took.Wait()
			}
			cancel()
			ended.Wait()
		})
	}
}
