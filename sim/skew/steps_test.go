package skew

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/runtime"
)

// share writes changes, and returns the bytes that crossed for the relays of all hubs.
func (p *pool) share() int64 {
	p.t.Helper()
	fed := func() int64 {
		return link.Sum(p.site.Link(poolName).Counters(), func(c link.Counter) bool { return c.Class == runtime.ClassPool })
	}
	before := fed()
	for range changes {
		p.change()
	}
	p.arrives(p.nodes...)
	return fed() - before
}

// follower is a node that does not lead.
func (p *pool) follower() string {
	leader := p.state().Leader
	return p.nodes[slices.IndexFunc(p.nodes, func(n string) bool { return n != leader })]
}

// delegates: the heartbeats of a node that is cut off from the cloud come over its pool, whatever version each has.
func (p *pool) delegates() {
	p.t.Helper()
	for _, name := range p.nodes {
		if name == p.state().Leader {
			continue
		}
		p.site.Link(poolName).Cut(link.Both, name)
		p.wait("a heartbeat of "+name+" over its pool", func() string {
			l, err := p.admin.CoordinationV1().Leases(contract.NodeLeaseNamespace).Get(p.ctx, name, metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			if l.Annotations[contract.DelegateHeartbeat] != contract.Delegated {
				return fmt.Sprintf("the Lease has %v; %s leads", l.Annotations, p.state().Leader)
			}
			return ""
		})
		p.site.Link(poolName).Heal(link.Both, name)
		return
	}
}

// losesLeader: another hub leads when the leader is killed, and changes go on arriving on the watches of the others.
func (p *pool) losesLeader() {
	p.t.Helper()
	p.ready()
	leader := p.state().Leader
	others := slices.DeleteFunc(slices.Clone(p.nodes), func(n string) bool { return n == leader })
	check(p.t, p.part(runtime.HubOf(leader)).Kill())
	p.change()
	p.arrives(others...)
	p.wait("another leader", func() string {
		if s := p.state(); !s.Ready || s.Leader == leader {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})
	check(p.t, p.part(runtime.HubOf(leader)).Start(p.ctx))
	p.ready()
	p.watch(leader)
}

// losesPower: all parts of the pool end at once while the cloud is away, come back in other versions, and are what they
// were: they serve what they held, hold what waits to be written, and go on behind it when the cloud is back, without a
// list.
func (p *pool) losesPower(next func(version) version) {
	p.t.Helper()
	p.kept()
	p.site.Link(poolName).Cut(link.Both, "")
	event := p.writeOffline(p.follower())
	for id := range p.of {
		if id != runtime.Manager {
			check(p.t, p.part(id).Kill())
		}
	}
	check(p.t, p.part(runtime.Manager).Stop(p.ctx))
	for id, v := range p.of {
		p.of[id] = next(v)
		p.point(id)
	}
	p.install()
	p.start()
	for _, name := range p.nodes {
		p.wait(name+" to serve what it held", func() string {
			list, err := p.client(name).DiscoveryV1().EndpointSlices(corev1.NamespaceDefault).List(p.ctx, metav1.ListOptions{})
			if err != nil {
				return fmt.Sprintf("%s: %v", p.of[runtime.HubOf(name)], err)
			}
			held := map[string]bool{}
			for _, s := range list.Items {
				held[s.Name] = true
			}
			for _, n := range p.made {
				if !held[n] {
					return fmt.Sprintf("%s lacks %s: it has %d", p.of[runtime.HubOf(name)], n, len(list.Items))
				}
			}
			return ""
		})
	}
	p.watchAll()
	p.site.Link(poolName).Heal(link.Both, "")
	p.change()
	p.arrives(p.nodes...)
	p.ready()
	p.wait("what waited to be written", func() string {
		_, err := p.admin.CoreV1().Events(corev1.NamespaceDefault).Get(p.ctx, event, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		return ""
	})
	for _, name := range p.nodes {
		for _, r := range p.hub(name).Resources {
			for cause, n := range r.Lists {
				if n > 0 && cause != "cheaper" { // that one is packed, and smaller than what a watch would bring
					text, _ := json.Marshal(r)
					p.t.Errorf("%s (%s) listed %s (%s) after the power came back: it did not go on behind what it held: %s", name,
						p.of[runtime.HubOf(name)], r.Resource, cause, text)
				}
			}
		}
	}
}

// kept waits until all hubs have on their disks what they hold: a power cut may cost the last seconds, of what the
// cloud has as well.
func (p *pool) kept() {
	p.t.Helper()
	for _, name := range p.nodes {
		p.wait(name+" to keep what it holds", func() string {
			m, err := p.part(runtime.HubOf(name)).Metrics(p.ctx)
			if err != nil {
				return err.Error()
			}
			if at := m.Sum("weir_snapshot_resource_version", `resource="endpointslices.v1.discovery.k8s.io"`); at < p.last {
				return fmt.Sprintf("%s: kept at %.0f, and the last change is of %.0f", p.of[runtime.HubOf(name)], at, p.last)
			}
			return ""
		})
	}
}

// writeOffline writes an Event as a kubelet does while the cloud is away, and returns its name. It waits in the node's
// hub.
func (p *pool) writeOffline(name string) string {
	p.t.Helper()
	config, err := p.site.(runtime.Issuer).Stray(name, 0)
	check(p.t, err)
	api, err := kubernetes.NewForConfig(config)
	check(p.t, err)
	event := fmt.Sprintf("while-away-%d", len(p.made))
	p.wait("the hub of "+name+" to take an Event", func() string {
		_, err := api.CoreV1().Events(corev1.NamespaceDefault).Create(p.ctx, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: event, Namespace: corev1.NamespaceDefault}, Reason: "Skew", Message: "it waits",
			Type: corev1.EventTypeNormal,
			InvolvedObject: corev1.ObjectReference{
				Kind: "Node", Name: name,
			}, Source: corev1.EventSource{Component: "kubelet", Host: name},
		}, metav1.CreateOptions{})
		if err != nil && !strings.Contains(err.Error(), "already exists") {
			return err.Error()
		}
		return ""
	})
	return event
}
