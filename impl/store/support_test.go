package store

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/relay/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var (
	quiet   = slog.New(slog.NewTextHandler(io.Discard, nil))
	pods    = Resource{Version: "v1", Name: "pods"}
	secrets = Resource{Version: "v1", Name: "secrets"}
	widgets = Resource{Group: "example.com", Version: "v1", Name: "widgets"}

	podKind    = wire.Kind{APIVersion: "v1", Kind: "Pod"}
	secretKind = wire.Kind{APIVersion: "v1", Kind: "Secret"}
	widgetKind = wire.Kind{APIVersion: "example.com/v1", Kind: "Widget"}
)

func fakeClock() *clocktesting.FakeClock {
	return clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
}

func open(t testing.TB, c Config) *Store {
	t.Helper()
	if c.Logger == nil {
		c.Logger = quiet
	}
	if c.Clock == nil {
		c.Clock = fakeClock()
	}
	s, err := Open(c)
	check(t, err)
	return s
}

// again closes a store and opens it with the same configuration.
func again(t testing.TB, s *Store) *Store {
	t.Helper()
	s.Close()
	return open(t, s.Config)
}

// pod makes one in protobuf. Labels are "key=value".
func pod(t testing.TB, key string, version uint64, labels ...string) *wire.Object {
	t.Helper()
	namespace, name, _ := strings.Cut(key, "/")
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("uid-" + name), ResourceVersion: fmt.Sprint(version),
		Labels: map[string]string{},
	}, Spec: corev1.PodSpec{NodeName: "n"}}
	for _, l := range labels {
		k, v, _ := strings.Cut(l, "=")
		p.Labels[k] = v
	}
	raw, err := p.Marshal()
	check(t, err)
	o, err := wire.ParseObject(wire.Protobuf, raw)
	check(t, err)
	return o
}

// item makes an object in JSON.
func item(t testing.TB, key string, version uint64, body string) *wire.Object {
	t.Helper()
	namespace, name, _ := strings.Cut(key, "/")
	o, err := wire.ParseObject(wire.JSON, fmt.Appendf(nil,
		`{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"namespace":%q,"name":%q,"uid":"uid-%s",`+
			`"resourceVersion":"%d"},"spec":%q}`, namespace, name, name, version, body))
	check(t, err)
	return o
}

func list(t testing.TB, s *Store, shape Shape, kind wire.Kind, version uint64, items ...*wire.Object) {
	t.Helper()
	l, err := s.List(shape, kind)
	check(t, err)
	defer l.Close()
	for _, o := range items {
		l.Add(o)
	}
	l.Commit(version)
}

func event(typ string, o *wire.Object) *wire.Event {
	return &wire.Event{Type: typ, Object: o, Version: o.Version}
}

func watch(t testing.TB, s *Store, shape Shape, kind wire.Kind, from uint64, events ...*wire.Event) *Watching {
	t.Helper()
	w, err := s.Watch(shape, kind, from, false)
	check(t, err)
	for _, e := range events {
		w.Event(e)
	}
	return w
}

// read tells what a collection answers: "version: key@version …", or "unknown".
func read(t testing.TB, s *Store, shape Shape) string {
	t.Helper()
	c, ok := s.Read(shape)
	if !ok {
		return "unknown"
	}
	out := fmt.Sprintf("%d:", c.Version)
	n := 0
	for o := range c.Items {
		out += fmt.Sprintf(" %s@%d", o.Key, o.Version)
		n++
	}
	if n != len(c.Keys) ||
		!slices.IsSortedFunc(c.Keys, func(a, b Key) int { return strings.Compare(a.String(), b.String()) }) {
		t.Errorf("%d items, keys %v", n, c.Keys)
	}
	return out
}

// get tells what is known of an object: "@version", "absent" or "unknown".
func get(s *Store, r Resource, f Form, key string) string {
	namespace, name, _ := strings.Cut(key, "/")
	switch a := s.Get("test", r, f, Key{namespace, name}); a.Knowledge {
	case Known:
		return fmt.Sprintf("@%d", a.Object.Version)
	case KnownAbsent:
		return "absent"
	}
	return "unknown"
}

func kubelet() Shape {
	return Shape{Component: "kubelet", Resource: pods, Fields: "spec.nodeName=n"}
}

func expect(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}
