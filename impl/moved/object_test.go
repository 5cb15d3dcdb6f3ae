package moved

import (
	"encoding/json"
	"reflect"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/relay/wire"
)

type message interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// encoded is an object of a relay, with a field at its end that this build does not know.
func encoded(t *testing.T, enc wire.Encoding, m message) *wire.Object {
	t.Helper()
	raw, err := m.Marshal()
	raw = protowire.AppendString(protowire.AppendTag(raw, 99, protowire.BytesType), "new")
	if enc == wire.JSON {
		raw, err = json.Marshal(m)
		raw = append([]byte(`{"new":"new",`), raw[1:]...)
	}
	if err != nil {
		t.Fatal(err)
	}
	o, err := wire.ParseObject(enc, raw)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestForms: the bytes of an object are corrected as the object is, in both encodings. What is not corrected passes as
// the bytes that came, and fields that this build does not know stay.
func TestForms(t *testing.T) {
	s := pool(t, "a", "b")
	says(t, s, "a", 1, "p=10.0.0.9", "q!", "r~10.0.0.8")
	slice := sliceOf("web", discoveryv1.AddressTypeIPv4, "p@a 10.0.0.1 rs", "q@a 10.0.0.2 rs", "r@a 10.0.0.3 rs",
		"x@b 10.1.0.1 rs")
	slice.ResourceVersion = "77"
	endpoints := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", ResourceVersion: "77"}}
	for i, e := range slice.Endpoints {
		endpoints.Subsets = append(endpoints.Subsets, corev1.EndpointSubset{Addresses: []corev1.EndpointAddress{
			{IP: e.Addresses[0], NodeName: e.NodeName, TargetRef: e.TargetRef},
		}, Ports: []corev1.EndpointPort{{Port: int32(80 + i)}}})
	}
	for _, publishes := range []bool{false, true} {
		asked := ""
		of := func(namespace, service string) bool {
			asked = namespace + "/" + service
			return publishes
		}
		wantSlice, _ := s.Slice(slice, publishes)
		wantEndpoints, _ := s.Endpoints(endpoints, publishes)
		for _, enc := range []wire.Encoding{wire.Protobuf, wire.JSON} {
			for name, c := range map[string]struct {
				form           Form
				in, want, into message
				other          message
			}{
				"slice": {
					s.SliceForm(enc, of), slice, wantSlice, &discoveryv1.EndpointSlice{},
					sliceOf("other", discoveryv1.AddressTypeIPv4, "x@b 10.1.0.1 rs"),
				},
				"endpoints": {
					s.EndpointsForm(enc, of), endpoints, wantEndpoints, &corev1.Endpoints{},
					&corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "other"}},
				},
			} {
				in := encoded(t, enc, c.in)
				was := string(in.Raw)
				out := c.form(in)
				if err := decode(enc, out.Raw, c.into); err != nil || !reflect.DeepEqual(c.into, c.want) {
					t.Errorf("%s in %v: %v, %v, want %v", name, enc, c.into, err, c.want)
				}
				if string(in.Raw) != was || asked != "shop/web" || out.Version != 77 || out.Key != in.Key {
					t.Errorf("%s in %v: what came was changed, or the Service %s asked for", name, enc, asked)
				}
				known := map[string]any{}
				if enc == wire.JSON && (json.Unmarshal(out.Raw, &known) != nil || known["new"] != "new") ||
					enc == wire.Protobuf && wire.Path(out.Raw, 99) != "new" {
					t.Errorf("%s in %v: an unknown field is lost", name, enc)
				}
				if other := encoded(t, enc, c.other); c.form(other) != other {
					t.Errorf("%s in %v: what is not corrected is another object", name, enc)
				}
				odd := &wire.Object{Key: "shop/web", Raw: []byte("\xff{")}
				if c.form(odd) != odd {
					t.Errorf("%s in %v: what cannot be read does not pass", name, enc)
				}
			}
		}
	}
}

// TestFormsAtRest: while nothing is corrected nothing is decoded.
func TestFormsAtRest(t *testing.T) {
	s := pool(t, "a")
	form := s.SliceForm(wire.Protobuf, func(string, string) bool {
		t.Error("it looks for the Service")
		return false
	})
	o := encoded(t, wire.Protobuf, sliceOf("web", discoveryv1.AddressTypeIPv4, "p@a 10.0.0.1 rs"))
	if n := testing.AllocsPerRun(10, func() {
		if form(o) != o {
			t.Error("it is another object")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestShow: a corrected form has a version below its original's, the same everywhere, and another one for each content
// that a client has before. What there is no version for is not corrected.
func TestShow(t *testing.T) {
	s := pool(t, "a")
	never := func(string, string) bool { return false }
	v := NewView(wire.Protobuf, s.SliceForm(wire.Protobuf, never), nil)
	of := func(version string) *wire.Object {
		x := sliceOf("web", discoveryv1.AddressTypeIPv4, "p@a 10.0.0.1 rs")
		x.ResourceVersion, x.Annotations = version, nil
		x.Endpoints[0].NodeName = ptr.To("a")
		return encoded(t, wire.Protobuf, x)
	}
	says(t, s, "a", 1, "p=10.0.0.9")
	for _, version := range []string{"2", "3", "100", "5000000"} {
		o := of(version)
		one, is := v.show(o, sight{})
		if one.Version == 0 || one.Version >= o.Version || o.Version-one.Version > band {
			t.Errorf("a form of %d has %d", o.Version, one.Version)
		}
		if again, _ := v.show(o, is); again.Version != one.Version || v.Show(o).Version != one.Version {
			t.Errorf("a form of %d has %d, then %d", o.Version, one.Version, again.Version)
		}
		if other, _ := v.show(o, sight{is.version, is.content + 2}); o.Version > 2 && other.Version == one.Version ||
			other.Version >= o.Version || other.Version == 0 {
			t.Errorf("two forms of %d have %d", o.Version, one.Version)
		}
	}
	if o := of("1"); v.Show(o) != o {
		t.Error("a form of version 1")
	}
}

// TestOwed: what somebody may have in a corrected form is known until the cloud has replaced it.
func TestOwed(t *testing.T) {
	s := pool(t, "a")
	form := s.SliceForm(wire.Protobuf, func(string, string) bool { return false })
	of := func(version string) *wire.Object {
		x := sliceOf("web", discoveryv1.AddressTypeIPv4, "p@a 10.0.0.1 rs")
		x.ResourceVersion = version
		return encoded(t, wire.Protobuf, x)
	}
	v := NewView(wire.Protobuf, form, nil)
	v.Show(of("100"))
	if len(v.Owed()) > 0 {
		t.Error("owed though nothing was corrected")
	}
	says(t, s, "a", 1, "p=10.0.0.9")
	v.Show(of("100"))
	v.Show(of("90")) // of a watch that is behind
	v = NewView(wire.Protobuf, form, v.Owed())
	for version, want := range map[string]bool{"90": false, "100": true, "101": false} {
		if got := v.owes(of(version)); got != want {
			t.Errorf("%s is owed: %t", version, got)
		}
	}
	if v.Prune(each(of("90"))); !v.owes(of("100")) {
		t.Error("forgotten by a relay that was restored")
	}
	if v.Prune(each(of("101"))); len(v.Owed()) > 0 {
		t.Error("kept though it was replaced")
	}
}
