package workload_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/sim/workload"
)

// recorder is a transport that keeps every write, and answers as a server that assigns uids and versions would. The
// real server is in cloud_test.go.
type recorder struct {
	mu      sync.Mutex
	version int
	writes  []recorded
	broken  bool // answers 500
}

// recorded is one write without what the server assigned.
type recorded struct {
	what   string // "POST /api/v1/namespaces"
	object runtime.Object
}

func (r *recorder) client(t *testing.T) kubernetes.Interface {
	t.Helper()
	client, err := workload.NewClient(&rest.Config{Host: "http://cloud.test", Transport: r})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	answer := &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: request,
		Header: http.Header{"Content-Type": {"application/json"}},
	}
	if r.broken {
		answer.StatusCode = http.StatusInternalServerError
		answer.Body = io.NopCloser(
			strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"broken","code":500}`))
		return answer, nil
	}
	write := recorded{what: request.Method + " " + request.URL.Path}
	body := []byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	if request.Method != http.MethodDelete {
		if got := request.Header.Get("Content-Type"); got != "application/vnd.kubernetes.protobuf" {
			return nil, fmt.Errorf("%s: content type %q, want protobuf", write.what, got)
		}
		sent, err := io.ReadAll(request.Body)
		if err != nil {
			return nil, err
		}
		object, kind, err := scheme.Codecs.UniversalDeserializer().Decode(sent, nil, nil)
		if err != nil {
			return nil, err
		}
		object.GetObjectKind().SetGroupVersionKind(*kind)
		write.object = object.DeepCopyObject()
		accessor, err := meta.Accessor(object)
		if err != nil {
			return nil, err
		}
		r.version++
		accessor.SetResourceVersion(fmt.Sprint(r.version))
		accessor.SetUID(types.UID("uid-" + accessor.GetNamespace() + "-" + accessor.GetName()))
		if body, err = json.Marshal(object); err != nil {
			return nil, err
		}
		if accessor, err = meta.Accessor(write.object); err != nil {
			return nil, err
		}
		accessor.SetResourceVersion("")
	}
	r.writes = append(r.writes, write)
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}

// lines are the writes as text, one each.
func (r *recorder) lines(t *testing.T) []string {
	t.Helper()
	var lines []string
	for _, w := range r.writes {
		data, err := json.Marshal(w.object)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, w.what+" "+string(data))
	}
	return lines
}

// slices and endpoints are the last state of all objects, by namespace/name.
func (r *recorder) state() (slices map[string]*discoveryv1.EndpointSlice, endpoints map[string]*corev1.Endpoints) {
	slices, endpoints = map[string]*discoveryv1.EndpointSlice{}, map[string]*corev1.Endpoints{}
	for _, w := range r.writes {
		switch o := w.object.(type) {
		case *discoveryv1.EndpointSlice:
			slices[o.Namespace+"/"+o.Name] = o
		case *corev1.Endpoints:
			endpoints[o.Namespace+"/"+o.Name] = o
		case nil:
			parts := strings.Split(w.what, "/") // DELETE /apis/discovery.k8s.io/v1/namespaces/shop/endpointslices/x
			delete(slices, parts[len(parts)-3]+"/"+parts[len(parts)-1])
		}
	}
	return slices, endpoints
}
