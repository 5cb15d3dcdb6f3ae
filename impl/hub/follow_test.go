package hub

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// slice has the cloud say where a pod of edge-1 is.
func (c *fakeCloud) slice(address string) (version string) {
	c.mu.Lock()
	c.version++
	v := c.version
	c.mu.Unlock()
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web", UID: "slice", ResourceVersion: strconv.FormatUint(v, 10),
			Labels: map[string]string{"kubernetes.io/service-name": "web"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{address}, NodeName: ptr.To("edge-1"),
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", UID: "web"},
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true)},
		}},
	}
	raw, err := s.Marshal()
	check(c.t, err)
	o, err := wire.ParseObject(wire.Protobuf, raw)
	check(c.t, err)
	frame := wire.AppendProtobufFrame(nil, wire.Modified, wire.Kind{
		APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice",
	}, raw)
	check(c.t, c.relays["endpointslices"].Apply(&wire.Event{Type: wire.Modified, Version: v, Object: o, Frame: frame}))
	return s.ResourceVersion
}

func versionOf(version string) uint64 {
	n, _ := strconv.ParseUint(version, 10, 64)
	return n
}

// seeing is a client's watch of slices: what it was shown, in order, as "TYPE version address".
type seeing struct {
	mu   sync.Mutex
	said []string
}

func (s *seeing) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.said...)
}

// has reports whether an event came that ends so.
func (s *seeing) has(end string) bool {
	for _, x := range s.all() {
		if strings.HasSuffix(x, end) {
			return true
		}
	}
	return false
}

// sees opens a watch.
func (p *poolBed) sees(node, version string) *seeing {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		p.hubs[node].url()+slicesPath+"?watch=1&allowWatchBookmarks=true&resourceVersion="+version, nil)
	check(p.t, err)
	resp, err := p.ofNode(node).Do(req)
	check(p.t, err)
	if resp.StatusCode != http.StatusOK {
		p.t.Fatal(resp.Status)
	}
	s := &seeing{}
	var reads sync.WaitGroup
	reads.Go(func() {
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			var ev struct {
				Type   string
				Object discoveryv1.EndpointSlice
			}
			if json.Unmarshal(lines.Bytes(), &ev) != nil {
				return
			}
			address := "-"
			if len(ev.Object.Endpoints) > 0 {
				address = ev.Object.Endpoints[0].Addresses[0]
			}
			s.mu.Lock()
			s.said = append(s.said, fmt.Sprintf("%s %s %s", ev.Type, ev.Object.ResourceVersion, address))
			s.mu.Unlock()
		}
	})
	p.t.Cleanup(func() { cancel(); reads.Wait(); resp.Body.Close() })
	return s
}

// ofNode is a client that proves to be a node.
func (p *poolBed) ofNode(node string) *http.Client {
	cert := p.ca.tls("system:node:"+node, "system:nodes")
	return p.hubs[node].client(&cert)
}

// address is that of the pod in a list, with the versions of the slice and of the list.
func (p *poolBed) address(node string) (address, version, at string) {
	p.t.Helper()
	_, body := get(p.t, p.ofNode(node), p.hubs[node].url()+slicesPath)
	var l discoveryv1.EndpointSliceList
	if json.Unmarshal([]byte(body), &l) != nil || len(l.Items) != 1 || len(l.Items[0].Endpoints) != 1 {
		return "", "", ""
	}
	return l.Items[0].Endpoints[0].Addresses[0], l.Items[0].ResourceVersion, l.ResourceVersion
}

// TestServicesFollow: a pod that has another address while the cloud is away has it at all hubs of the pool, in open
// watches and in lists, until the cloud has heard of it. Nobody is shown the former address again.
func TestServicesFollow(t *testing.T) {
	t.Run("with a coordinator", func(t *testing.T) {
		p, links := newPoolBed(t, "edge-1", "edge-2"), map[string]*cut{}
		for n, h := range p.hubs {
			links[n] = newCut(t, strings.TrimPrefix(p.clouds[0].url(), "https://"))
			h.config.CloudServers = []string{links[n].url()}
		}
		follows(p, links, func() {
			eventually(t, "a leader", func() bool { return p.settled("edge-1", "edge-2") != "" })
		})
	})
	t.Run("without one", func(t *testing.T) {
		p := newNamedBed(t, "edge-1", "edge-2")
		follows(p.poolBed, p.links, func() {
			p.name("edge-2")
			p.reads([]string{"edge-1"}, "edge-2")
		})
	})
}

