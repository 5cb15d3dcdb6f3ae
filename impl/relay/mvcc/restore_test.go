package mvcc

import (
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// TestRestorationIsStrict: what nobody can have exported is refused.
func TestRestorationIsStrict(t *testing.T) {
	restoration := func() *Restoration { return NewRestoration(wire.Protobuf, 10, 1<<20, time.Now(), func(*wire.Object) {}) }
	o := func(key string, version uint64) *wire.Object { return &wire.Object{Key: key, Version: version} }
	batched := func(kind ChangeKind, obj *wire.Object, version uint64) Change {
		return Change{kind, version, obj, 10, 20}
	}
	tests := map[string][]Change{
		"behind":               {{Put, 9, o("ns/b", 9), 0, 0}},
		"the same version":     {{Put, 10, o("ns/b", 10), 0, 0}},
		"deleted and not here": {{Delete, 11, o("ns/b", 11), 0, 0}},
		"no object":            {{Put, 11, nil, 0, 0}},
		"no kind":              {{0, 11, o("ns/b", 11), 0, 0}},
		"reached with object":  {{Reached, 11, o("ns/b", 11), 0, 0}},
		"batch of the past":    {{Put, 11, o("ns/b", 11), 0, 0}, batched(Put, o("ns/c", 12), 12)},
		"batch beyond its end": {batched(Put, o("ns/b", 21), 21)},
		"batch back":           {batched(Put, o("ns/b", 15), 15), batched(Put, o("ns/c", 14), 14)},
		"batch ends elsewhere": {batched(Reached, nil, 19)},
		"batch and another":    {batched(Put, o("ns/b", 15), 15), {Put, 16, o("ns/c", 16), 10, 21}},
		"batch and none":       {batched(Put, o("ns/b", 15), 15), {Put, 16, o("ns/c", 16), 0, 0}},
	}
	for name, changes := range tests {
		t.Run(name, func(t *testing.T) {
			x := restoration()
			if err := x.Add(o("ns/a", 5)); err != nil {
				t.Fatal(err)
			}
			var err error
			for _, c := range changes {
				err = x.Apply(c)
			}
			if err == nil {
				t.Error("it is taken")
			}
		})
	}
	x := restoration()
	if err := x.Add(o("ns/a", 5)); err != nil {
		t.Fatal(err)
	}
	if err := x.Add(o("ns/a", 6)); err == nil {
		t.Error("an object twice is taken")
	}
}
