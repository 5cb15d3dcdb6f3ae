package install

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// joinedWorld is a node that has joined, and what it was before.
func joinedWorld(t *testing.T) (w *world, before map[string]string) {
	t.Helper()
	w = newWorld(t)
	before = w.snapshot()
	check(t, w.installer(nil).Join(t.Context()))
	return w, before
}

// release lets the installer bring another hub.
func (w *world) release(text string) func(*Config) {
	w.write("/opt/weir-hub-2", text)
	check(w.t, chmod(w.root+"/opt/weir-hub-2"))
	return func(c *Config) { c.Hub, c.Timeout = w.root+"/opt/weir-hub-2", 10*time.Second }
}

// TestUpgrade: another hub is tried, proves itself, and counts; the former one is gone. The kubelet is not started anew. Leaving takes all away.
func TestUpgrade(t *testing.T) {
	w, before := joinedWorld(t)
	second := w.release("another program")
	w.commands = nil
	check(t, w.installer(second).Join(t.Context()))
	if w.hub.program != "another program" || !w.hasAPI() || slices.Contains(w.commands, "restart "+kubeletService) {
		t.Errorf("the hub is %q, API %v, after %v", w.hub.program, w.hasAPI(), w.commands)
	}
	if w.said["status"] != "True" || w.said["reason"] != ReasonUpgraded {
		t.Errorf("the condition is %v", w.said)
	}
	i := w.installer(second)
	program := programOf([]byte("another program"))
	if left := i.Host.others(program); len(left) > 0 || !i.Host.leads(program) || i.Host.there(hubTrial) {
		t.Errorf("beside the program: %v; trial %v", left, i.Host.there(hubTrial))
	}
	if w.boot(); w.hub == nil || w.hub.program != "another program" {
		t.Errorf("after a restart of the machine: %+v", w.hub)
	}
	w.commands = nil
	check(t, w.installer(second).Join(t.Context()))
	if slices.Contains(w.commands, "restart "+hubService) {
		t.Errorf("the same once more: %v", w.commands)
	}
	check(t, w.installer(nil).Leave(t.Context()))
	if diff := differ(before, w.snapshot()); !slices.Equal(diff, []string{"+ /opt/weir-hub-2"}) {
		t.Errorf("leaves %v", diff)
	}
}

// TestUpgradeUndone: a hub that does not prove itself is taken off, and the former one goes on.
func TestUpgradeUndone(t *testing.T) {
	for text, want := range map[string]string{"a broken program": "weir-hub.service failed", "an unready program": "not synced yet"} {
		t.Run(text, func(t *testing.T) {
			w, _ := joinedWorld(t)
			after := w.snapshot()
			second := w.release(text)
			err := w.installer(func(c *Config) { second(c); c.Timeout = 200 * time.Millisecond }).Join(t.Context())
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "the former hub goes on") {
				t.Errorf("%v: does not say %q", err, want)
			}
			if w.hub == nil || w.hub.program != "a program" || !w.hasAPI() {
				t.Errorf("hub %+v, API %v", w.hub, w.hasAPI())
			}
			if diff := slices.DeleteFunc(differ(after, w.snapshot()), func(s string) bool { return s == "+ /opt/weir-hub-2" || strings.Contains(s, authority) }); len(diff) > 0 {
				t.Errorf("left is %v", diff)
			}
			if last := w.events[len(w.events)-1]; w.said["status"] != "True" || w.said["reason"] != ReasonUpgradeUndone || !strings.Contains(last, want) {
				t.Errorf("condition %v, Event %s", w.said, last)
			}
		})
	}
}

// TestUpgradeCut cuts an upgrade off after each change: by a kill, and by the power of the machine. After the power was gone a hub runs that has proved itself, and the next call
// finishes.
func TestUpgradeCut(t *testing.T) {
	for _, power := range []bool{false, true} {
		t.Run(fmt.Sprintf("power=%v", power), func(t *testing.T) {
			t.Parallel()
			w, before := joinedWorld(t)
			cuts := 0
			for n := 1; ; n++ {
				second := w.release(fmt.Sprintf("program %d", n))
				was := w.hub.program
				after, err := w.until(n, func(i *Installer) error { second(&i.Config); return i.Join(t.Context()) })
				if after == "" {
					check(t, err)
					break
				}
				cuts++
				w.survives(after, power)
				want := was // until it has proved itself
				if slices.Contains(w.changes, "led "+hubProgram) {
					want = fmt.Sprintf("program %d", n)
				}
				if power && (w.hub == nil || w.hub.program != want) {
					t.Fatalf("without power after %q: hub %+v, not %q", after, w.hub, want)
				}
				if err := w.installer(second).Join(t.Context()); err != nil {
					t.Fatalf("join after a cut after %q: %v", after, err)
				}
				if s, err := w.installer(second).Status(t.Context()); err != nil || !s.Well() || w.hub.program != fmt.Sprintf("program %d", n) {
					t.Fatalf("join after a cut after %q: %+v, %v, %q", after, s, err, w.hub.program)
				}
			}
			if cuts < 8 {
				t.Errorf("%d cuts: changes are not told any more", cuts)
			}
			check(t, w.installer(nil).Leave(t.Context()))
			if diff := differ(before, w.snapshot()); !slices.Equal(diff, []string{"+ /opt/weir-hub-2"}) {
				t.Errorf("leaves %v", diff)
			}
		})
	}
}