func follows(p *poolBed, links map[string]*cut, settle func()) {
	t, cloud := p.t, p.clouds[0]
	t.Helper()
	pods := newFakePods(p.t.(*testing.T))
	cloud.set(func() { cloud.pods = pods })
	ready := []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pods.wrote("web", corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", Conditions: ready})
	first := cloud.slice("10.0.0.1")
	for _, h := range p.hubs {
		h.config.ReturnSpread, h.config.StoreEvery = 50*time.Millisecond, 10*time.Millisecond
	}
	p.start("edge-1", "edge-2")
	settle()
	eventually(t, "the slice at both hubs", func() bool {
		a, _, _ := p.address("edge-1")
		b, _, _ := p.address("edge-2")
		return a == "10.0.0.1" && b == a
	})
	kubelet, near := p.ofNode("edge-1"), p.hubs["edge-1"]
	for _, path := range []string{podsOfNode, podPath + "web"} {
		get(t, kubelet, near.url()+path, "User-Agent", "kubelet/v1")
	}
	near.kept(1)
	_, _, at := p.address("edge-2")
	seen := p.sees("edge-2", at)

	for n, l := range links {
		l.set(true)
		p.hubs[n].away()
	}
	near.moves(kubelet)
	if _, body := get(t, kubelet, near.url()+podsOfNode, "User-Agent", "kubelet/v1"); strings.Contains(body, "10.0.0.1") ||
		!strings.Contains(body, `"podIP":"10.0.0.9"`) {
		t.Errorf("the pods of the node are listed as %s", body)
	}
	eventually(t, "an open watch at the other hub to show it, and a bookmark behind it", func() bool {
		all := seen.all()
		return seen.has(" 10.0.0.9") && strings.HasPrefix(all[len(all)-1], "BOOKMARK ")
	})
	for _, n := range []string{"edge-1", "edge-2"} {
		if a, v, l := p.address(n); a != "10.0.0.9" || l != at || versionOf(v) >= versionOf(first) {
			t.Errorf("%s lists %s with version %s at %s, want a version before %s at %s", n, a, v, l, first, at)
		}
	}
	again := p.sees("edge-2", at)
	eventually(t, "a watch that begins now to show it", func() bool { return again.has(" 10.0.0.9") })

	for _, l := range links {
		l.set(false)
	}
	eventually(t, "the cloud to hear of it", func() bool {
		pods.mu.Lock()
		defer pods.mu.Unlock()
		return pods.pods["web"].Status.PodIP == "10.0.0.9"
	})
	stale := cloud.slice("10.0.0.1") // its writer has not heard of the change
	eventually(t, "both hubs to show that corrected", func() bool {
		a, v, l := p.address("edge-1")
		b, w, m := p.address("edge-2")
		return a == "10.0.0.9" && b == a && versionOf(l) >= versionOf(stale) && versionOf(m) >= versionOf(stale) &&
			versionOf(v) < versionOf(stale) && versionOf(w) < versionOf(stale)
	})
	last := cloud.slice("10.0.0.9")
	eventually(t, "the cloud's own slice", func() bool {
		return seen.has(last+" 10.0.0.9") && again.has(last+" 10.0.0.9")
	})
	for _, s := range []*seeing{seen, again} {
		for i, x := range s.all() {
			if strings.HasSuffix(x, " 10.0.0.1") {
				t.Errorf("event %d: %q of %q", i, x, s.all())
			}
		}
	}
	eventually(t, "all hubs to show what the cloud has", func() bool {
		a, v, _ := p.address("edge-1")
		b, w, _ := p.address("edge-2")
		return a == "10.0.0.9" && b == a && v == last && w == last
	})
}

// moves has the kubelet say that its pod has another address.
func (b *bed) moves(kubelet *http.Client) {
	b.t.Helper()
	resp, body := do(b.t, kubelet, http.MethodPatch, b.url()+podPath+"web/status",
		[]byte(`{"status":{"podIP":"10.0.0.9","podIPs":[{"ip":"10.0.0.9"}]}}`),
		"Content-Type", "application/strategic-merge-patch+json", "User-Agent", "kubelet/v1")
	if resp.StatusCode != http.StatusOK {
		b.t.Fatalf("the status of the pod: %s %s", resp.Status, body)
	}
}
