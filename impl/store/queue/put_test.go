package queue

import (
	"errors"
	"fmt"
	"testing"
)

// TestPutAfter: a write that was made from an entry is valid only while that entry is as it was. Else what others
// changed in the cloud would be undone.
func TestPutAfter(t *testing.T) {
	q := open(t, flash(1))
	write := func(v string) Write { return Write{Target: node(), Base: status("base"), Ours: status(v)} }
	seen := func() *Entry {
		e, _ := q.Lookup(node())
		return e
	}
	moved := func(what, v string, from *Entry) {
		t.Helper()
		before := seen()
		if err := q.PutAfter(write(v), from); !errors.Is(err, ErrMoved) {
			t.Errorf("%s: %v", what, err)
		}
		if seen() != before {
			t.Errorf("%s: it was taken", what)
		}
	}
	check(t, q.PutAfter(write("1"), nil))
	first := seen()
	moved("made when nothing waited", "2", nil)
	check(t, q.PutAfter(write("3"), first))
	moved("made from what was written again", "4", first)
	c := newCloud(t)
	c.add(node())
	last := seen()
	check(t, q.Drain(t.Context(), c))
	moved("made from what was pushed", "5", last)
	check(t, q.PutAfter(write("6"), nil))
}

// TestBounds: what waits is bounded, and a write that finds no room changes nothing.
func TestBounds(t *testing.T) {
	const room = 4 << 10
	q, err := Open(Config{Disk: flash(1), Logger: quiet, MaxBytes: room})
	check(t, err)
	for i := 0; ; i++ {
		if i > room {
			t.Fatal("it takes without bound")
		}
		before := q.Stats()
		err := q.Put(Write{Target: pod(i), Ours: status(fmt.Sprint(i))})
		s := q.Stats()
		if s.Bytes > room {
			t.Fatalf("%d bytes wait, want at most %d", s.Bytes, room)
		}
		if err == nil {
			continue
		}
		if !errors.Is(err, ErrFull) || s.Entries != before.Entries || s.Entries == 0 {
			t.Errorf("%v, %d entries, %d before", err, s.Entries, before.Entries)
		}
		return
	}
}

// TestBaseOfTheFirstWrite: what is pushed is the change from what the cloud had before the first write, whatever was
// written since. What others changed meanwhile stays.
func TestBaseOfTheFirstWrite(t *testing.T) {
	q := open(t, flash(1))
	c := newCloud(t)
	o := c.add(node())
	check(t, q.Put(Write{Target: node(), Base: []byte(`{"a":"","b":""}`), Ours: []byte(`{"a":"1","b":""}`)}))
	check(t, q.Put(Write{Target: node(), Base: []byte(`{"a":"1","b":""}`), Ours: []byte(`{"a":"2","b":""}`)}))
	c.touch(node(), "b", "theirs")
	check(t, q.Drain(t.Context(), c))
	if o.Status["a"] != "2" || o.Status["b"] != "theirs" {
		t.Errorf("the cloud has %v", o.Status)
	}
}

// TestNodeFirst: what is about the node goes first, then its pods, then Events, whichever was written first.
func TestNodeFirst(t *testing.T) {
	q, c := open(t, flash(1)), newCloud(t)
	c.add(node())
	c.add(pod(1))
	check(t, q.Put(Write{Target: eventOf(1), Ours: []byte(`{"count":1}`)}))
	check(t, q.Put(Write{Target: pod(1), Base: status(""), Ours: status("wpod")}))
	check(t, q.Put(Write{Target: node(), Base: status(""), Ours: status("wnode")}))
	check(t, q.Drain(t.Context(), c))
	if got, want := fmt.Sprint(c.pushed), "[wnode wpod e1]"; got != want {
		t.Errorf("pushed %s, want %s", got, want)
	}
}

// TestBackWhileItIsSent: a value that goes back to what it was, while the push of what it had been is under way, is
// pushed: the cloud has the one in between.
func TestBackWhileItIsSent(t *testing.T) {
	q, c := open(t, flash(1)), newCloud(t)
	o := c.add(node())
	check(t, q.Put(Write{Target: node(), Base: []byte(`{"a":""}`), Ours: []byte(`{"a":"1"}`)}))
	c.after = func() error {
		c.after = func() error { return nil }
		return q.Put(Write{Target: node(), Ours: []byte(`{"a":""}`)})
	}
	check(t, q.Drain(t.Context(), c))
	if o.Status["a"] != "" || q.Len() != 0 {
		t.Errorf("the cloud has %v, %d entries wait", o.Status, q.Len())
	}
}
