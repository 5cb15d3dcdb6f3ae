package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

var sliceKind = Kind{"discovery.k8s.io/v1", "EndpointSlice"}

func sample() *discoveryv1.EndpointSlice {
	ready := true
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-1", Namespace: "shop", UID: "u-1", ResourceVersion: "42", Labels: map[string]string{"a": "b"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:x":{}}`)}}},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}},
		},
	}
}

func marshal(t testing.TB, m interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	raw, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestParseObject(t *testing.T) {
	s := sample()
	raw := marshal(t, s)
	asJSON, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for enc, b := range map[Encoding][]byte{Protobuf: raw, JSON: asJSON} {
		o, err := ParseObject(enc, b)
		if err != nil {
			t.Fatal(err)
		}
		if o.Key != "shop/web-1" || o.UID != "u-1" || o.Version != 42 || o.Labels.Get("a") != "b" {
			t.Errorf("%v: %+v", enc, o)
		}
		n, err := o.WithVersion(enc, 1234567)
		if err != nil || n.Version != 1234567 {
			t.Fatalf("%v: %v %v", enc, n, err)
		}
		back, err := n.WithVersion(enc, 42)
		if err != nil {
			t.Fatal(err)
		}
		if enc == Protobuf && !bytes.Equal(back.Raw, raw) {
			t.Error("changing the version and back changed something else")
		}
	}
}

// The envelope is byte for byte that of apimachinery's serializer.
func TestEnvelopeIsApimachinerys(t *testing.T) {
	s := sample()
	s.APIVersion, s.Kind = sliceKind.APIVersion, sliceKind.Kind
	scheme := runtime.NewScheme()
	if err := discoveryv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := protobuf.NewSerializer(scheme, scheme).Encode(s, &want); err != nil {
		t.Fatal(err)
	}
	raw := marshal(t, s)
	got := append(append(AppendEnvelope(nil, sliceKind, len(raw)), raw...), EnvelopeTail()...)
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("got  %q\nwant %q", got, want.Bytes())
	}
	k, back, err := SplitEnvelope(got)
	if err != nil || k != sliceKind || !bytes.Equal(back, raw) {
		t.Errorf("split: %v %v", k, err)
	}
}

func TestFrameIsMetav1WatchEvent(t *testing.T) {
	raw := marshal(t, sample())
	frame := AppendProtobufFrame(nil, Modified, sliceKind, raw)
	var ev metav1.WatchEvent
	if err := ev.Unmarshal(frame[4:]); err != nil {
		t.Fatal(err)
	}
	if want := append([]byte{0, 0, byte((len(frame) - 4) >> 8), byte(len(frame) - 4)}, marshal(t, &ev)...); !bytes.Equal(
		frame, want) {
		t.Errorf("got  %q\nwant %q", frame, want)
	}
	got, err := NewEventReader(bytes.NewReader(frame), Protobuf, sliceKind).Next()
	if err != nil || got.Type != Modified || got.Object.Key != "shop/web-1" || !bytes.Equal(got.Object.Raw, raw) ||
		!bytes.Equal(got.Frame, frame) {
		t.Errorf("%+v, %v", got, err)
	}
}

func list(t testing.TB) (body []byte, items int) {
	var l discoveryv1.EndpointSliceList
	l.ResourceVersion = "99"
	left := int64(7)
	l.Continue, l.RemainingItemCount = "next", &left
	for i := range 5 {
		s := sample()
		s.Name = fmt.Sprint("web-", i)
		l.Items = append(l.Items, *s)
	}
	raw := marshal(t, &l)
	return append(append(AppendEnvelope(nil, Kind{sliceKind.APIVersion, "EndpointSliceList"}, len(raw)), raw...),
		EnvelopeTail()...), len(l.Items)
}

func TestReadList(t *testing.T) {
	body, items := list(t)
	n := 0
	m, err := ReadList(bytes.NewReader(body), Protobuf, sliceKind, func(o *Object) error {
		if want := fmt.Sprint("shop/web-", n); o.Key != want {
			t.Errorf("%s, want %s", o.Key, want)
		}
		n++
		return nil
	})
	if err != nil || n != items || m.Version != 99 || m.Continue != "next" || *m.Remaining != 7 {
		t.Errorf("%d items, %+v, %v", n, m, err)
	}
	if _, err := ReadList(bytes.NewReader(body), Protobuf, Kind{"v1", "Endpoints"},
		func(*Object) error { return nil }); err == nil {
		t.Error("a list of another kind was accepted")
	}
	for cut := range body[:len(body)-len(EnvelopeTail())] {
		if _, err := ReadList(bytes.NewReader(body[:cut]), Protobuf, sliceKind, func(*Object) error { return nil }); err ==
			nil {
			t.Fatalf("a body cut at %d of %d was accepted", cut, len(body))
		}
	}
}

func TestReadJSONList(t *testing.T) {
	const widgets = `{"apiVersion":"example.com/v1","items":[{"apiVersion":"example.com/v1","kind":"Widget",` +
		`"metadata":{"name":"a","resourceVersion":"3"}},` +
		`{"metadata":{"name":"b","resourceVersion":"4"}}],"kind":"WidgetList","metadata":{"continue":"c",` +
		`"resourceVersion":"9"}}`
	kind := Kind{"example.com/v1", "Widget"}
	var got []string
	m, err := ReadList(strings.NewReader(widgets), JSON, kind, func(o *Object) error {
		got = append(got, o.Key+" "+string(o.Raw[:30]))
		return nil
	})
	if err != nil || m.Version != 9 || m.Continue != "c" || len(got) != 2 ||
		!strings.Contains(got[1], `{"kind":"Widget"`) {
		t.Errorf("%v %+v %v", got, m, err)
	}
	for cut := range widgets {
		if _, err := ReadList(strings.NewReader(widgets[:cut]), JSON, kind, func(*Object) error { return nil }); err == nil {
			t.Fatalf("a body cut at %d was accepted", cut)
		}
	}
}

func TestBrokenFrames(t *testing.T) {
	raw := marshal(t, sample())
	good := AppendProtobufFrame(nil, Added, sliceKind, raw)
	next := func(b []byte) error {
		_, err := NewEventReader(bytes.NewReader(b), Protobuf, sliceKind).Next()
		return err
	}
	var m *MalformedError
	if err := next([]byte{0xff, 0xff, 0xff, 0xff, 1}); !errors.As(err, &m) ||
		!strings.Contains(err.Error(), "4294967295 bytes") {
		t.Errorf("a huge frame: %v", err)
	}
	if err := next(good[:len(good)-3]); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a cut frame: %v", err)
	}
	if err := next(nil); !errors.Is(err, io.EOF) {
		t.Errorf("the end: %v", err)
	}
	if err := next(AppendProtobufFrame(nil, "RENAMED", sliceKind, raw)); !errors.As(err, &m) {
		t.Errorf("an unknown type: %v", err)
	}
	if err := next(AppendProtobufFrame(nil, Added, Kind{"v1", "Pod"}, raw)); !errors.As(err, &m) {
		t.Errorf("another kind: %v", err)
	}
	noVersion := sample()
	noVersion.ResourceVersion = ""
	if err := next(AppendProtobufFrame(nil, Added, sliceKind, marshal(t, noVersion))); !errors.As(err, &m) {
		t.Errorf("no version: %v", err)
	}
}

func TestSchema(t *testing.T) {
	s := NewSchema(reflect.TypeFor[discoveryv1.EndpointSlice]())
	raw := marshal(t, sample())
	if path := s.Unknown(raw); path != "" {
		t.Errorf("an object of our own type has unknown field %s", path)
	}
	if path := s.Unknown(append(bytes.Clone(raw), 0xf8, 0x3e, 1)); path != "1007" {
		t.Errorf("unknown field %q", path)
	}
	pod := &corev1.Pod{
		Spec: corev1.PodSpec{
			Containers:   []corev1.Container{{Name: "c", Env: []corev1.EnvVar{{Name: "x"}}}},
			NodeSelector: map[string]string{"a": "b"},
		},
	}
	if path := NewSchema(reflect.TypeFor[corev1.Pod]()).Unknown(marshal(t, pod)); path != "" {
		t.Errorf("a pod has unknown field %s", path)
	}
}

func TestPath(t *testing.T) {
	pod := &corev1.Pod{
		Spec: corev1.PodSpec{NodeName: "n1", HostNetwork: true}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	raw := marshal(t, pod)
	if Path(raw, 2, 10) != "n1" || Path(raw, 3, 1) != "Running" || Path(raw, 2, 11) != "true" || Path(raw, 9, 9) != "" {
		t.Error(Path(raw, 2, 10), Path(raw, 3, 1), Path(raw, 2, 11))
	}
}

// What upstream sends is never trusted: no input may panic or be taken for something it is not.
func FuzzEvents(f *testing.F) {
	raw := marshal(f, sample())
	f.Add(AppendProtobufFrame(nil, Added, sliceKind, raw), false)
	f.Add(AppendProtobufFrame(AppendProtobufFrame(nil, Deleted, sliceKind, raw), Bookmark, sliceKind, raw), false)
	f.Add(
		[]byte(`{"type":"ADDED","object":{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":"a",`+
			`"resourceVersion":"1"}}}`), true)
	f.Fuzz(func(t *testing.T, b []byte, asJSON bool) {
		enc := Protobuf
		if asJSON {
			enc = JSON
		}
		r := NewEventReader(bytes.NewReader(b), enc, sliceKind)
		for {
			ev, err := r.Next()
			if err != nil {
				return
			}
			if ev.Type != Error && ev.Version == 0 {
				t.Fatalf("an event without version: %+v", ev)
			}
			if ev.Object == nil {
				continue
			}
			if ev.Object.Name == "" || !strings.HasSuffix(ev.Object.Key, ev.Object.Name) {
				t.Fatalf("object %+v", ev.Object)
			}
			if n, err := ev.Object.WithVersion(enc, 7); err == nil && n.Version != 7 && ev.Object.Version != 0 {
				t.Fatalf("version %d", n.Version)
			}
		}
	})
}

func FuzzList(f *testing.F) {
	body, _ := list(f)
	f.Add(body, false)
	f.Add(
		[]byte(`{"kind":"EndpointSliceList","apiVersion":"discovery.k8s.io/v1","metadata":{"resourceVersion":"5"},`+
			`"items":[{"metadata":{"name":"a"}}]}`), true)
	f.Fuzz(func(t *testing.T, b []byte, asJSON bool) {
		enc := Protobuf
		if asJSON {
			enc = JSON
		}
		m, err := ReadList(bytes.NewReader(b), enc, sliceKind, func(o *Object) error {
			if o.Name == "" {
				t.Fatal("an item without name")
			}
			return nil
		})
		if err == nil && m.Version == 0 {
			t.Fatal("a list without version")
		}
	})
}
