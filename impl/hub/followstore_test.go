package hub

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestServicesFollowFromStore: a client whose slices are in no relay is shown moved pods from the store of its hub. Its
// hub finds the cloud again before that of the pod: the client stays with the store until the cloud may know.
func TestServicesFollowFromStore(t *testing.T) {
	shared := []string{twoResources[0]}
	p, links := newPoolOf(t, shared, "edge-1", "edge-2"), map[string]*cut{}
	cloud, pods := p.clouds[0], newFakePods(t)
	for n, h := range p.hubs {
		links[n] = newCut(t, strings.TrimPrefix(cloud.url(), "https://"))
		h.config.CloudServers, h.config.PoolScopeResources = []string{links[n].url()}, shared
		h.config.ReturnSpread, h.config.StoreEvery = 50*time.Millisecond, 10*time.Millisecond
	}
	cloud.set(func() { cloud.pods = pods })
	ready := []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pods.wrote("web", corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", Conditions: ready})
	first := cloud.slice("10.0.0.1")
	p.start("edge-1", "edge-2")
	eventually(t, "a leader", func() bool { return p.settled("edge-1", "edge-2") != "" })
	kubelet, near, far := p.ofNode("edge-1"), p.hubs["edge-1"], p.hubs["edge-2"]
	for _, path := range []string{podsOfNode, podPath + "web"} {
		get(t, kubelet, near.url()+path, "User-Agent", "kubelet/v1")
	}
	near.kept(1)
	_, _, at := p.address("edge-2")
	p.sees("edge-2", at)
	far.kept(1)
	for n, l := range links {
		l.set(true)
		p.hubs[n].away()
	}
	open := p.sees("edge-2", at)
	near.moves(kubelet)
	eventually(t, "an open watch of the store to show it", func() bool { return open.has(" 10.0.0.9") })

	links["edge-2"].set(false)
	far.here()
	a, v, l := p.address("edge-2")
	if a != "10.0.0.9" || l != at || versionOf(v) >= versionOf(first) {
		t.Errorf("before the cloud knows, a list has %s with version %s at %s", a, v, l)
	}
	links["edge-1"].set(false)
	eventually(t, "the cloud to hear of it", func() bool {
		pods.mu.Lock()
		defer pods.mu.Unlock()
		return pods.pods["web"].Status.PodIP == "10.0.0.9"
	})
	last := cloud.slice("10.0.0.9")
	eventually(t, "the client to be sent to the cloud", func() bool {
		held, _ := far.hub.overlay.Holds()
		return !held
	})
	back := p.sees("edge-2", at)
	eventually(t, "what the cloud has", func() bool { return back.has(last + " 10.0.0.9") })
	want := "MODIFIED " + first + " 10.0.0.1, BOOKMARK " + at + " -, MODIFIED " + last + " 10.0.0.9"
	if got := strings.Join(back.all(), ", "); got != want {
		t.Errorf("a watch that comes back is shown %s, want %s", got, want)
	}
	if a, v, _ := p.address("edge-2"); a != "10.0.0.9" || v != last {
		t.Errorf("with the cloud, a list has %s with version %s", a, v)
	}
}
