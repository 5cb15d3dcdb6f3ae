package mvcc

import (
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// TestRestorationIsStrict: what nobody can have exported is refused.
func TestRestorationIsStrict(t *testing.T) {
	restoration := func() *Restoration {
		return NewRestoration(wire.Protobuf, 10, 1<<20, time.Now(), func(*wire.Object) {})
	}
	o := func(key string, version uint64) *wire.Object { return &wire.Object{Key: key, Version: version} }
	put := func(key string, version uint64, b *Batch) *Event {
		return &Event{Version: version, Cur: o(key, version), Batch: b}
	}
	batch := &Batch{From: 10, To: 20}
	tests := map[string][]*Event{
		"behind":               {put("ns/b", 9, nil)},
		"the same version":     {put("ns/b", 10, nil)},
		"deleted and not here": {{Version: 11, Cur: o("ns/b", 11), Deleted: true}},
		"batch of the past":    {put("ns/b", 11, nil), put("ns/c", 12, batch)},
		"batch beyond its end": {put("ns/b", 21, batch)},
		"batch back":           {put("ns/b", 15, batch), put("ns/c", 14, batch)},
		"batch ends elsewhere": {{Version: 19, Batch: batch}},
		"batch and another":    {put("ns/b", 15, batch), put("ns/c", 16, &Batch{From: 10, To: 21})},
		"batch and none":       {put("ns/b", 15, batch), put("ns/c", 16, nil)},
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
