package filter

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
)

const (
	allServices    = "/api/v1/services"
	kubernetesPath = "/api/v1/namespaces/default/services/kubernetes"
)

// podsBed is an Own in front of a relay of Services, behind a real server.
type podsBed struct {
	*Own
	t       *testing.T
	relay   *relay.Relay
	version uint64
	server  *httptest.Server
	reads   atomic.Int64
}

func newPodsBed(t *testing.T, before string) *podsBed {
	t.Helper()
	b := &podsBed{t: t, version: 100}
	b.Own = NewOwn(OwnConfig{Node: "edge-1", Roots: []byte(root("node")), Pods: before, Reads: func() { b.reads.Add(1) }})
	b.relay, b.server = behind(t, b.Own, "services.v1.=Service", b.version)
	for _, namespace := range []string{"default", "team"} {
		for _, name := range []string{"kubernetes", "web"} {
			b.put(wire.Added, namespace, name)
		}
	}
	return b
}

func (b *podsBed) put(typ, namespace, name string) {
	b.t.Helper()
	b.version++
	s := service(name, func(s *corev1.Service) {
		s.Namespace, s.ResourceVersion = namespace, wire.FormatVersion(b.version)
		s.Spec.ClusterIP, s.Spec.ClusterIPs = "10.96.0.1", []string{"10.96.0.1"}
		s.Spec.Ports = []corev1.ServicePort{{Name: "https", Protocol: "TCP", Port: 443}}
	})
	raw, err := s.Marshal()
	check(b.t, err)
	o, err := wire.ParseObject(wire.Protobuf, raw)
	check(b.t, err)
	kind := kindOf(services)
	check(b.t, b.relay.Apply(&wire.Event{
		Type: typ, Kind: kind, Version: b.version, Object: o, Frame: wire.AppendProtobufFrame(nil, typ, kind, raw),
	}))
}

func (b *podsBed) ask(path string, enc wire.Encoding) *http.Response {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 20*time.Second)
	b.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.server.URL+path, nil)
	check(b.t, err)
	req.Header.Set("Accept", map[wire.Encoding]string{
		wire.Protobuf: "application/vnd.kubernetes.protobuf", wire.JSON: "application/json",
	}[enc])
	resp, err := http.DefaultClient.Do(req)
	check(b.t, err)
	b.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// at is where a Service is, in an encoding.
func at(t *testing.T, enc wire.Encoding, raw []byte) string {
	t.Helper()
	var s corev1.Service
	if enc == wire.JSON {
		check(t, json.Unmarshal(raw, &s))
	} else {
		check(t, s.Unmarshal(raw))
	}
	return fmt.Sprintf("%s:%d", s.Spec.ClusterIP, s.Spec.Ports[0].Port)
}

// sees is what a get and a list show, by namespace and name.
func (b *podsBed) sees(enc wire.Encoding) (one string, all map[string]string) {
	b.t.Helper()
	body, err := io.ReadAll(b.ask(kubernetesPath, enc).Body)
	check(b.t, err)
	if enc == wire.Protobuf {
		_, body, err = wire.SplitEnvelope(body)
		check(b.t, err)
	}
	one, all = at(b.t, enc, body), map[string]string{}
	body, err = io.ReadAll(b.ask(allServices, enc).Body)
	check(b.t, err)
	var l corev1.ServiceList
	if enc == wire.JSON {
		check(b.t, json.Unmarshal(body, &l))
	} else {
		_, raw, err := wire.SplitEnvelope(body)
		check(b.t, err)
		check(b.t, l.Unmarshal(raw))
	}
	for _, s := range l.Items {
		all[s.Namespace+"/"+s.Name] = fmt.Sprintf("%s:%d", s.Spec.ClusterIP, s.Spec.Ports[0].Port)
	}
	return one, all
}

func (b *podsBed) watch(version string, enc wire.Encoding) (next func() (typ, name, where string)) {
	b.t.Helper()
	events := wire.NewEventReader(b.ask(allServices+"?watch=1&resourceVersion="+version, enc).Body, enc, kindOf(services))
	return func() (string, string, string) {
		b.t.Helper()
		ev, err := events.Next()
		check(b.t, err)
		if ev.Object == nil || ev.Type == wire.Error {
			return ev.Type, "", ""
		}
		return ev.Type, ev.Object.Namespace + "/" + ev.Object.Name, at(b.t, enc, ev.Object.Raw)
	}
}

