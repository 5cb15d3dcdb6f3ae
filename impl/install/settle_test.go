package install

import (
	"strings"
	"testing"
)

// TestSettle: a node comes into the pool that is asked for, from another one too, and out of all; each may be asked for again.
func TestSettle(t *testing.T) {
	w := newWorld(t)
	before := w.snapshot()
	settle := func(pool string) error {
		return w.installer(func(c *Config) { c.Pool = pool }).Settle(t.Context())
	}
	for range 2 {
		check(t, settle(""))
		if diff := differ(before, w.snapshot()); len(diff) > 0 {
			t.Errorf("a node that was in no pool leaves it, and %v is changed", diff)
		}
	}
	for range 2 {
		check(t, settle("harbour"))
		if s, err := w.installer(nil).Status(t.Context()); err != nil || !s.Well() || s.Pool != "harbour" {
			t.Errorf("%+v, %v", s, err)
		}
	}
	// It leaves the one pool before it comes into the other, which fails here.
	if err := settle("buoy"); err == nil || !strings.Contains(err.Error(), "is in pool harbour, and --pool is buoy") {
		t.Errorf("%v", err)
	}
	if diff := differ(before, w.snapshot()); len(diff) > 0 || !w.hasAPI() {
		t.Errorf("between two pools %v is changed; API: %v", diff, w.hasAPI())
	}
	check(t, settle("harbour"))
	check(t, settle(""))
	if diff := differ(before, w.snapshot()); len(diff) > 0 || !w.hasAPI() {
		t.Errorf("%v is changed; API: %v", diff, w.hasAPI())
	}
}
