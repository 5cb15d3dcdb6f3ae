package runtime

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/sim/link"
)

// poolState is what the tests read of a coordinator's status.
type poolState struct {
	Leader string `json:"leader"`
	Term   string `json:"term"`
	Ready  bool   `json:"ready"`
}

func stateOf(t *testing.T, s Site) (st poolState) {
	t.Helper()
	p, err := s.Part(CoordinatorOf("edge"))
	if err != nil {
		t.Fatal(err)
	}
	_ = p.Status(t.Context(), &st)
	return st
}

func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(time.Minute); !ok(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("timeout waiting for %s", what)
		}
	}
}

// TestFailover: whatever takes the leader away, another leads and what changed in the cloud reaches a client's open
// watch.
func TestFailover(t *testing.T) {
	t.Parallel()
	site := up(t, Topology{Pools: []Pool{{
		Name: "edge", Nodes: 3, Mode: Weir, Unread: true,
		Uplink: Link{Up: 8_000_000, Down: 8_000_000, RTT: 20 * time.Millisecond},
		LAN:    &Link{RTT: time.Millisecond},
	}}})
	if err := Start(t.Context(), site, site.Parts()[1:]...); err != nil {
		t.Fatal(err)
	}
	admin, err := kubernetes.NewForConfig(site.Admin())
	if err != nil {
		t.Fatal(err)
	}
	wait(t, "a ready pool", func() bool { return stateOf(t, site).Ready })
	for name, c := range map[string]struct{ take, giveBack func(Part, string) error }{
		"killed": {
			func(p Part, _ string) error { return p.Kill() }, func(p Part, _ string) error { return p.Start(t.Context()) },
		},
		"stopped": {
			func(p Part, _ string) error {
				return p.Stop(t.Context())
			}, func(p Part, _ string) error { return p.Start(t.Context()) },
		},
		"frozen": {func(p Part, _ string) error { return p.Freeze() }, func(p Part, _ string) error { return p.Thaw() }},
		"cut from the pool": {
			func(_ Part, node string) error { site.LAN("edge").Cut(link.Both, node); return nil },
			func(_ Part, node string) error { site.LAN("edge").Heal(link.Both, node); return nil },
		},
		"cut from the cloud": {
			func(_ Part, node string) error { site.Link("edge").Cut(link.Both, node); return nil },
			func(_ Part, node string) error { site.Link("edge").Heal(link.Both, node); return nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := stateOf(t, site)
			other := fedByPool(t, site)
			events := watchSlices(t, site, other)
			part, err := site.Part(HubOf(before.Leader))
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if err := c.take(part, before.Leader); err != nil {
				t.Fatal(err)
			}
			marker := fmt.Sprintf("marker-%d", began.UnixNano())
			createSlice(t, admin, marker)
			for arrived := false; !arrived; {
				ev, open := <-events
				if !open || ev.Type == watch.Error {
					t.Fatalf("the watch on %s ended: %v", other, ev.Object)
				}
				o, ok := ev.Object.(*discoveryv1.EndpointSlice)
				arrived = ok && o.Name == marker
			}
			after := stateOf(t, site)
			t.Logf("a marker arrived %v after the leader was %s; %s led under %s, then %s under %s",
				time.Since(began).Round(time.Millisecond), name, before.Leader, before.Term, after.Leader, after.Term)
			if after.Leader == before.Leader {
				t.Errorf("%s still leads", after.Leader)
			}
			if err := c.giveBack(part, before.Leader); err != nil {
				t.Fatal(err)
			}
			wait(t, "a ready pool", func() bool { return stateOf(t, site).Ready })
		})
	}
}

// fedByPool is a node whose relays are fed by the coordinator.
func fedByPool(t *testing.T, s Site) (node string) {
	t.Helper()
	wait(t, "a hub that is fed by the coordinator", func() bool {
		for _, id := range s.Parts() {
			var st struct {
				Source string `json:"source"`
			}
			p, err := s.Part(id)
			if err == nil && id.Kind() == "hub" && p.Status(t.Context(), &st) == nil && st.Source == "coordinator" {
				node = id.Of()
				return true
			}
		}
		return false
	})
	return node
}

// watchSlices opens a watch through a node's hub that goes on as the pool changes its leader.
func watchSlices(t *testing.T, s Site, node string) <-chan watch.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	w, err := clientOf(t, s, node, "kube-proxy").DiscoveryV1().EndpointSlices("").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w.ResultChan()
}

func createSlice(t *testing.T, admin kubernetes.Interface, name string) {
	t.Helper()
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, AddressType: discoveryv1.AddressTypeIPv4}
	if _, err := admin.DiscoveryV1().EndpointSlices(corev1.NamespaceDefault).Create(t.Context(), s,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
