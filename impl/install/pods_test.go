package install

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/nodelocal"
)

// calls writes what the hub keeps of pods that call it.
func (w *world) calls(names ...string) {
	w.t.Helper()
	var all []nodelocal.Pod
	for _, n := range names {
		all = append(all, nodelocal.Pod{Namespace: "default", Name: n, UID: "uid-" + n})
	}
	text, err := json.Marshal(map[string]any{"version": 1, "pods": all})
	check(w.t, err)
	w.write(hubData+"/"+nodelocal.CallersFile, string(text))
}

// TestPods: a node that joins has the address at which its pods reach their hub, and its hub is told it. When it
// leaves, pods that call the hub restart while it is there, all others are left alone, and those are named that may
// call later. Neither the address nor anything else is left.
func TestPods(t *testing.T) {
	w := newWorld(t)
	before := w.snapshot()
	var said bytes.Buffer
	i := w.installer(func(c *Config) { c.Out = &said })
	check(t, i.Join(t.Context()))
	joined := w.snapshot()
	if w.address != contract.PodsAddress ||
		!strings.Contains(joined[hubConfig], "pods-address: "+contract.PodsAddress+"\n") {
		t.Errorf("address %q, the hub's configuration:\n%s", w.address, joined[hubConfig])
	}
	check(t, w.installer(nil).Join(t.Context()))
	if diff := differ(joined, w.snapshot()); len(diff) > 0 {
		t.Errorf("the second join changed %v", diff)
	}
	w.boot()
	if w.address != contract.PodsAddress {
		t.Error("a machine that starts anew does not have the address")
	}
	old, now := time.Now().Add(-time.Hour), time.Now().Add(time.Second)
	w.mu.Lock()
	w.pods = map[string]*running{
		"caller":    {since: now, owner: "ReplicaSet", token: true, ends: 3},
		"old":       {since: old, owner: "DaemonSet", token: true},
		"silent":    {since: now, owner: "ReplicaSet", token: true},
		"tokenless": {since: now, owner: "ReplicaSet"},
	}
	w.mu.Unlock()
	w.calls("caller", "gone-long-ago")
	said.Reset()
	check(t, i.Leave(t.Context()))
	if left := slices.Sorted(maps.Keys(w.pods)); !slices.Equal(left, []string{"old", "silent", "tokenless"}) {
		t.Errorf("pods that were left alone: %v", left)
	}
	if text := said.String(); !strings.Contains(text, "call the API later: default/silent\n") ||
		!strings.Contains(text, "their address of before: default/caller\n") {
		t.Errorf("it says:\n%s", text)
	}
	if diff := differ(before, w.snapshot()); len(diff) > 0 {
		t.Errorf("join and leave changed %v", diff)
	}
}

// TestHeld: a node with a pod that calls the hub and that nothing would restart does not leave, and nothing of it is
// changed; unless the pod ends, or its owner gives it up.
func TestHeld(t *testing.T) {
	for name, owner := range map[string]string{"bare": "", "of a Job": "Job", "static": "Node"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			before := w.snapshot()
			check(t, w.installer(nil).Join(t.Context()))
			w.calls("worker")
			w.mu.Lock()
			w.pods["worker"] = &running{since: time.Now(), owner: owner, token: true}
			w.mu.Unlock()
			joined := w.snapshot()
			err := w.installer(func(c *Config) { c.Timeout = 200 * time.Millisecond }).Leave(t.Context())
			if err == nil || !strings.Contains(err.Error(), "default/worker") ||
				!strings.Contains(err.Error(), "--abandon-pods") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v", err)
			}
			if diff := differ(joined, w.snapshot()); len(diff) > 0 || w.hub == nil || w.pods["worker"] == nil {
				t.Errorf("changed %v, hub %v, pods %v", diff, w.hub, w.pods)
			}
			abandon := owner == "Job"
			if !abandon {
				w.mu.Lock()
				w.pods["worker"].gone, w.pods["worker"].ends = true, 3
				w.mu.Unlock()
			}
			check(t, w.installer(func(c *Config) { c.Abandon = abandon }).Leave(t.Context()))
			if diff := differ(before, w.snapshot()); len(diff) > 0 || abandon != (w.pods["worker"] != nil) {
				t.Errorf("changed %v, pods %v", diff, w.pods)
			}
		})
	}
}

// TestPodsAreLeftAlone: without the flag, and where pods could not reach the address, a node joins and leaves without
// it.
func TestPodsAreLeftAlone(t *testing.T) {
	for name, change := range map[string]func(*world, *Config){
		"by the flag": func(_ *world, c *Config) { c.Pods = false },
		"over IPv6":   func(w *world, _ *Config) { w.six = true },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			before := w.snapshot()
			i := w.installer(nil)
			change(w, &i.Config)
			check(t, i.Join(t.Context()))
			if config := w.snapshot()[hubConfig]; w.address != "" || strings.Contains(config, "pods-address") {
				t.Errorf("address %q, %s", w.address, config)
			}
			check(t, w.installer(nil).Join(t.Context())) // what was begun counts
			w.noIP = true
			check(t, w.installer(nil).Leave(t.Context()))
			if diff := differ(before, w.snapshot()); len(diff) > 0 {
				t.Errorf("changed %v", diff)
			}
		})
	}
}
