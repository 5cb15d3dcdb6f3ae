package source

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source/hop"
)

// large is a slice of some kilobytes, of which a word differs with each version.
func large(t *testing.T, name string, version uint64, word string) *wire.Object {
	t.Helper()
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: "a", Name: name, ResourceVersion: wire.FormatVersion(version),
		Annotations: map[string]string{"word": word},
	}}
	for i := range 200 {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.%d.%d.1", i, i*i%251)}})
	}
	return object(t, s)
}

func change(t *testing.T, r *relay.Relay, o *wire.Object) {
	t.Helper()
	ev := &wire.Event{Type: wire.Modified, Object: o, Version: o.Version}
	ev.Frame = wire.AppendProtobufFrame(nil, ev.Type, r.Resource().WireKind(), o.Raw)
	if err := r.Apply(ev); err != nil {
		t.Fatal(err)
	}
}

// TestDelta: a relay is fed by differences where its upstream gives them. One that is to what the relay does not hold
// is asked for whole, and counted, and the next ones are differences again.
func TestDelta(t *testing.T) {
	from, mine := newRelay(t), newRelay(t)
	if err := from.Replace(10, []*wire.Object{large(t, "x", 5, "one"), large(t, "y", 6, "one")}); err != nil {
		t.Fatal(err)
	}
	var bytes atomic.Int64
	up := func(name string) *hop.Upstream {
		u := serve(t, name, &rest.Handler{Source: from})
		u.Progress, u.Delta, u.OnBytes = true, true, func(n int) { bytes.Add(int64(n)) }
		return u
	}
	f := feed(t, mine)
	f.Use(up("leader"))
	same := func(what string, version uint64) {
		t.Helper()
		eventually(t, what, func() bool { return mine.Status().Version == version })
		for _, key := range []string{"a/x", "a/y"} {
			if got, want := mine.Object(key), from.Object(key); string(got.Raw) != string(want.Raw) {
				t.Errorf("%s: %s is of version %d, want %d", what, key, got.Version, want.Version)
			}
		}
	}
	same("the list", 10)
	began := bytes.Load()
	for v := uint64(11); v <= 30; v++ {
		change(t, from, large(t, "x", v, fmt.Sprint("word ", v)))
		same("a change", v)
	}
	if n := (bytes.Load() - began) / 20; n > 200 {
		t.Errorf("%d bytes for a change of an object of %d", n, len(from.Object("a/x").Raw))
	}
	f.Use(up("another leader"))
	change(t, from, large(t, "y", 31, "two"))
	same("a change after that of the leader", 31)
	if n := f.Status().Mismatches; n != 0 {
		t.Fatalf("%d differences did not fit", n)
	}

	// The other one has it otherwise, as after a restore that nobody has noticed.
	other := newRelay(t)
	if err := other.Replace(31, []*wire.Object{large(t, "x", 30, "another"), large(t, "y", 31, "two")}); err != nil {
		t.Fatal(err)
	}
	from = other
	f.Use(up("a third"))
	change(t, from, large(t, "x", 32, "three"))
	same("a change that does not fit", 32)
	change(t, from, large(t, "x", 33, "four"))
	same("the next one", 33)
	if n := f.Status().Mismatches; n != 1 {
		t.Errorf("%d differences did not fit, want 1", n)
	}
}

// TestSince: after 410 an upstream that gives differences is told what is here, and sends what is not. If it has an
// object that should be here, and is not, all is listed.
func TestSince(t *testing.T) {
	const n = 200
	for _, test := range []struct {
		name      string
		otherwise bool // the relay holds another object in the same version
		lists     int
	}{{name: "it fits"}, {"it does not fit", true, 1}} {
		t.Run(test.name, func(t *testing.T) {
			objects := func() (all []*wire.Object) {
				for i := range uint64(n) {
					all = append(all, large(t, fmt.Sprint("s", i), 5+i, "one"))
				}
				return all
			}
			from, mine := newRelay(t), newRelay(t)
			held := objects()
			if test.otherwise {
				held[7].UID = "another"
			}
			if err := mine.Replace(1000, held); err != nil {
				t.Fatal(err)
			}
			now := objects()[:n-1] // the last one is deleted
			for i := range uint64(2) {
				now[10*i] = large(t, now[10*i].Name, 1500+i, "two")
			}
			if err := from.Replace(2000, now); err != nil { // it remembers nothing before
				t.Fatal(err)
			}
			var read atomic.Int64
			up := serve(t, "gate", &rest.Handler{Source: from})
			up.Progress, up.Delta, up.OnBytes = true, true, func(n int) { read.Add(int64(n)) }
			f := feed(t, mine)
			f.Use(up)
			eventually(t, "what differs", func() bool { return mine.Status().Version >= 2000 })
			for o := range from.Objects() {
				if got := mine.Object(o.Key); got == nil || got.Version != o.Version || string(got.Raw) != string(o.Raw) {
					t.Errorf("%s is not as it is", o.Key)
				}
			}
			s := f.Status()
			if got := mine.Status().Objects; got != n-1 || s.Resyncs != 1 || s.Lists.Total() != test.lists ||
				s.Mismatches != test.lists {
				t.Errorf("%d objects, %+v", got, s)
			}
			if got := read.Load(); !test.otherwise && got > 6*n+2*1500 {
				t.Errorf("%d bytes for two objects of %d", got, n)
			}
			change(t, from, large(t, "s0", 2001, "three"))
			eventually(t, "a change behind it", func() bool { return mine.Status().Version == 2001 })
		})
	}
}

// TestDeltaIsNotKnown: a server that does not know the form answers in another one that is asked for.
func TestDeltaIsNotKnown(t *testing.T) {
	from, mine := newRelay(t), newRelay(t)
	if err := from.Replace(10, []*wire.Object{slice(t, "x", 5)}); err != nil {
		t.Fatal(err)
	}
	up := serve(t, "an older leader", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		req.Header.Set("Accept", "application/vnd.kubernetes.protobuf")
		(&rest.Handler{Source: from}).ServeHTTP(w, req)
	}))
	up.Progress, up.Delta = true, true
	feed(t, mine).Use(up)
	put(t, from, "y", 11)
	eventually(t, "a change", func() bool { return mine.Status().Version == 11 && mine.Status().Objects == 2 })
}