// TestPods: the kubelet sees Service default/kubernetes, and no other one, where the hub is, from the moment on at
// which pods are led there: its open watch ends, so that it lists. It ends again when they are led back. A change of
// the node's authority ends no watch of Services.
func TestPods(t *testing.T) {
	encodings(t, func(t *testing.T, enc wire.Encoding) {
		const cloud, hub = "10.96.0.1:443", "169.254.2.1:10268"
		b := newPodsBed(t, "")
		is := func(when, want string) {
			t.Helper()
			one, all := b.sees(enc)
			if one != want || all["default/kubernetes"] != want || all["team/kubernetes"] != cloud ||
				all["default/web"] != cloud || len(all) != 4 {
				t.Errorf("%s: get %s, list %v", when, one, all)
			}
		}
		is("at first", cloud)
		next := b.watch("100", enc)
		for range 4 {
			if typ, name, where := next(); typ != wire.Added || where != cloud {
				t.Errorf("%s %s at %s", typ, name, where)
			}
		}
		b.SetRoots([]byte(root("another")))
		b.put(wire.Modified, "default", "web")
		if typ, name, _ := next(); typ != wire.Modified || name != "default/web" {
			t.Errorf("another authority: %s %s", typ, name)
		}
		for _, to := range []string{hub, ""} {
			b.SetPods(to)
			want := map[bool]string{true: hub, false: cloud}[to != ""]
			if typ, name, _ := next(); typ != wire.Error {
				t.Errorf("led to %q: %s %s", to, typ, name)
			}
			is("led to "+want, want)
			next = b.watch(fmt.Sprint(b.version), enc)
			b.put(wire.Modified, "default", "kubernetes")
			if typ, name, where := next(); typ != wire.Modified || name != "default/kubernetes" || where != want {
				t.Errorf("led to %q: %s %s at %s", to, typ, name, where)
			}
		}
		if b.reads.Load() == 0 {
			t.Error("nobody heard that the kubelet reads Services")
		}
	})
}

// TestPodsAfterRestart: a hub that leads where the process before did ends no watch; else it does.
func TestPodsAfterRestart(t *testing.T) {
	for _, same := range []bool{true, false} {
		b := newPodsBed(t, "169.254.2.1:10268")
		if !same {
			b.SetPods("")
		}
		if typ, _, where := b.watch("100", wire.Protobuf)(); (typ == wire.Error) == same ||
			same && where != "169.254.2.1:10268" {
			t.Errorf("the same %v: %s %s", same, typ, where)
		}
	}
}

// TestPodsLate: a read that waits for its answer while pods are led to the hub has the hub's address, and that is what
// is told.
func TestPodsLate(t *testing.T) {
	const hub = "169.254.2.1:10268"
	var shown []string
	own := NewOwn(OwnConfig{Node: "edge-1", Shown: func(address string) { shown = append(shown, address) }})
	list := corev1.ServiceList{Items: []corev1.Service{*service("kubernetes", func(s *corev1.Service) {
		s.Namespace, s.Spec.ClusterIP = "default", "10.96.0.1"
		s.Spec.Ports = []corev1.ServicePort{{Name: "https", Protocol: "TCP", Port: 443}}
	})}}
	list.APIVersion, list.Kind = "v1", "ServiceList"
	req := httptest.NewRequest(http.MethodGet, "https://hub"+allServices, nil)
	said := httptest.NewRecorder()
	own.Serve(said, req, request.Parse(req), func(w http.ResponseWriter, _ *http.Request) {
		own.SetPods(hub)
		w.Header().Set("Content-Type", "application/json")
		check(t, json.NewEncoder(w).Encode(list))
	})
	var got corev1.ServiceList
	check(t, json.Unmarshal(said.Body.Bytes(), &got))
	if at := got.Items[0].Spec.ClusterIP; at != "169.254.2.1" {
		t.Errorf("led meanwhile: %s", at)
	}
	if want := []string{hub}; !slices.Equal(shown, want) {
		t.Errorf("told %q, want %q", shown, want)
	}
}
