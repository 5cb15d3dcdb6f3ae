package install

import (
	"os"
	"strings"
	"testing"
)

// TestSettle: a node comes into the pool that is asked for, from another one too, and out of all; each may be asked for
// again.
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

// TestSettleImages: the Jobs of weir-manager say nothing about the mirror. A node gets it with its first one, keeps it
// when another hub comes, and goes without where a person said so.
func TestSettleImages(t *testing.T) {
	w := newWorld(t)
	check(t, w.installer(nil).Settle(t.Context()))
	w.imagesAre(true, "")
	check(t, w.installer(w.release("another program")).Settle(t.Context()))
	w.imagesAre(true, "")
	second := w.release("another program")
	check(t, w.installer(func(c *Config) { second(c); refuse(c) }).Join(t.Context()))
	check(t, w.installer(second).Settle(t.Context()))
	w.imagesAre(false, "--images=false")
}

// TestAnotherVersion: a journal that another version of Weir wrote is understood by no verb, and nothing is changed:
// join and leave say which version they want.
func TestAnotherVersion(t *testing.T) {
	w := newWorld(t)
	check(t, w.installer(nil).Join(t.Context()))
	text, err := os.ReadFile(w.installer(nil).Host.at(journalFile))
	check(t, err)
	newer := strings.Replace(string(text), `"version": 1`, `"version": 2`, 1)
	w.write(journalFile, newer)
	before := w.snapshot()
	for verb, do := range map[string]func(*Installer) error{
		"join": func(i *Installer) error {
			return i.Join(t.Context())
		}, "leave": func(i *Installer) error { return i.Leave(t.Context()) },
		"status": func(i *Installer) error { _, err := i.Status(t.Context()); return err },
	} {
		if err := do(w.installer(nil)); err == nil ||
			!strings.Contains(err.Error(), "version 2: want 1; use the weir that wrote it") {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if diff := differ(before, w.snapshot()); newer == string(text) || len(diff) > 0 || !w.hasAPI() {
		t.Errorf("%v is changed; API: %v", diff, w.hasAPI())
	}
}
