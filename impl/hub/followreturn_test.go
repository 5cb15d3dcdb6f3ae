package hub

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// TestReturnAsksNothing: when the cloud is back, all that a moved pod costs the uplink is its status, once. No list and
// no object is read for it, and clients of relays and of the store go on where they were.
func TestReturnAsksNothing(t *testing.T) {
	for name, shared := range map[string][]string{
		"slices of a relay": twoResources, "slices of the store": twoResources[:1],
	} {
		t.Run(name, func(t *testing.T) { returnsFrom(t, shared) })
	}
}

// beforeAPush begins the query of the read that comes before a status is pushed.
const beforeAPush = "fieldSelector=metadata.name%3Dweb%2Cspec.nodeName"

func returnsFrom(t *testing.T, shared []string) {
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
	cloud.slice("10.0.0.1")
	p.start("edge-1", "edge-2")
	eventually(t, "a leader", func() bool { return p.settled("edge-1", "edge-2") != "" })
	kubelet, near, far := p.ofNode("edge-1"), p.hubs["edge-1"], p.hubs["edge-2"]
	for _, path := range []string{podsOfNode, podPath + "web"} {
		get(t, kubelet, near.url()+path, "User-Agent", "kubelet/v1")
	}
	near.kept(1)
	shown := p.informs("edge-2")
	eventually(t, "the informer to have the slice", func() bool { return shown() == "10.0.0.1" })
	if len(shared) < len(twoResources) {
		far.kept(1)
	}
	for n, l := range links {
		l.set(true)
		p.hubs[n].away()
	}
	near.moves(kubelet)
	eventually(t, "the informer to show it", func() bool { return shown() == "10.0.0.9" })

	lists := map[string]int{}
	cloud.set(func() {
		cloud.seen = nil
		for user, n := range cloud.lists {
			lists[user] = n
		}
	})
	for _, l := range links {
		l.set(false)
	}
	eventually(t, "the cloud to hear of it", func() bool {
		pods.mu.Lock()
		defer pods.mu.Unlock()
		return pods.pods["web"].Status.PodIP == "10.0.0.9"
	})
	cloud.slice("10.0.0.9")
	for _, h := range p.hubs {
		eventually(t, "nothing to be corrected", func() bool {
			held, _ := h.hub.overlay.Holds()
			return !held && testutil.ToFloat64(h.hub.overlay.Collectors()[1]) == 0
		})
	}
	cloud.slice("10.0.0.7")
	eventually(t, "the informer to go on with the cloud", func() bool { return shown() == "10.0.0.7" })
	cloud.set(func() {
		for user, n := range cloud.lists {
			if strings.HasPrefix(user, "system:node:") { // the lists of this test, which ask for nothing else
				continue
			}
			if n != lists[user] {
				t.Errorf("%s listed %d times after the return", user, n-lists[user])
			}
		}
		reads, statuses := 0, 0
		for _, s := range cloud.seen {
			switch {
			case s.path == podPath+"web/status":
				statuses++
			case s.user == "system:node:edge-1" && strings.HasPrefix(s.query, beforeAPush):
				reads++
			case !usual(s):
				t.Errorf("after the return: %s %s %s?%s", s.user, s.method, s.path, s.query)
			}
		}
		if reads != 1 || statuses != 1 {
			t.Errorf("the pod was read %d times, and its status written %d times", reads, statuses)
		}
	})
}

// usual reports whether a hub that comes back sends a request, whether pods have moved or not: it is about nothing that
// is corrected, a watch that goes on, or one of the leader's questions whether that is the history that it knows.
func usual(s seen) bool {
	for _, about := range []string{"/endpointslices", "/endpoints", "/pods", "/services"} {
		if !strings.Contains(s.path, about) {
			continue
		}
		q, err := url.ParseQuery(s.query)
		asks := strings.HasPrefix(s.user, "weir:hub:") &&
			(q.Get("limit") == "1" || strings.HasPrefix(q.Get("fieldSelector"), "metadata.name="))
		return err == nil && s.method == http.MethodGet &&
			(q.Has("watch") && q.Get("sendInitialEvents") == "" || asks)
	}
	return true
}

// informs runs an informer of slices on a node, and returns what tells where it leads for the pod.
func (p *poolBed) informs(node string) (shown func() string) {
	p.t.Helper()
	client, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: p.hubs[node].url(), QPS: -1}, p.ofNode(node))
	check(p.t, err)
	ctx, cancel := context.WithCancel(p.t.Context())
	all := informers.NewSharedInformerFactory(client, 0)
	lister := all.Discovery().V1().EndpointSlices().Informer()
	all.StartWithContext(ctx)
	p.t.Cleanup(func() { cancel(); all.Shutdown() })
	if !cache.WaitForCacheSync(ctx.Done(), lister.HasSynced) {
		p.t.Fatal("the informer has no list")
	}
	return func() string {
		var at []string
		for _, o := range lister.GetStore().List() {
			for _, e := range o.(*discoveryv1.EndpointSlice).Endpoints {
				at = append(at, e.Addresses...)
			}
		}
		slices.Sort(at)
		return strings.Join(at, " ")
	}
}
