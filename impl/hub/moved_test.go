package hub

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/bulletin"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// signs is the authority as weir-manager has it.
func (a *authority) signs() *pki.Authority {
	a.t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(a.key)
	check(a.t, err)
	by, err := pki.LoadAuthority(a.pem, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	check(a.t, err)
	return by
}

// tell has the cloud tell a pool about itself, signed by the authority of the pool if there is one.
func (c *fakeCloud) tell(pool string, annotations map[string]string, leaders ...corev1.EndpointSubset) {
	c.mu.Lock()
	c.version++
	v := c.version
	c.mu.Unlock()
	e := c.object(contract.ManagerNamespace, contract.LeaderHubPrefix+pool, v)
	e.Annotations, e.Subsets = annotations, leaders
	if c.signs != nil {
		entry, err := directory.Parse(pool, e, bulletin.Next(v, c.signs.now()))
		check(c.t, err)
		line, err := entry.Sign(c.signs.signs())
		check(c.t, err)
		e.Annotations = maps.Clone(annotations)
		e.Annotations[contract.LeaderHubSigned] = strings.TrimSpace(string(line))
	}
	e.ObjectMeta.ManagedFields = []metav1.ManagedFieldsEntry{}
	raw, err := e.Marshal()
	check(c.t, err)
	o, err := wire.ParseObject(wire.Protobuf, raw)
	check(c.t, err)
	frame := wire.AppendProtobufFrame(nil, wire.Modified, wire.Kind{APIVersion: "v1", Kind: "Endpoints"}, raw)
	check(c.t, c.relays["endpoints"].Apply(&wire.Event{Type: wire.Modified, Version: v, Object: o, Frame: frame}))
}

// TestCoordinatorMoved: a pool goes to another coordinator while it runs: who leads there is who led, the others
// follow, what clients watch goes on, and nobody lists, neither hubs in the cloud nor clients. One of the hubs does not
// reach the cloud, and hears of it in the pool. A restart without flags that are true finds the way too.
func TestCoordinatorMoved(t *testing.T) {
	nodes := []string{"edge-1", "edge-2", "edge-3"}
	p := newPoolBed(t, nodes...)
	cloud, next := p.clouds[0], newFakeCoordinator(t, p.local)
	cloud.put("default", "first")
	link := newCut(t, strings.TrimPrefix(cloud.url(), "https://"))
	p.hubs["edge-3"].config.CloudServers = []string{link.url()}
	p.start("edge-1", "edge-2")
	eventually(t, "one of two hubs to lead", func() bool { return p.settled("edge-1", "edge-2") != "" })
	p.start("edge-3")
	eventually(t, "one hub to lead and the others to follow", func() bool { return p.settled(nodes...) != "" })
	leader := p.settled(nodes...)
	watches := map[string]<-chan string{}
	for _, n := range nodes {
		p.shows(n, "first")
		watches[n] = p.watches(n)
	}
	lists := func() (n int) {
		cloud.set(func() {
			for _, l := range cloud.lists {
				n += l
			}
		})
		return n
	}
	before := lists()
	link.set(true)
	eventually(t, "edge-3 to be without the cloud", func() bool {
		s := p.hubs["edge-3"].hub.Status()
		return !s.Cloud[0].Healthy && !s.Directory.Live
	})
	cloud.tell("pool-a", map[string]string{contract.LeaderHubCoordinators: next.server.URL})
	eventually(t, "the pool to be at the next coordinator", func() bool {
		return next.holder(contract.InformerSync) != "nobody" && p.settled(nodes...) != "" &&
			!slices.ContainsFunc(nodes, func(n string) bool {
				return "https://"+p.hubs[n].hub.Status().Coordinator.Server != next.server.URL
			})
	})
	if now := p.settled(nodes...); now != leader {
		t.Errorf("%s leads, and %s led", now, leader)
	}
	p.coordinator.set(func() { p.coordinator.down = true })
	cloud.put("default", "second")
	if s := p.hubs["edge-3"].hub.Status().Directory; s.By != directory.ByPool {
		t.Errorf("edge-3 was told %+v", s)
	}
	for _, n := range nodes {
		if got := <-watches[n]; got != "second" {
			t.Errorf("the watch at %s shows %q", n, got)
		}
		for _, r := range p.hubs[n].hub.Status().Resources {
			if r.Lists.Total() > 1 || n != leader && r.Lists.Total() > 0 && r.Source == "cloud" {
				t.Errorf("%s: %+v", n, r)
			}
		}
	}
	if n := lists(); n != before {
		t.Errorf("%d lists in the cloud after the move, %d before", n, before)
	}
	p.stops["edge-2"]()
	p.start("edge-2")
	eventually(t, "edge-2 to find the coordinator again", func() bool {
		return "https://"+p.hubs["edge-2"].hub.Status().Coordinator.Server == next.server.URL && p.settled(nodes...) != ""
	})
}

// watches tells the names of what changes at a hub from now on; closed: the watch ended.
func (p *poolBed) watches(node string) <-chan string {
	p.t.Helper()
	h := p.hubs[node]
	u := fmt.Sprintf("%s/api/v1/namespaces/default/endpoints?watch=1&resourceVersion=%d", h.url(),
		h.hub.sources.Relays()[0].Status().Version)
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, u, nil)
	check(p.t, err)
	req.Header.Set(alice[0], alice[1])
	resp, err := h.client(nil).Do(req)
	check(p.t, err)
	if resp.StatusCode != http.StatusOK {
		p.t.Fatalf("watch at %s: %s", node, resp.Status)
	}
	names, done := make(chan string, 10), make(chan struct{})
	go func() {
		defer close(done)
		defer close(names)
		for frames := json.NewDecoder(resp.Body); ; {
			var e struct{ Object corev1.Endpoints }
			if frames.Decode(&e) != nil {
				return
			}
			names <- e.Object.Name
		}
	}()
	p.t.Cleanup(func() {
		resp.Body.Close()
		<-done
	})
	return names
}
