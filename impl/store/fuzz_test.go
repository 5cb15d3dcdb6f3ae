package store

import (
	"bytes"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/store/table"
)

// FuzzRecords: nothing that stands on a disk makes a reader panic, and what it takes, it writes and reads again.
func FuzzRecords(f *testing.F) {
	full := fact{condition: gone, epoch: 3, version: 1 << 40, uid: "u", kind: podKind, raw: []byte("raw")}
	f.Add(full.encode(), kubelet().encode())
	c := newCollection(kubelet())
	c.complete, c.version, c.count, c.sum, c.asked = true, 5, 7, 9, time.Unix(5, 0)
	f.Add(c.encode(), c.key)
	f.Add([]byte{2, 1, 'a', 1, 'b'}, "\x00")
	f.Fuzz(func(t *testing.T, b []byte, key string) {
		if v, err := parseFact(b); err == nil {
			again, err := parseFact(v.encode())
			if err != nil || again.condition != v.condition || again.version != v.version || again.uid != v.uid ||
				again.kind != v.kind || !bytes.Equal(again.raw, v.raw) {
				t.Fatalf("%+v, read again %+v: %v", v, again, err)
			}
		}
		if c, err := parseCollection(key, b); err == nil {
			c.watches = 0
			if c.watched {
				c.watches = 1
			}
			again, err := parseCollection(c.key, c.encode())
			if err != nil || again.Shape != c.Shape || again.version != c.version || again.sum != c.sum ||
				again.complete != c.complete || again.watched != c.watched {
				t.Fatalf("%+v, read again %+v: %v", c, again, err)
			}
		}
		if d, err := parseDocument(b); err == nil && len(d.Body) > len(b) {
			t.Fatal("a document from nowhere")
		}
		if payload, ok := table.Decode(table.Objects, key, b); ok &&
			string(table.Encode(table.Objects, key, payload)) != string(b) {
			t.Fatal("a row is another when it is written again")
		}
		_, _, _ = (Shape{Fields: key, Labels: ""}).scope()
		if name := ComponentOf(key, key, key); name == "" || bytes.IndexByte([]byte(name), 0) >= 0 {
			t.Fatalf("component %q", name)
		}
	})
}
