package client

import (
	"testing"
	"time"
)

func TestReached(t *testing.T) {
	r := &Recording{}
	if _, ok := r.Reached(0, time.Time{}); ok {
		t.Error("an empty recording has reached something")
	}
	r.add(Op{What: OpList, Version: 5})
	before := time.Now()
	r.add(Op{What: OpOpen, Version: 5})
	r.add(Op{What: OpEvent, Version: 7, Item: Item{Version: 7}})
	r.add(Op{What: OpBookmark, Version: 9})
	ops := r.Ops()
	for _, test := range []struct {
		version uint64
		at      time.Time
		ok      bool
	}{{6, ops[2].At, true}, {7, ops[2].At, true}, {8, ops[3].At, true}, {10, time.Time{}, false}} {
		if at, ok := r.Reached(test.version, before); ok != test.ok || ok && !at.Equal(test.at) {
			t.Errorf("version %d reached at %v, %v; want %v, %v", test.version, at, ok, test.at, test.ok)
		}
	}
	if _, ok := r.Reached(3, time.Now()); ok {
		t.Error("something was shown after the end")
	}
}

func TestOpened(t *testing.T) {
	r := &Recording{}
	for _, test := range []struct {
		op   Op
		open bool
	}{
		{Op{What: OpOpen, Initial: true}, true},
		{Op{What: OpInitialEnd, Version: 5}, true},
		{Op{What: OpClose}, false},
		{Op{What: OpOpen, Version: 5}, true},
		{Op{What: OpError, Code: 410}, false},
		{Op{What: OpList, Version: 8}, true},
	} {
		r.add(test.op)
		if at, open := r.Opened(); open != test.open || at.IsZero() {
			t.Errorf("after %v: opened at %v, and still is: %v, want %v", test.op, at, open, test.open)
		}
	}
}
